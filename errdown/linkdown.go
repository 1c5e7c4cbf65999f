package errdown

import (
	"time"

	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/snsd"
)

// LinkDown is a port without carrier.
const LinkDown Cause = "link-down"

// LinkDownConfig sets the loss of carrier.
type LinkDownConfig struct {
	// HoldUp is how long the carrier must have been back before the port is well,
	// 0..1 min. Raise it where links bounce when they come up.
	HoldUp time.Duration
}

func (c *LinkDownConfig) cause() (Cause, snsd.Reason) { return LinkDown, snsd.ReasonLinkDown }

// Settings implements kind.
func (c *LinkDownConfig) Settings() []setting.Setting {
	return []setting.Setting{
		setting.Span("hold-up", &c.HoldUp, 0, 0, time.Minute,
			"How long carrier must be back before a port counts as up again, against links that bounce while they come up. Losing carrier always counts at once."),
	}
}

func (c *LinkDownConfig) detector() Detector { return linkDown{c} }

// linkDown is the loss of carrier, for whatever reason: cable, peer, the
// operator's own shutting, or a port that is gone.
type linkDown struct{ cfg *LinkDownConfig }

func (linkDown) Look(in *Input) Signal {
	if in.Present && in.Port.Up() {
		return Clear
	}
	return Trip
}

func (linkDown) Next() time.Time { return time.Time{} }

func (linkDown) Reset() {}

func (d linkDown) Policy() Policy {
	return Policy{Response: RespondNotify, HoldUp: d.cfg.HoldUp, Lasting: true}
}

func (linkDown) Need() Need { return Need{} }
