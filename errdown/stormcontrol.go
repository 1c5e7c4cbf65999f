package errdown

import (
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/snsd"
)

// StormControl is a flood of broadcast or multicast frames.
const StormControl Cause = "storm-control"

// StormControlConfig sets floods of broadcast and multicast frames.
type StormControlConfig struct {
	Broadcast int           // frames a second, 1..1,000,000,000; 0: no limit
	Multicast int           // the same
	Window    time.Duration // for how long, 1 s..1 h
	Reaction
}

func (c *StormControlConfig) cause() (Cause, snsd.Reason) {
	return StormControl, snsd.ReasonPacketError
}

// Settings implements kind.
func (c *StormControlConfig) Settings() []setting.Setting {
	return append([]setting.Setting{
		setting.Int("broadcast", &c.Broadcast, 0, 0, mostOfAll, "Broadcast frames a second from the host that are too many. 0: no limit."),
		setting.Int("multicast", &c.Multicast, 0, 0, mostOfAll, "The same for multicast frames (some drivers count broadcast among them)."),
		setting.Span("window", &c.Window, 5*time.Second, minWindow, maxWindow, "How long the rate must be that high, in every reading."),
	}, c.clearing("As above; it needs one of the limits. Hosts are told reason packet-error.")...)
}

// Together implements kind.
func (c *StormControlConfig) Together() (key, wrong, want string) {
	if c.Response != RespondNone && c.Broadcast == 0 && c.Multicast == 0 {
		return "action", "has nothing to act on: there is no limit", "a limit in broadcast or multicast, or the action none"
	}
	return "", "", ""
}

func (c *StormControlConfig) detector() Detector { return &stormControl{cfg: c} }

// stormControl is a port that floods the fabric: more broadcast or multicast frames
// a second than allowed, in every reading of the whole window.
type stormControl struct {
	cfg   *StormControlConfig
	kinds [2]struct { // broadcast, multicast
		total meter
		over  streak
	}
}

func (d *stormControl) Look(in *Input) Signal {
	if !in.up() {
		d.Reset()
		return Unwell
	}
	c, h := d.cfg, &in.Reading
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
	} else if !k.over.lasts(in.Reading.At.Add(-span), in.Reading.At, d.cfg.Window) {
		return Unwell
	}
	return d.cfg.level(rate, limit)
}

func (d *stormControl) Next() time.Time { return time.Time{} }

func (d *stormControl) Reset() {
	for i := range d.kinds {
		d.kinds[i].total.drop()
		d.kinds[i].over.end()
	}
}

func (d *stormControl) Policy() Policy { return d.cfg.policy() }

func (d *stormControl) Need() Need {
	c := d.cfg
	var f fabric.Fields
	if c.Broadcast > 0 {
		f |= fabric.FieldBroadcast
	}
	if c.Multicast > 0 {
		f |= fabric.FieldMulticast
	}
	if f == 0 {
		return Need{}
	}
	return Need{Fields: f, Every: within(c.Window/3, 100*time.Millisecond, time.Second)}
}
