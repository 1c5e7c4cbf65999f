package bfd

import (
	"fmt"
	"net/netip"
)

// Key names a session: RFC 5881 section 3 knows one between two systems over one
// interface, RFC 5883 section 4 one for each pair of addresses.
type Key struct {
	Peer netip.Addr `json:"peer"` // without a zone; a link-local one needs Interface
	// Local is the address packets are sent from and must be sent to; for a
	// single-hop session it may be zero, which means any.
	Local netip.Addr `json:"local"`
	// Interface binds a single-hop session to one interface; empty: any.
	Interface string `json:"interface,omitempty"`
	Multihop  bool   `json:"multihop"`
}

func (k Key) String() string {
	s := k.Peer.String()
	if k.Interface != "" {
		s += "%" + k.Interface
	}
	if k.Multihop {
		s += " multihop"
	}
	return s
}

// canonical moves the zone of an address to Interface and unmaps IPv4.
func (k Key) canonical() Key {
	if k.Interface == "" {
		k.Interface = k.Peer.Zone()
	}
	k.Peer, k.Local = k.Peer.WithZone("").Unmap(), k.Local.WithZone("").Unmap()
	return k
}

// index is what sessions are found by when a packet does not name its session. The
// local address does not count for one hop: there is one session per interface.
func (k Key) index() Key {
	if !k.Multihop {
		k.Local = netip.Addr{}
	}
	return k
}

// Peer is one wanted session.
type Peer struct {
	Key
	Timers    Timers
	Passive   bool // speak only when spoken to (RFC 5880 section 6.1)
	AdminDown bool // hold the session in AdminDown
	// MinTTL is the least TTL or hop limit of received multihop packets, 0 for any.
	// A single-hop packet needs 255 (RFC 5881 section 5).
	MinTTL uint8
	Auth   *Auth // nil: none
	// Last is what an earlier process reported last of this path; it counts when the
	// session is made. One that was Up or Down is spoken to at once, within MinTx: its
	// peer may still wait for us.
	Last Report
}

// Validate checks a wanted session; errors are *ConfigError.
func (p Peer) Validate() error {
	k := p.canonical()
	where := "BFD session to " + k.String() + ": "
	bad := func(what, value, want string) error { return &ConfigError{where + what, value, want} }
	switch {
	case !k.Peer.IsValid() || k.Peer.IsUnspecified() || k.Peer.IsMulticast():
		return bad("peer", k.Peer.String(), "a unicast address")
	case k.Local.IsValid() && (k.Local.IsUnspecified() || k.Local.IsMulticast()):
		return bad("local address", k.Local.String(), "a unicast address")
	case k.Local.IsValid() && k.Local.Is4() != k.Peer.Is4():
		return bad("local address", k.Local.String(), "an address of the peer's family")
	case k.Local == k.Peer:
		return bad("local address", k.Local.String(), "other than the peer's")
	case k.Multihop && k.Interface != "":
		return bad("interface", k.Interface, "none for a multihop session")
	case k.Multihop && !k.Local.IsValid():
		return bad("local address", "missing", "one for a multihop session (RFC 5883 section 4)")
	case k.Peer.IsLinkLocalUnicast() && k.Peer.Is6() && k.Interface == "":
		return bad("interface", "missing", "one for a link-local peer")
	case p.Peer.Zone() != "" && p.Interface != "" && p.Peer.Zone() != p.Interface:
		return bad("interface", p.Interface, fmt.Sprintf("the zone of the peer, %s", p.Peer.Zone()))
	}
	if err := p.Timers.Validate(); err != nil {
		return fmt.Errorf("%s%w", where, err)
	}
	if err := p.Auth.Validate(); err != nil {
		return fmt.Errorf("%s%w", where, err)
	}
	return nil
}

// equal reports whether nothing has to be done to get from one to the other.
func (p *Peer) equal(o *Peer) bool {
	return p.Key == o.Key && p.Timers == o.Timers && p.Passive == o.Passive && p.AdminDown == o.AdminDown &&
		p.MinTTL == o.MinTTL && p.Auth.equal(o.Auth)
}
