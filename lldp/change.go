package lldp

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/snsd"
)

// ChangeKind tells what happened to a neighbour.
type ChangeKind uint8

const (
	Learned   ChangeKind = iota + 1 // heard for the first time
	Updated                         // heard with other contents; Old is what it said before
	Refreshed                       // heard with the same contents
	Confirmed                       // heard with the same contents, for the first time since its port was down
	Removed                         // aged out, shut down, or its port is gone
)

func (k ChangeKind) String() string {
	switch k {
	case Learned:
		return "learned"
	case Updated:
		return "updated"
	case Refreshed:
		return "refreshed"
	case Confirmed:
		return "confirmed"
	case Removed:
		return "removed"
	}
	return "unknown"
}

// MarshalText gives the name of the kind.
func (k ChangeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Change is what one frame or the passing of time did to one neighbour.
//
// Put and Gone say what follows for the hosts behind Neighbour.Port, already
// reconciled with the other neighbours of that port: put these, withdraw those.
// Any kind but Removed is evidence that the addresses in Neighbour.Known can be
// reached; Put may hold an address more, which passed to another neighbour of the
// port that was not heard just now. Refreshed has neither: nothing is new.
type Change struct {
	Kind      ChangeKind
	Neighbour Neighbour  // after the change; as it was last, for Removed
	Old       *Neighbour // before it, for Updated
	Put       []HostInfo
	Gone      []netip.Addr // announced by nobody on this port any more
	// Reason of what is gone: ReasonIPChanged for Updated, ReasonAgedOut for a TTL
	// that ran out or a shutdown LLDPDU, ReasonLinkDown for a port that is gone.
	Reason snsd.Reason
	Taken  bool      // by Forget: the machine said nothing of the kind and may be there
	At     time.Time // when the frame was received (its own stamp where there is one), or now
}
