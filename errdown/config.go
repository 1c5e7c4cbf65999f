package errdown

import (
	"errors"
	"fmt"
	"time"
)

// Config sets the causes. The zero value is usable: link-down at once, flaps
// counted only.
type Config struct {
	LinkDown LinkDownConfig
	LinkFlap LinkFlapConfig
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

// Defaults and ranges of the fields of Config (vendor defaults where there are any).
const (
	DefaultFlapChanges = 5
	DefaultFlapWindow  = 10 * time.Second

	MaxHoldUp      = time.Minute
	MinFlapChanges = 2
	MaxFlapChanges = 1000
	MinFlapWindow  = time.Second
	MaxFlapWindow  = time.Hour
	MinRecovery    = 30 * time.Second
	MaxRecovery    = 86400 * time.Second
)

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

// Validate gives every value that is out of range, joined.
func (c Config) Validate() error {
	var errs []error
	want := func(ok bool, field string, value, lowest, highest any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: %s is %v, want %v..%v", ErrConfig, field, value, lowest, highest))
		}
	}
	f := c.LinkFlap
	want(c.LinkDown.HoldUp >= 0 && c.LinkDown.HoldUp <= MaxHoldUp, "link-down hold-up", c.LinkDown.HoldUp, time.Duration(0), MaxHoldUp)
	want(f.Changes == 0 || f.Changes >= MinFlapChanges && f.Changes <= MaxFlapChanges, "link-flap changes", f.Changes, MinFlapChanges, MaxFlapChanges)
	want(f.Window == 0 || f.Window >= MinFlapWindow && f.Window <= MaxFlapWindow, "link-flap window", f.Window, MinFlapWindow, MaxFlapWindow)
	want(f.Response <= RespondShut, "link-flap response", f.Response, RespondNone, RespondShut)
	want(f.Recovery == 0 || f.Recovery >= MinRecovery && f.Recovery <= MaxRecovery, "link-flap recovery (0 is off)", f.Recovery, MinRecovery, MaxRecovery)
	return errors.Join(errs...)
}

// withDefaults fills what is 0 and brings the rest into range, so that a Monitor
// never runs on values that Validate refuses.
func (c Config) withDefaults() Config {
	f := &c.LinkFlap
	if f.Changes == 0 {
		f.Changes = DefaultFlapChanges
	}
	if f.Window == 0 {
		f.Window = DefaultFlapWindow
	}
	c.LinkDown.HoldUp = min(max(c.LinkDown.HoldUp, 0), MaxHoldUp)
	f.Changes = min(max(f.Changes, MinFlapChanges), MaxFlapChanges)
	f.Window = min(max(f.Window, MinFlapWindow), MaxFlapWindow)
	if f.Recovery != 0 {
		f.Recovery = min(max(f.Recovery, MinRecovery), MaxRecovery)
	}
	if f.Response > RespondShut {
		f.Response = RespondNone
	}
	return c
}
