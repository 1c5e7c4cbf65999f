// Package round holds what the judge outside and the program in the virtual machine tell each other.
package round

import "time"

// Place is where the copy of a write waits that can come too late.
type Place string

// The places of a copy. A switch can fence the first two, an array all of them.
const (
	Host    Place = "h" // the host's egress
	Network Place = "n" // the queue of the switch's port to the array
	Receive Place = "r" // the array's receive queue
	Execute Place = "x" // in execution at the array
)

// Spec is one round: a write A is held at a place, the fault strikes, and B is written as soon as A was
// acknowledged.
type Spec struct {
	Case   int           `json:"case,omitempty"` // of the raw mechanisms; 0: the daemons act
	Place  Place         `json:"place"`
	Hold   time.Duration `json:"hold"`             // how long the copy waits there
	KATO   time.Duration `json:"kato"`             // keep-alive time-out of the host's controllers
	Cause  string        `json:"cause,omitempty"`  // what strikes
	Policy string        `json:"policy,omitempty"` // of the host's agent
	Target bool          `json:"target,omitempty"` // our agent runs at the array
	Trace  bool          `json:"trace,omitempty"`  // keep what the daemons wrote
}

// Result is what became of a round. Times are since A was sent; negative: it did not happen.
type Result struct {
	Plane   int           `json:"plane"`  // of the path that A took, from 1
	Held    bool          `json:"held"`   // a copy of A was seen waiting when the fault struck
	Struck  time.Duration `json:"struck"` // the fault, or the notice acted on
	Noticed time.Duration `json:"noticed"`
	Acked   time.Duration `json:"acked"`  // A was acknowledged
	AckedB  time.Duration `json:"ackedB"` // B was acknowledged
	Copies  int           `json:"copies"` // how often A was executed
	Late    time.Duration `json:"late"`   // A was executed last behind the acknowledgement of B
	Lost    bool          `json:"lost"`   // block 0 holds A though B was acknowledged
	Arrived bool          `json:"arrived"`
	Level   string        `json:"level,omitempty"` // that the agent reports: array, network, none
	Way     string        `json:"way,omitempty"`
	Report  string        `json:"report,omitempty"` // in its words
	Reason  string        `json:"reason,omitempty"` // of the notice
	Other   bool          `json:"other"`            // I/O goes on over the other path
	Error   string        `json:"error,omitempty"`
	Log     []string      `json:"log,omitempty"`
}
