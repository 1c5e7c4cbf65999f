package errdown

import (
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/snsd"
)

// LinkFlap is a carrier that changes too often.
const LinkFlap Cause = "link-flap"

// LinkFlapConfig sets the flapping of a port.
type LinkFlapConfig struct {
	Changes  int           // of carrier within Window that trip, 2..1000
	Window   time.Duration // 1 s..1 h
	Response Response      // what a trip leads to
	Recovery time.Duration // 0: by hand only; else 30 s..24 h
}

func (c *LinkFlapConfig) cause() (Cause, snsd.Reason) { return LinkFlap, snsd.ReasonLinkDown }

// Settings implements kind.
func (c *LinkFlapConfig) Settings() []setting.Setting {
	return []setting.Setting{
		setting.Int("changes", &c.Changes, 5, 2, maxFlapChanges, "Carrier changes within the window that make a port a flapping one."),
		setting.Span("window", &c.Window, 10*time.Second, minWindow, maxWindow, "Over how long changes are counted."),
		setting.Choice("action", &c.Response, RespondNone, responses,
			"As above, but flaps are always counted and shown, and `notify` lasts until `recovery` or `inofctl port recover`."),
		setting.SpanOrOff("recovery", &c.Recovery, minRecovery, maxRecovery,
			"After how long a port that was shut is opened again. `off`: by `inofctl port recover` only."),
	}
}

func (c *LinkFlapConfig) detector() Detector { return linkFlap{c} }

// linkFlap is a carrier that changes too often. The changes themselves are counted
// for every port, whether or not this cause is enabled; see tally.
type linkFlap struct{ cfg *LinkFlapConfig }

func (d linkFlap) Look(in *Input) Signal {
	if in.Flaps >= d.cfg.Changes {
		return Trip
	}
	return Quiet
}

func (linkFlap) Next() time.Time { return time.Time{} }

func (linkFlap) Reset() {}

func (d linkFlap) Policy() Policy {
	return Policy{Response: d.cfg.Response, Latched: true, Recovery: d.cfg.Recovery}
}

// tallyInterval is how often the count of carrier changes is compared with the events.
const tallyInterval = time.Second

func (linkFlap) Need() Need { return Need{Fields: fabric.FieldCounters, Every: tallyInterval} }
