package errdown

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/setting"
)

// Config lists the causes, the most serious first, with their settings. The zero value is
// usable: link-down at once, everything else counted only.
type Config struct {
	LinkDown     LinkDownConfig     // no carrier, shut by the operator, or removed
	Manual       ManualConfig       // shut by hand, through us
	Drained      DrainConfig        // taken out of service in order, through us
	LinkFlap     LinkFlapConfig     // the carrier changed too often
	PFCStorm     PFCStormConfig     // PFC frames keep a priority from being sent for too long, again and again
	CRC          CRCConfig          // frames arrive damaged
	LowPower     LowPowerConfig     // the module receives too little light
	StormControl StormControlConfig // too many broadcast or multicast frames arrive
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

// Reaction is what a cause that is measured leads to.
type Reaction struct {
	Response Response      // what a trip leads to
	Recovery time.Duration // of a port that was shut; 0: by hand only; else 30 s..24 h
	// HoldUp is for how long everything must have been well before a fault that only
	// notified is over, 1 s..24 h; 0 means 10 s.
	HoldUp time.Duration
	// ClearPercent of the threshold is what the measure must be below to count as
	// well, 1..100; 0 means 50. Lower it against a fault that comes
	// and goes.
	ClearPercent int
}

// Ranges that the causes share.
const (
	minRecovery, maxRecovery = 30 * time.Second, 24 * time.Hour
	minWindow, maxWindow     = time.Second, time.Hour
	mostOfAll                = 1_000_000_000 // the largest rate and number a threshold may have
)

var responses = []Response{RespondNone, RespondNotify, RespondShut}

// settings are those that the measured causes share; action says what is special about that.
func (r *Reaction) settings(action string) []setting.Setting {
	return []setting.Setting{
		setting.Choice("action", &r.Response, RespondNone, responses, action),
		setting.SpanOrOff("recovery", &r.Recovery, minRecovery, maxRecovery, "As for link-flap."),
		setting.Span("hold-up", &r.HoldUp, 10*time.Second, time.Second, maxRecovery, "How long all must be well before a fault that was notified is over."),
	}
}

// clearing is settings with that of a threshold.
func (r *Reaction) clearing(action string) []setting.Setting {
	return append(r.settings(action), setting.Int("clear-percent", &r.ClearPercent, 50, 1, 100,
		"Below which part of the threshold a measure counts as well. Lower it against a fault that comes and goes."))
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

// ErrConfig is wrapped by every error of Validate.
var ErrConfig = errors.New("error-down configuration")

// Validate gives every value that is out of range, joined. Zero is a default or
// off and always right.
func (c Config) Validate() error {
	errs := c.wrong("")
	for i := range c.Ports {
		errs = append(errs, c.Ports[i].Config.wrong(fmt.Sprintf("ports %s: ", c.Ports[i].Names))...)
	}
	return errors.Join(errs...)
}

func (c *Config) wrong(where string) (errs []error) {
	for _, k := range c.kinds() {
		cause, _ := k.cause()
		for _, s := range k.Settings() {
			if what := s.Wrong(); what != "" {
				errs = append(errs, fmt.Errorf("%w: %s%s %s %s", ErrConfig, where, cause, s.Key, what))
			}
		}
	}
	return errs
}

// withDefaults fills what is 0 and brings the rest into range, so that a Monitor
// never runs on values that Validate refuses. The argument is not changed.
func (c Config) withDefaults() Config {
	c.Ports = slices.Clone(c.Ports)
	c.complete()
	for i := range c.Ports {
		c.Ports[i].Config.Ports = nil
		c.Ports[i].Config.complete()
	}
	return c
}

func (c *Config) complete() {
	for _, k := range c.kinds() {
		for _, s := range k.Settings() {
			s.Complete()
		}
	}
}

// Section is what is set about one cause: a section of the configuration with its name.
type Section struct {
	Name     string
	Settings []setting.Setting
	together func() (key, wrong, want string)
}

// Together says which setting is wrong because of others, and what it should be; empty: none.
func (s *Section) Together() (key, wrong, want string) {
	if s.together == nil {
		return "", "", ""
	}
	return s.together()
}

// Sections are all settings of c, but for the exceptions of ports.
func (c *Config) Sections() (list []Section) {
	for _, k := range c.kinds() {
		if settings := k.Settings(); len(settings) > 0 {
			cause, _ := k.cause()
			s := Section{Name: string(cause), Settings: settings}
			if t, ok := k.(interface {
				Together() (key, wrong, want string)
			}); ok {
				s.together = t.Together
			}
			list = append(list, s)
		}
	}
	return list
}
