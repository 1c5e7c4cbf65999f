package fence

import (
	"iter"
	"net/netip"
	"time"

	"github.com/openinof/inof/snsd"
)

// Config is what operators say.
type Config struct {
	On bool
	// Hold is how long a block stands from its begin, and an array's port stays closed from the loss
	// of its carrier: at least 3 x the keep-alive time-out of NVMe + 2 s. Until then the array,
	// hearing nothing, has ended the connection.
	Hold time.Duration
	// AssumePaths is the operator's word that each host reaches each array in another fabric too, of
	// which this switch knows nothing.
	AssumePaths bool
}

// DefaultHold is for a keep-alive time-out of up to 6 s.
const DefaultHold = 20 * time.Second

const (
	// MaxBlocks is how many blocks stand at a time: a fault of half of a fabric must not fill the
	// tables of a switch.
	MaxBlocks = 4096
	// maxLooked is how many hosts are looked at for one fault of a port, so that a fault elsewhere
	// never waits for long.
	maxLooked = 4096

	retryAfter = 100 * time.Millisecond // after an error of the dataplane
	// drainMargin is how much later than the begin of a block its queue may be empty, for the block
	// to stand long enough: a part of the 2 s that Hold has above 3 x the keep-alive time-out.
	drainMargin = time.Second

	drainEvery = 5 * time.Millisecond // between two looks at a queue
)

// Host is one address of a host or an array, as this switch knows it.
type Host struct {
	Addr  netip.Addr
	NQN   string
	Role  snsd.Role
	Ports []string    // local access ports where it registered; none: it is elsewhere
	Up    bool        // it can be reached from here
	Why   snsd.Reason // it cannot
}

// array reports whether others reach a subsystem at the address.
func (h *Host) array() bool { return h.Role == snsd.RoleTarget || h.Role == snsd.RoleBoth }

// faulty reports whether the host cannot be reached by a fault of its own: a link or port (1 to 3)
// or the way to its switch (7). Whoever left a zone, moved or aged out is not blocked.
func (h *Host) faulty() bool {
	return !h.Up && h.Why != snsd.ReasonNone && !h.Why.Disconnects()
}

// View is what the Machine asks of the table of hosts. It is read during calls only.
type View interface {
	Host(netip.Addr) (Host, bool)
	// Peers are the known addresses that share a zone with one, in any state.
	Peers(netip.Addr) iter.Seq[netip.Addr]
	Share(a, b netip.Addr) bool
	// Local are the addresses that registered at local ports, and OfNQN those that say an NQN.
	Local() []netip.Addr
	OfNQN(string) []netip.Addr
	// Behind are the addresses that registered at a local port, sorted.
	Behind(port string) []netip.Addr
}

// Op is what the dataplane is to do.
type Op uint8

// The operations.
const (
	OpBlock   Op = iota + 1 // begin to drop, or prolong
	OpDrained               // look whether the queue of the port holds nothing from before the block
	OpLift
	OpLiftAll
)

var opNames = []string{"", "block", "drained", "lift", "lift-all"}

func (o Op) String() string { return opNames[o] }

// Step is one operation for the dataplane. What came of it goes to Machine.Done.
type Step struct {
	Op    Op
	Block // of OpBlock: Key and Until
}

// Result is what came of a step.
type Result struct {
	Step
	Drained bool // of OpDrained
	Err     error
}

// Peer is a host that is kept from an array at a port.
type Peer struct {
	Host  netip.Addr // invalid: all hosts
	Level snsd.FenceLevel
	Since time.Time
	Hold  time.Duration
	Took  time.Duration
}

// Fact is what is fenced at one address of an array at one port: it replaces what was.
type Fact struct {
	Port  string
	Array netip.Addr
	Peers []Peer // none: nothing
}

// Counters count what was decided.
type Counters struct {
	Blocks    uint64 `json:"blocks"`      // blocks that began
	Confirmed uint64 `json:"confirmed"`   // of these, confirmed: no copy passes
	Lifted    uint64 `json:"lifted"`      // blocks that have ended
	Adopted   uint64 `json:"adopted"`     // blocks of a process before this one
	LastPath  uint64 `json:"last_path"`   // pairs not blocked because they have no other path
	NoRoom    uint64 `json:"no_room"`     // blocks not begun because there were too many
	TooMany   uint64 `json:"too_many"`    // faults of a port not fenced because it has too many pairs
	Errors    uint64 `json:"errors"`      // operations that the dataplane could not do
	LiftedAll uint64 `json:"lifted_all"`  // orders to lift everything
	Standing  uint64 `json:"standing"`    // now: blocks that stand, or are about to
	Unfenced  uint64 `json:"unconfirmed"` // now: of these, not confirmed
}
