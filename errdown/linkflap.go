package errdown

import (
	"time"

	"github.com/openinof/inof/fabric"
)

// linkFlap is a carrier that changes too often. The changes themselves are counted
// for every port, whether or not this cause is enabled; see tally.
type linkFlap struct{ cfg *Config }

func newLinkFlap(cfg *Config) Detector { return linkFlap{cfg} }

func (d linkFlap) Look(in *Input) Signal {
	if in.Flaps >= d.cfg.LinkFlap.Changes {
		return Trip
	}
	return Quiet
}

func (linkFlap) Next() time.Time { return time.Time{} }

func (linkFlap) Reset() {}

func (d linkFlap) Policy() Policy {
	f := d.cfg.LinkFlap
	return Policy{Response: f.Response, Latched: true, Recovery: f.Recovery}
}

// tallyInterval is how often the count of carrier changes is compared with the events.
const tallyInterval = time.Second

func (linkFlap) Need() Need { return Need{fabric.FieldCounters, tallyInterval} }
