package hardzone

import (
	"context"
	"net/netip"
	"time"
)

// Dataplane is what enforces the rows. Its methods may wait for the kernel; but for Samples
// they are called by one goroutine.
type Dataplane interface {
	// Adopted gives the rows that were in force before this process, and whether an operator had
	// suspended them.
	Adopted() (hosts []Host, pairs []PairKey, suspended bool)
	// Configure brings settings and bindings into force; only rows that differ are touched.
	Configure(Config, []Bound) error
	// Apply makes steps in their order. After an error it goes on with the next one; Audit
	// repairs what is missing.
	Apply([]Step) error
	// SetPorts says at which ports there are to be filters: these and no others. It answers
	// for each how it went.
	SetPorts([]Port) []PortState
	// Suspend lets everything pass, or no longer; also the process after this one.
	Suspend(bool) error
	// Audit compares all rows with what they should be, and repairs them.
	Audit() (Audited, error)
	// Look reads what is in force between two addresses.
	Look(a, b netip.Addr) (Seen, error)
	// Counts reads the counters of the ports, and those of zones by their number.
	Counts() (Counts, error)
	// Samples hands over dropped frames until ctx ends.
	Samples(ctx context.Context, take func(Sample)) error
	// Remove ends the enforcement, Close only this process's part in it.
	Remove() error
	Close() error
}

// Watcher is a Dataplane that hears when another program changes its rows: an Audit is due.
type Watcher interface {
	// Watch calls changed after each such change, until ctx ends.
	Watch(ctx context.Context, changed func()) error
}

// Port is an access port as a filter needs it.
type Port struct {
	Name  string
	Index int // of the interface
}

// PortState says how a port is filtered.
type PortState struct {
	Port   string
	Attach Attach // empty: not at all
	Err    error  // why not, or not in the way that was asked for
}

// Bound is the access whitelist: addresses that may be on these ports only.
type Bound struct {
	Prefix netip.Prefix
	Ports  []string
}

// Audited is the outcome of an Audit.
type Audited struct {
	Hosts, Pairs   int // rows that there are
	Missing, Wrong int // rows that had to be put
	Foreign        int // rows that had to be removed
}

// Repaired is how many rows were not as they should be.
func (a Audited) Repaired() int { return a.Missing + a.Wrong + a.Foreign }

// Seen is what is in force between two addresses.
type Seen struct {
	A, B      uint32   // their numbers; 0: no row
	APorts    []string // from which they may send
	BPorts    []string
	Open      bool // the pair has a row
	Suspended bool // everything passes
}

// Counts are the frames of a switch since the filter is there.
type Counts struct {
	Ports map[string]PortCounts
	Zones []ZoneCounts // by counter
}

// PortCounts are the frames that a port received, by what became of them.
type PortCounts struct {
	Passed    uint64 `json:"passed"`     // between hosts that may talk
	Permitted uint64 `json:"permitted"`  // permitted to all: hard-zoning.permit, multicast
	Other     uint64 `json:"other"`      // neither IP nor RoCE, or discovery
	NoPair    uint64 `json:"no_pair"`    // dropped: the hosts may not talk
	BadSource uint64 `json:"bad_source"` // dropped: the sender's address is not of this port
	Unlearned uint64 `json:"unlearned"`  // dropped: an address that no host has registered
	Malformed uint64 `json:"malformed"`  // dropped: broken headers, or more than two VLAN tags
}

// Denied is how many were dropped.
func (c PortCounts) Denied() uint64 { return c.NoPair + c.BadSource + c.Unlearned + c.Malformed }

// ZoneCounts are the frames of a zone's hosts: what two of them exchanged, and what was
// dropped of what they sent.
type ZoneCounts struct {
	Passed uint64 `json:"passed"`
	Denied uint64 `json:"denied"`
}

// Sample is a dropped frame.
type Sample struct {
	At               time.Time
	Port             string
	Why              Why
	Src, Dst         netip.Addr
	Protocol         uint8
	SrcPort, DstPort uint16 // 0: none
	Discovery        bool   // ARP or Neighbor Discovery
}

// Why is the reason why a frame was dropped.
type Why string

// The values of Why.
const (
	NoPair       Why = "the two may not talk"
	BadSource    Why = "the sender's address is not of this port"
	NotLearned   Why = "no host has registered one of the addresses"
	BadFrame     Why = "broken headers, or more than two VLAN tags"
	UnknownCause Why = "unknown"
)
