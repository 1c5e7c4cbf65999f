package bfd

import (
	"net/netip"
	"time"
)

// MaxTTL is the TTL or hop limit that packets are sent with; single-hop ones must arrive
// with it (RFC 5881 section 5).
const MaxTTL = 255

const gtsm = MaxTTL

// Receive takes a control packet. An error says why it was discarded, which is
// counted; a *PacketError is about its content. payload is not kept.
func (m *Manager) Receive(a *Arrival, payload []byte, now time.Time) error {
	t := m.advance(now)
	m.counters.PacketsIn++
	err := m.receive(a, payload, t)
	if err != nil {
		m.counters.note(err)
		if a.Multihop {
			m.noteStray(plain(a.Src), err, now)
		}
	}
	return err
}

func (m *Manager) receive(a *Arrival, payload []byte, now instant) error {
	// Cheapest first: a packet from beyond the link cannot have this TTL.
	if !a.Multihop && a.TTL != gtsm {
		return &PacketError{ErrTTL, "TTL", int64(a.TTL), "255"}
	}
	p, err := Parse(payload)
	if err != nil {
		return err
	}
	s, err := m.find(a, &p)
	if err != nil {
		return err
	}
	if a.Multihop && a.TTL < s.peer.MinTTL {
		return &PacketError{ErrTTL, "TTL", int64(a.TTL), "the configured minimum"}
	}
	at := now
	if !a.At.IsZero() {
		at = min(now, max(m.instant(a.At), m.paused))
	}
	return s.receive(&p, payload, at, now)
}

// find chooses the session of a packet: by Your Discriminator where there is one
// (RFC 5880 section 6.8.6), else by addresses and interface (RFC 5881 section 3, RFC
// 5883 section 4).
func (m *Manager) find(a *Arrival, p *Packet) (*session, error) {
	src, dst := plain(a.Src), plain(a.Dst)
	if p.YourDiscr == 0 {
		return m.findByAddress(a, src, dst)
	}
	s := m.byDiscr[p.YourDiscr]
	if s == nil {
		return nil, &PacketError{ErrNoSession, "Your Discriminator", int64(p.YourDiscr), "one of ours"}
	}
	k := &s.peer.Key
	fits := k.Multihop == a.Multihop && k.Peer == src &&
		(!k.Local.IsValid() || !dst.IsValid() || k.Local == dst) &&
		(k.Interface == "" || a.Interface == "" || k.Interface == a.Interface)
	if !fits {
		return nil, &PacketError{ErrSource, "Your Discriminator", int64(p.YourDiscr), "one whose session has these addresses, interface and hops"}
	}
	return s, nil
}

func (m *Manager) findByAddress(a *Arrival, src, dst netip.Addr) (*session, error) {
	k := Key{Peer: src, Multihop: a.Multihop}
	var s *session
	if a.Multihop {
		k.Local = dst
		s = m.byKey[k]
	} else {
		k.Interface = a.Interface
		if s = m.byKey[k]; s == nil && k.Interface != "" {
			k.Interface = ""
			s = m.byKey[k]
		}
		if s != nil && s.peer.Local.IsValid() && dst.IsValid() && s.peer.Local != dst {
			s = nil
		}
	}
	if s == nil {
		return nil, &PacketError{ErrNoSession, "Your Discriminator", 0, "the source of a wanted session"}
	}
	return s, nil
}

// plain is an address as keys have it.
func plain(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// Echo reports whether an echo packet that came to port 3785 is to be returned to its
// source (RFC 5880 section 6.4): only to the peer of a single-hop session that is Up
// and offered it, and no faster than offered, give or take the jitter.
func (m *Manager) Echo(a *Arrival, now time.Time) bool {
	t := m.advance(now)
	s, _ := m.findByAddress(&Arrival{Interface: a.Interface}, plain(a.Src), plain(a.Dst))
	if s == nil || s.state != StateUp || s.peer.Timers.MinEchoRx == 0 || a.TTL != gtsm ||
		s.lastEcho != never && t-s.lastEcho < instant(s.peer.Timers.MinEchoRx)/2 {
		m.counters.EchoRefused++
		return false
	}
	s.lastEcho = t
	m.counters.EchoReturned++
	return true
}
