package errdown

import (
	"errors"
	"fmt"
	"time"

	"github.com/openinof/inof/fabric"
)

// Defaults and ranges of the fields of Config (vendor defaults where there are any).
const (
	DefaultFlapChanges = 5
	DefaultFlapWindow  = 10 * time.Second

	MaxHoldUp      = time.Minute // of link-down
	MinFlapChanges = 2
	MaxFlapChanges = 1000
	MinFlapWindow  = time.Second
	MaxFlapWindow  = time.Hour
	MinRecovery    = 30 * time.Second
	MaxRecovery    = 86400 * time.Second

	DefaultHoldUp       = 10 * time.Second // of what is measured
	MinMeasuredHoldUp   = time.Second
	MaxMeasuredHoldUp   = MaxRecovery
	DefaultClearPercent = 50
	MinWindow           = time.Second
	MaxWindow           = time.Hour
	MostOfAll           = 1_000_000_000 // the largest rate and number a threshold may have

	DefaultCRCErrors = 3
	MaxCRCErrors     = 1_000_000
	DefaultCRCWindow = 10 * time.Second
	MaxPerMillion    = 1_000_000

	DefaultPFCDetect   = 100 * time.Millisecond
	MinPFCDetect       = 10 * time.Millisecond
	MaxPFCDetect       = 15 * time.Second
	DefaultPFCRecover  = 100 * time.Millisecond
	MinPFCRecover      = 10 * time.Millisecond
	MaxPFCRecover      = 31 * time.Second
	DefaultDeadlocks   = 30
	MaxDeadlocks       = 300
	DefaultPFCWindow   = 20 * time.Second
	DefaultPauseFrames = 1000

	DefaultLowPower        = -14_000
	LeastLowPower          = fabric.NoLight + 1000
	MostLowPower           = 10_000
	DefaultPowerHysteresis = 1_000
	MaxPowerHysteresis     = 10_000
	DefaultPowerWindow     = 30 * time.Second

	DefaultStormWindow = 5 * time.Second
)

// ErrConfig is wrapped by every error of Validate.
var ErrConfig = errors.New("error-down configuration")

// ranges goes through every value that has a range.
type ranges struct {
	number   func(field string, v *int, least, most int)
	duration func(field string, v *time.Duration, least, most time.Duration)
	response func(field string, v *Response)
}

// each shows all values of c to r; where 0 has a meaning of its own r must know.
func (c *Config) each(r ranges) {
	r.duration("link-down hold-up", &c.LinkDown.HoldUp, 0, MaxHoldUp)
	f := &c.LinkFlap
	r.number("link-flap changes", &f.Changes, MinFlapChanges, MaxFlapChanges)
	r.duration("link-flap window", &f.Window, MinFlapWindow, MaxFlapWindow)
	r.response("link-flap response", &f.Response)
	r.duration("link-flap recovery (0 is off)", &f.Recovery, MinRecovery, MaxRecovery)

	e := &c.CRC
	r.number("crc errors", &e.Errors, 1, MaxCRCErrors)
	r.duration("crc window", &e.Window, MinWindow, MaxWindow)
	r.number("crc per million (0 is off)", &e.PerMillion, 0, MaxPerMillion)
	e.each("crc", r)

	p := &c.PFCStorm
	r.duration("pfc-storm detect", &p.Detect, MinPFCDetect, MaxPFCDetect)
	r.duration("pfc-storm recover", &p.Recover, MinPFCRecover, MaxPFCRecover)
	r.number("pfc-storm deadlocks", &p.Deadlocks, 1, MaxDeadlocks)
	r.duration("pfc-storm window", &p.Window, MinWindow, MaxWindow)
	r.number("pfc-storm pause frames", &p.PauseFrames, 1, MostOfAll)
	p.each("pfc-storm", r)

	l := &c.LowPower
	r.number("low-receive-power below", &l.Below, LeastLowPower, MostLowPower)
	r.number("low-receive-power hysteresis", &l.Hysteresis, 1, MaxPowerHysteresis)
	r.duration("low-receive-power window", &l.Window, MinWindow, MaxWindow)
	l.each("low-receive-power", r)

	s := &c.StormControl
	r.number("storm-control broadcast (0 is off)", &s.Broadcast, 0, MostOfAll)
	r.number("storm-control multicast (0 is off)", &s.Multicast, 0, MostOfAll)
	r.duration("storm-control window", &s.Window, MinWindow, MaxWindow)
	s.each("storm-control", r)
}

