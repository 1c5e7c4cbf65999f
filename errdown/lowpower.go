package errdown

import (
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/snsd"
)

// LowPower is a module that receives too little light.
const LowPower Cause = "low-receive-power"

// LowPowerConfig sets the receiving of too little light. Its ClearPercent is not used.
type LowPowerConfig struct {
	Below      int           // 1/1000 dBm, -39,000..10,000
	Hysteresis int           // 1/1000 dB above Below that is well again, 1..10,000
	Window     time.Duration // for how long, 1 s..1 h
	Reaction
}

func (c *LowPowerConfig) cause() (Cause, snsd.Reason) { return LowPower, snsd.ReasonPacketError }

// Settings implements kind.
func (c *LowPowerConfig) Settings() []setting.Setting {
	return append([]setting.Setting{
		setting.Decibel("below", &c.Below, "dBm", -14_000, fabric.NoLight+1000, 10_000,
			"What the weakest lane of the module receives less than. The data sheet of the module says what it needs."),
		setting.Decibel("hysteresis", &c.Hysteresis, "dB", 1_000, 100, 10_000, "So much more than that is well again."),
		setting.Span("window", &c.Window, 30*time.Second, minWindow, maxWindow,
			"How long it must be less, in every reading; it is read three times within the window, at most once a second."),
	}, c.settings("As above. Hosts are told reason packet-error.")...)
}

func (c *LowPowerConfig) detector() Detector { return &lowPower{cfg: c} }

// Receive powers outside of this range are a module that does not measure. A link
// that is up has light.
const (
	leastPower = fabric.NoLight + 1
	mostPower  = 20_000
)

// lowPower is a module that receives too little light for the whole window.
type lowPower struct {
	cfg   *LowPowerConfig
	below streak
}

func (d *lowPower) Look(in *Input) Signal {
	if !in.up() {
		d.below.end()
		return Unwell
	}
	h, c := &in.Reading, d.cfg
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

func (d *lowPower) Policy() Policy { return d.cfg.policy() }

func (d *lowPower) Need() Need {
	c := d.cfg
	return Need{Fields: fabric.FieldRxPower, Every: within(c.Window/3, time.Second, 30*time.Second)}
}
