package errdown

import (
	"time"

	"github.com/openinof/inof/fabric"
)

// Receive powers outside of this range are a module that does not measure. A link
// that is up has light.
const (
	leastPower = fabric.NoLight + 1
	mostPower  = 20_000
)

// lowPower is a module that receives too little light for the whole window.
type lowPower struct {
	cfg   *Config
	below streak
}

func newLowPower(cfg *Config) Detector { return &lowPower{cfg: cfg} }

func (d *lowPower) Look(in *Input) Signal {
	if !in.up() {
		d.below.end()
		return Unwell
	}
	h, c := &in.Reading, &d.cfg.LowPower
	if !h.Has(fabric.FieldRxPower) {
		return Quiet
	}
	switch {
	case h.RxPower < leastPower || h.RxPower > mostPower:
		in.jump()
		d.below.end()
		return Quiet
	case h.RxPower < c.Below:
		if d.below.lasts(h.At, h.At, c.Window) {
			return Trip
		}
		return Unwell
	}
	d.below.end()
	if h.RxPower < c.Below+c.Hysteresis {
		return Unwell
	}
	return Clear
}

func (d *lowPower) Next() time.Time { return time.Time{} }

func (d *lowPower) Reset() { d.below.end() }

func (d *lowPower) Policy() Policy { return d.cfg.LowPower.policy() }

func (d *lowPower) Need() Need {
	c := &d.cfg.LowPower
	if c.Response == RespondNone {
		return Need{}
	}
	return Need{fabric.FieldRxPower, within(c.Window/3, time.Second, 30*time.Second)}
}