func (a *Reaction) each(cause string, r ranges) {
	r.response(cause+" response", &a.Response)
	r.duration(cause+" recovery (0 is off)", &a.Recovery, MinRecovery, MaxRecovery)
	r.duration(cause+" hold-up", &a.HoldUp, MinMeasuredHoldUp, MaxMeasuredHoldUp)
	r.number(cause+" clear percent", &a.ClearPercent, 1, 100)
}

// Validate gives every value that is out of range, joined. Zero is a default or
// off and always right.
func (c Config) Validate() error {
	var errs []error
	where := ""
	wrong := func(field string, value, least, most any) {
		errs = append(errs, fmt.Errorf("%w: %s%s is %v, want %v..%v", ErrConfig, where, field, value, least, most))
	}
	check := ranges{
		number: func(field string, v *int, least, most int) {
			if *v != 0 && (*v < least || *v > most) {
				wrong(field, *v, least, most)
			}
		},
		duration: func(field string, v *time.Duration, least, most time.Duration) {
			if *v != 0 && (*v < least || *v > most) {
				wrong(field, *v, least, most)
			}
		},
		response: func(field string, v *Response) {
			if *v > RespondShut {
				wrong(field, *v, RespondNone, RespondShut)
			}
		},
	}
	c.each(check)
	for i := range c.Ports {
		where = fmt.Sprintf("ports %s: ", c.Ports[i].Names)
		c.Ports[i].Config.each(check)
	}
	return errors.Join(errs...)
}

// withDefaults fills what is 0 and brings the rest into range, so that a Monitor
// never runs on values that Validate refuses. The argument is not changed.
func (c Config) withDefaults() Config {
	exceptions := c.Ports
	c.Ports = nil
	c.complete()
	for _, e := range exceptions {
		e.Config.Ports = nil
		e.Config.complete()
		c.Ports = append(c.Ports, e)
	}
	return c
}

func (c *Config) complete() {
	setDefault(&c.LinkFlap.Changes, DefaultFlapChanges)
	setDefault(&c.LinkFlap.Window, DefaultFlapWindow)
	setDefault(&c.CRC.Errors, DefaultCRCErrors)
	setDefault(&c.CRC.Window, DefaultCRCWindow)
	p := &c.PFCStorm
	setDefault(&p.Detect, DefaultPFCDetect)
	setDefault(&p.Recover, DefaultPFCRecover)
	setDefault(&p.Deadlocks, DefaultDeadlocks)
	setDefault(&p.Window, DefaultPFCWindow)
	setDefault(&p.PauseFrames, DefaultPauseFrames)
	setDefault(&c.LowPower.Below, DefaultLowPower)
	setDefault(&c.LowPower.Hysteresis, DefaultPowerHysteresis)
	setDefault(&c.LowPower.Window, DefaultPowerWindow)
	setDefault(&c.StormControl.Window, DefaultStormWindow)
	for _, r := range []*Reaction{&c.CRC.Reaction, &p.Reaction, &c.LowPower.Reaction, &c.StormControl.Reaction} {
		setDefault(&r.HoldUp, DefaultHoldUp)
		setDefault(&r.ClearPercent, DefaultClearPercent)
	}
	c.each(ranges{ // what is 0 now is off
		number: func(_ string, v *int, least, most int) {
			if *v != 0 {
				*v = min(max(*v, least), most)
			}
		},
		duration: func(_ string, v *time.Duration, least, most time.Duration) {
			if *v != 0 {
				*v = within(*v, least, most)
			}
		},
		response: func(_ string, v *Response) {
			if *v > RespondShut {
				*v = RespondNone
			}
		},
	})
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
