package errdown

import (
	"fmt"
	"time"

	"github.com/openinof/inof/fabric"
)

// Config sets the causes. The zero value is usable: link-down at once, everything
// else counted only.
type Config struct {
	LinkDown     LinkDownConfig
	LinkFlap     LinkFlapConfig
	PFCStorm     PFCStormConfig
	CRC          CRCConfig
	LowPower     LowPowerConfig
	StormControl StormControlConfig
	// Ports are exceptions: the first that names a port is in force there instead of
	// all of the above. Exceptions of an exception do not count.
	Ports []Exception
}

// Exception is the whole configuration of some ports.
type Exception struct {
	Names  fabric.Names
	Config Config
}

// of gives the configuration of one port.
func (c *Config) of(port string) Config {
	for i := range c.Ports {
		if e := &c.Ports[i]; e.Names.Match(port) {
			out := e.Config
			out.Ports = nil
			return out
		}
	}
	out := *c
	out.Ports = nil
	return out
}

// LinkDownConfig sets the loss of carrier.
type LinkDownConfig struct {
	// HoldUp is how long the carrier must have been back before the port is well,
	// 0..1 min. Raise it where links bounce when they come up.
	HoldUp time.Duration
}

// LinkFlapConfig sets the flapping of a port.
type LinkFlapConfig struct {
	Changes  int           // of carrier within Window that trip, 2..1000; 0 means DefaultFlapChanges
	Window   time.Duration // 1 s..1 h; 0 means DefaultFlapWindow
	Response Response      // what a trip leads to
	Recovery time.Duration // 0: by hand only; else 30 s..24 h
}

// Reaction is what a cause that is measured leads to.
type Reaction struct {
	Response Response      // what a trip leads to
	Recovery time.Duration // of a port that was shut; 0: by hand only; else 30 s..24 h
	// HoldUp is for how long everything must have been well before a fault that only
	// notified is over, 1 s..24 h; 0 means DefaultHoldUp.
	HoldUp time.Duration
	// ClearPercent of the threshold is what the measure must be below to count as
	// well, 1..100; 0 means DefaultClearPercent. Lower it against a fault that comes
	// and goes.
	ClearPercent int
}

func (r *Reaction) policy() Policy {
	return Policy{Response: r.Response, Latched: r.Response == RespondShut, Recovery: r.Recovery, HoldUp: r.HoldUp}
}

// level compares a measure with its threshold.
func (r *Reaction) level(value, threshold float64) Signal {
	switch {
	case value >= threshold:
		return Trip
	case value*100 < threshold*float64(r.ClearPercent):
		return Clear
	}
	return Unwell
}

// CRCConfig sets the receiving of damaged frames.
type CRCConfig struct {
	Errors int           // within Window that trip, 1..1,000,000; 0 means DefaultCRCErrors
	Window time.Duration // 1 s..1 h; 0 means DefaultCRCWindow
	// PerMillion, when it is not 0, lets them trip only if there are at least so
	// many among a million frames of the window. Set it on fast links, where a few
	// errors in ten seconds are within what the standard allows.
	PerMillion int // 0..1,000,000
	Reaction
}

// PFCStormConfig sets PFC storms and deadlocks.
type PFCStormConfig struct {
	Detect    time.Duration // for how long a priority must be held to be in a deadlock, 10 ms..15 s; 0 means DefaultPFCDetect
	Recover   time.Duration // before the next detection, 10 ms..31 s; 0 means DefaultPFCRecover
	Deadlocks int           // of one priority within Window that trip, 1..300; 0 means DefaultDeadlocks
	Window    time.Duration // 1 s..1 h; 0 means DefaultPFCWindow
	// PauseFrames a second hold a priority, if it sends nothing: for drivers that
	// do not measure the time. 1..1,000,000,000; 0 means DefaultPauseFrames.
	PauseFrames int
	Reaction
}

// LowPowerConfig sets the receiving of too little light. Its ClearPercent is not used.
type LowPowerConfig struct {
	Below      int           // 1/1000 dBm, -39,000..10,000; 0 means DefaultLowPower
	Hysteresis int           // 1/1000 dB above Below that is well again, 1..10,000; 0 means DefaultPowerHysteresis
	Window     time.Duration // for how long, 1 s..1 h; 0 means DefaultPowerWindow
	Reaction
}

// StormControlConfig sets floods of broadcast and multicast frames.
type StormControlConfig struct {
	Broadcast int           // frames a second, 1..1,000,000,000; 0: no limit
	Multicast int           // the same
	Window    time.Duration // for how long, 1 s..1 h; 0 means DefaultStormWindow
	Reaction
}

// Response is what the trip of a cause leads to.
type Response uint8

const (
	RespondNone   Response = iota // count and show only; the cause never trips
	RespondNotify                 // a fault that hosts are told of; the port stays as it is
	RespondShut                   // error-down: a fault, and the port is shut
)

var responseNames = [...]string{"none", "notify", "error-down"}

func (r Response) String() string {
	if int(r) < len(responseNames) {
		return responseNames[r]
	}
	return fmt.Sprintf("response %d", uint8(r))
}

// MarshalText gives none, notify or error-down.
func (r Response) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (r *Response) UnmarshalText(b []byte) error {
	for i, n := range responseNames {
		if n == string(b) {
			*r = Response(i)
			return nil
		}
	}
	return fmt.Errorf("response %q is none of %v", b, responseNames)
}
