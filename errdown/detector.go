package errdown

import (
	"time"

	"github.com/openinof/inof/fabric"
)

// Detector looks at one port for one cause.
type Detector interface {
	// Look takes what is known now and says what follows from it.
	Look(in Input) Signal
	// Next is when Look wants to be called although nothing happened; zero for never.
	Next() time.Time
	// Reset forgets what led to a trip, after a recovery.
	Reset()
	// Policy says what a trip means; it is read at each trip and recovery.
	Policy() Policy
}

// Input is what a Detector may look at.
type Input struct {
	Now     time.Time
	Port    fabric.Port // the last state told
	Present bool        // false: the port was removed
	// Flaps is how often the carrier changed within the window of LinkFlapConfig.
	Flaps int
	// Sampled says that Was and Is are two successive readings of the counters.
	Sampled bool
	Was, Is fabric.Counters
}

// Signal is what a Detector says.
type Signal uint8

const (
	Quiet Signal = iota // nothing new
	Trip                // the fault is there
	Clear               // it is not (causes that are a level)
)

// Policy is what becomes of a cause that tripped.
type Policy struct {
	Response Response
	// Latched causes stay until Recovery is over (0: until recovered by hand);
	// others end once the detector has said Clear for HoldUp.
	Latched  bool
	Recovery time.Duration
	HoldUp   time.Duration
}
