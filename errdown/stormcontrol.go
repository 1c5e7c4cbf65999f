package errdown

import (
	"time"

	"github.com/openinof/inof/fabric"
)

// stormControl is a port that floods the fabric: more broadcast or multicast frames
// a second than allowed, in every reading of the whole window.
type stormControl struct {
	cfg   *Config
	kinds [2]struct { // broadcast, multicast
		total meter
		over  streak
	}
}

func newStormControl(cfg *Config) Detector { return &stormControl{cfg: cfg} }

func (d *stormControl) Look(in *Input) Signal {
	if !in.up() {
		d.Reset()
		return Unwell
	}
	c, h := &d.cfg.StormControl, &in.Reading
	out := Quiet
	for i, k := range [...]struct {
		field fabric.Fields
		total uint64
		limit int
	}{{fabric.FieldBroadcast, h.RxBroadcast, c.Broadcast}, {fabric.FieldMulticast, h.RxMulticast, c.Multicast}} {
		if k.limit == 0 || !h.Has(k.field) {
			continue
		}
		out = worse(out, d.rate(i, k.total, float64(k.limit), in))
	}
	return out
}

func (d *stormControl) rate(i int, total uint64, limit float64, in *Input) Signal {
	k := &d.kinds[i]
	n, span, ok := k.total.read(total, 0, in)
	if ok && n > maxRate(span) {
		in.jump()
		ok = false
	}
	if !ok {
		k.over.end()
		return Quiet
	}
	rate := float64(n) / span.Seconds()
	if rate < limit {
		k.over.end()
	} else if !k.over.lasts(in.Reading.At.Add(-span), in.Reading.At, d.cfg.StormControl.Window) {
		return Unwell
	}
	return d.cfg.StormControl.level(rate, limit)
}

func (d *stormControl) Next() time.Time { return time.Time{} }

func (d *stormControl) Reset() {
	for i := range d.kinds {
		d.kinds[i].total.drop()
		d.kinds[i].over.end()
	}
}

func (d *stormControl) Policy() Policy { return d.cfg.StormControl.policy() }

func (d *stormControl) Need() Need {
	c := &d.cfg.StormControl
	var f fabric.Fields
	if c.Broadcast > 0 {
		f |= fabric.FieldBroadcast
	}
	if c.Multicast > 0 {
		f |= fabric.FieldMulticast
	}
	if c.Response == RespondNone || f == 0 {
		return Need{}
	}
	return Need{f, within(c.Window/3, 100*time.Millisecond, time.Second)}
}
