package hardzone

import "net/netip"

// Host is the row of an address. A dataplane drops what comes from the address on any other
// port than these.
type Host struct {
	Addr   netip.Addr
	Number uint32   // above 0; an address keeps it as long as it has a row, no other ever gets it
	Ports  []string // access ports here that the address may send from, sorted; none: the host is elsewhere
	Zone   uint32   // the counter of what is denied to it; 0: of all the zones without one of their own
}

// Pair is the row of two hosts that may talk, in both directions.
type Pair struct {
	Key  PairKey
	Zone uint32 // the counter of what they exchange; 0: as in Host
}

// PairKey names two hosts by their numbers, the smaller one first: one row opens and closes
// both directions at once.
type PairKey struct{ Low, High uint32 }

// KeyOf gives the key of two hosts.
func KeyOf(a, b uint32) PairKey {
	if a > b {
		a, b = b, a
	}
	return PairKey{a, b}
}

// Op says what a Step does.
type Op uint8

// The values of Op, in the order in which the steps of one change come: what is opened is there
// before the host that needs it, and a host goes before what it needed.
const (
	ClearZone  Op = iota + 1 // the counter Pair.Zone begins anew
	PutPair                  // Pair
	PutHost                  // Host
	DeleteHost               // Host.Addr and Host.Number
	DeletePair               // Pair.Key
)

func (o Op) String() string {
	switch o {
	case ClearZone:
		return "clear zone"
	case PutPair:
		return "put pair"
	case PutHost:
		return "put host"
	case DeleteHost:
		return "delete host"
	case DeletePair:
		return "delete pair"
	}
	return "unknown"
}

// Step is one change of one row. A dataplane makes each in one piece, and all in their order.
type Step struct {
	Op   Op
	Host Host
	Pair Pair
}
