package fence

import (
	"net/netip"
	"time"
)

// Key names a block: the frames that it drops at one access port, both ways.
type Key struct {
	Port  string
	Array netip.Addr // an address behind the port; invalid: all frames except LLDP and NTS
	Host  netip.Addr // the other end; invalid exactly if Array is
}

// WholePort reports whether the block closes the port to everything except LLDP and NTS.
func (k Key) WholePort() bool { return !k.Array.IsValid() }

// Block is a block that is in force. It ends at Until even if this process is dead.
type Block struct {
	Key
	Since time.Time // when the dataplane began to drop
	Until time.Time
}

// Dataplane enforces blocks. Its methods may wait for the kernel or an ASIC; they are called by one
// goroutine. What it holds outlives the process.
type Dataplane interface {
	// Adopted returns the blocks that were in force before this process, so that they are lifted
	// and shown, never forgotten.
	Adopted() ([]Block, error)
	// Block begins to drop; it returns once no frame passes at ingress and egress of the port any
	// more. A block that stands already is prolonged, never shortened.
	Block(key Key, until time.Time) (Block, error)
	// Drained reports whether the port's egress queue holds no frame from before the block: it was
	// emptied, or has sent what it held. It is asked again until it does, or the wait is given up.
	Drained(Block) (bool, error)
	// Lift ends a block.
	Lift(Key) error
	// LiftAll ends all of them, also those it does not know.
	LiftAll() error
	// Counts returns how many frames each block has dropped.
	Counts() (map[Key]uint64, error)
	// String names the way, for operators: "eBPF", "ASIC".
	String() string
	Close() error // ends this process's part; blocks stay
}
