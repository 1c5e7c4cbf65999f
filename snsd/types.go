package snsd

import (
	"fmt"
	"net/netip"
	"strconv"
)

// Role of a storage host, as it registers and as notices carry it.
type Role uint8

const (
	RoleUnknown   Role = 0 // learned by plain LLDP, or a value we do not know
	RoleTarget    Role = 1 // "server": a storage array's port
	RoleInitiator Role = 2 // "client": a host that does I/O
	RoleBoth      Role = 3
)

// Protocol by which a host's storage is reached.
type Protocol uint8

const (
	ProtocolUnknown Protocol = 0
	ProtocolRoCE    Protocol = 1 // NVMe over RoCE v2
	ProtocolTCP     Protocol = 2 // NVMe over TCP
	ProtocolISCSI   Protocol = 3
)

// State that a notice tells about its subject (sub-TLV 6).
type State uint8

const (
	Inactive State = 0
	Active   State = 1
)

// Reason of a notice (sub-TLV 7).
type Reason uint8

const (
	ReasonNone        Reason = 0
	ReasonLinkDown    Reason = 1
	ReasonPFCStorm    Reason = 2
	ReasonPacketError Reason = 3
	ReasonZoneChanged Reason = 4
	ReasonIPChanged   Reason = 5
	ReasonAgedOut     Reason = 6
	ReasonBFDDown     Reason = 7
)

// Disconnects reports whether the existing host agent removes the controller at
// once for this reason (4, 5, 6); for the others it lets the kernel find out by
// keep-alive commands.
func (r Reason) Disconnects() bool { return r >= ReasonZoneChanged && r <= ReasonAgedOut }

// MaxNQN is the longest NQN in bytes: its length field has one byte.
const MaxNQN = 255

// Service is how a host's storage is reached (sub-TLV 8, and part of a registration).
type Service struct {
	Role     Role     `json:"role"`
	Protocol Protocol `json:"protocol"`
	Port     uint16   `json:"service_port"` // 0 means the protocol's default (RoCE: 4420)
	NQN      string   `json:"nqn,omitempty"`
}

// Meets reports whether hosts of these roles have to do with each other: not two
// initiators, nor two targets. An unknown role counts as either.
func (r Role) Meets(o Role) bool { return r != o || r != RoleInitiator && r != RoleTarget }

// ReplacedBy reports whether a host that connected to the one service must let go of it
// because the address has the other now. An initiator has nothing to let go of, and
// what was unknown and is said now was no other service.
func (s Service) ReplacedBy(o Service) bool {
	both := s.Protocol != ProtocolUnknown && o.Protocol != ProtocolUnknown
	switch {
	case s.Role == RoleInitiator:
		return false
	case o.Role == RoleInitiator:
		return true
	case both && s.Protocol != o.Protocol:
		return true
	}
	return differ(s.port(), o.port()) || differ(s.NQN, o.NQN)
}

// differ reports whether two values are other ones, the zero value being unknown.
func differ[T comparable](a, b T) bool {
	var unknown T
	return a != b && a != unknown && b != unknown
}

// port is the service port with the protocol's default filled in, where it has one.
func (s Service) port() uint16 {
	switch {
	case s.Port != 0:
		return s.Port
	case s.Protocol == ProtocolRoCE:
		return 4420
	}
	return 0
}

// Notice tells Host (one of the addressed host's own addresses) the state of Subject.
type Notice struct {
	Subject netip.Addr `json:"subject"`
	Host    netip.Addr `json:"host"` // same family as Subject
	Seq     uint32     `json:"seq"`  // opaque to the host, echoed in its ack
	State   State      `json:"state"`
	Reason  Reason     `json:"reason"`
	Service Service    `json:"service"` // of the subject
	// Fence is sub-TLV 10, nil where the notice carries none; with FenceNone a fence is being
	// established, and one more notice follows when there is one. Only with state Inactive.
	Fence *Fence `json:"fence,omitempty"`
}

// Equal reports whether two notices are the same, byte for byte on the wire.
func (n *Notice) Equal(o *Notice) bool {
	if (n.Fence == nil) != (o.Fence == nil) || n.Fence != nil && *n.Fence != *o.Fence {
		return false
	}
	a, b := *n, *o
	a.Fence, b.Fence = nil, nil
	return a == b
}

// fenced reports whether o, which came after n, only adds the fence of the same fault.
func (n *Notice) fenced(o *Notice) bool {
	return n.Subject.IsValid() && n.State == Inactive && o.State == Inactive && n.Reason == o.Reason &&
		o.Fence != nil && o.Fence.Level != FenceNone
}

// Ack is a host's answer to a Notice.
type Ack struct {
	Subject netip.Addr `json:"subject"`
	Host    netip.Addr `json:"host"`
	Seq     uint32     `json:"seq"`
}

// Registration is the organizational TLV by which a host makes an address known.
type Registration struct {
	Addr       netip.Addr `json:"addr"`
	Subscribes bool       `json:"subscribes"` // wants notices
	ProtoVer   uint16     `json:"protocol_version"`
	Service
}

func name[T ~uint8](v T, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%d", v)
}

func unname[T ~uint8](v *T, what string, names []string, b []byte) error {
	for i, n := range names {
		if n == string(b) {
			*v = T(i)
			return nil
		}
	}
	if n, err := strconv.ParseUint(string(b), 10, 8); err == nil {
		*v = T(n) // a value without a name is written as its number
		return nil
	}
	return fmt.Errorf("%s %q is none of %v", what, b, names)
}

var (
	roleNames     = []string{"unknown", "target", "initiator", "both"}
	protocolNames = []string{"unknown", "roce", "tcp", "iscsi"}
	stateNames    = []string{"inactive", "active"}
	reasonNames   = []string{"none", "link-down", "pfc-storm", "packet-error", "zone-changed", "ip-changed", "aged-out", "bfd-down"}
)

func (r Role) String() string                    { return name(r, roleNames) }
func (r Role) MarshalText() ([]byte, error)      { return []byte(r.String()), nil }
func (r *Role) UnmarshalText(b []byte) error     { return unname(r, "role", roleNames, b) }
func (p Protocol) String() string                { return name(p, protocolNames) }
func (p Protocol) MarshalText() ([]byte, error)  { return []byte(p.String()), nil }
func (p *Protocol) UnmarshalText(b []byte) error { return unname(p, "protocol", protocolNames, b) }
func (s State) String() string                   { return name(s, stateNames) }
func (s State) MarshalText() ([]byte, error)     { return []byte(s.String()), nil }
func (s *State) UnmarshalText(b []byte) error    { return unname(s, "state", stateNames, b) }
func (r Reason) String() string                  { return name(r, reasonNames) }
func (r Reason) MarshalText() ([]byte, error)    { return []byte(r.String()), nil }
func (r *Reason) UnmarshalText(b []byte) error   { return unname(r, "reason", reasonNames, b) }
