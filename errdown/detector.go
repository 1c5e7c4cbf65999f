package errdown

import (
	"time"

	"github.com/openinof/inof/fabric"
)

// Detector looks at one port for one cause.
type Detector interface {
	// Look takes what is known now, which it must neither change nor keep, and says what
	// follows from it.
	Look(in *Input) Signal
	// Next is when Look wants to be called although nothing happened; zero for never.
	Next() time.Time
	// Reset forgets what led to a trip, after a recovery.
	Reset()
	// Policy says what a trip means; it is read at each trip and recovery.
	Policy() Policy
	// Need is what of a port's health is to be read how often; no fields: nothing. It is not
	// asked while a trip would lead to nothing.
	Need() Need
}

// measurer is a Detector whose measure may be another than its cause is named after.
type measurer interface {
	What() string // empty: it is not
}

// Need is what of a port's health is to be read how often.
type Need struct {
	Cause  Cause // for which; empty: for none that is on
	Fields fabric.Fields
	Every  time.Duration
}

// Input is what a Detector may look at.
type Input struct {
	Now     time.Time
	Port    fabric.Port // the last state told
	Present bool        // false: the port was removed
	// Flaps is how often the carrier changed within the window of LinkFlapConfig.
	Flaps int
	// Missed is how many changes of carrier nothing but a counter told of, just now.
	Missed int
	// Reading is a new reading of the port's health. It has no valid field when
	// something else happened.
	Reading fabric.Health

	jumps *uint64
}

// up reports whether what the port receives says something about it: while a link
// comes and goes errors are normal.
func (in *Input) up() bool { return in.Present && in.Port.Up() && in.Missed == 0 }

// jump counts a reading that cannot be true.
func (in *Input) jump() {
	if in.jumps != nil {
		*in.jumps++
	}
}

// Signal is what a Detector says.
type Signal uint8

const (
	Quiet  Signal = iota // nothing new
	Trip                 // the fault is there
	Clear                // it is not (causes that are a level)
	Unwell               // neither: a port whose hold-up time is running begins it anew
)

// Policy is what becomes of a cause that tripped.
type Policy struct {
	Response Response
	// Latched causes stay until Recovery is over (0: until recovered by hand);
	// others are a level: they end once the detector has said Clear for HoldUp.
	Latched  bool
	Recovery time.Duration
	HoldUp   time.Duration
	// Lasting causes describe the port itself: they end by nothing but Clear, not
	// by hand and not with the port.
	Lasting bool
}
