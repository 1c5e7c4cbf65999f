package zone

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// HostKey names one attachment of an address: the same address behind two ports
// (a bond, or two hosts that claim it) has two keys.
type HostKey struct {
	Addr   netip.Addr `json:"addr"`
	Device netip.Addr `json:"device"` // device id of the access switch
	Port   string     `json:"port"`   // access port on it
}

// Host is one host address as learned at one access port.
type Host struct {
	HostKey
	MAC        fabric.MAC `json:"mac"` // chassis MAC of the registration: tells a bond from a conflict
	Subscribes bool       `json:"subscribes"`
	snsd.Service
	Since time.Time `json:"since"` // when its access device first learned it, by its clock: for people, nothing is decided by it
	Claim Claim     `json:"-"`     // whether it has the address, as the speaker knows; see holder.go
	Doubt bool      `json:"doubt"` // whether its device has seen that it may be another host, see holder.go
	Down  Down      `json:"-"`     // a fault of its port
}

// Down is why, and since when by the clock of its device, a host cannot be reached: a fault of
// its port. The zero value: it can, as far as its device knows.
type Down struct {
	Why   snsd.Reason
	Since time.Time
}

// Is reports whether the host is down.
func (d Down) Is() bool { return d.Why != snsd.ReasonNone }

// Same reports whether two say the same.
func (d Down) Same(o Down) bool { return d.Why == o.Why && d.Since.Equal(o.Since) }

// Same reports whether two say the same of a host; a doubt is nobody's word.
func (h *Host) Same(o *Host) bool {
	return h.Down.Same(o.Down) && h.SameButDown(o)
}

// SameButDown is Same but for whether the host is down.
func (h *Host) SameButDown(o *Host) bool {
	return h.HostKey == o.HostKey && h.MAC == o.MAC && h.Subscribes == o.Subscribes && h.Service == o.Service && h.Since.Equal(o.Since) && h.Claim == o.Claim
}

// DefaultName is the zone that is always there and has no configured members.
const DefaultName = "default"

// Limits of a zone configuration.
const (
	MaxName = 63 // bytes, 1..63, case-sensitive
	// MaxSize is what fits one message beside its header, in bytes (docs/protocol.md, "Limits"):
	// a zone is never told in parts.
	MaxSize = 1<<20 - 256
)

// MemberKind tells which field of a Member counts.
type MemberKind uint8

const (
	MemberAddr  MemberKind = iota + 1 // First
	MemberRange                       // First..Last, both included, one family, First <= Last
	MemberNQN                         // NQN, exact
	MemberPort                        // Device and Port
	MemberBound                       // NQN at a place: a prefix First..Last, or Device with or without Port
)

// Member is one line of a zone. It is comparable: two equal members are one.
type Member struct {
	Kind   MemberKind
	First  netip.Addr
	Last   netip.Addr
	NQN    string
	Device netip.Addr
	Port   string
}

// Zone is a named set of members.
type Zone struct {
	Name    string   `json:"name" yaml:"name"`
	Members []Member `json:"members" yaml:"members"`
}

// Set is a whole zone configuration.
type Set struct {
	Zones []Zone `json:"zones" yaml:"zones"`
	// AutoJoin puts a host that is in no configured zone into the default zone.
	AutoJoin bool `json:"auto_join" yaml:"auto-join"`
	// Hard asks for isolation in the dataplane too.
	Hard bool `json:"hard" yaml:"hard"`
}
