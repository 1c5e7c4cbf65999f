package errdown

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openinof/inof/fabric"
)

// brokenTotal is a total whose driver wraps it, resets it and lets it leap.
type brokenTotal struct{ shown uint64 }

// breaks is what a driver does to all totals of a port before it counts on.
func breaks(t *rapid.T, last string) string {
	how := rapid.SampledFrom([]string{"", "", "", "", "leap", "reset", "wrap", "back"}).Draw(t, "breaks")
	if how == last {
		return "" // a total that leaps every time is one that grows
	}
	return how
}

// add breaks and then counts n real events. A leap is above what could be real.
func (b *brokenTotal) add(t *rapid.T, how string, real, n uint64) {
	switch how {
	case "leap":
		b.shown += rapid.Uint64Range(real, 1<<40).Draw(t, "leap")
	case "reset":
		b.shown = 0
	case "wrap":
		b.shown &= 1<<32 - 1
	case "back":
		b.shown -= min(b.shown, 50)
	}
	b.shown += n
}

// goodPort is a port with fewer errors than trip, seen through broken totals.
func goodPort(t *rapid.T) {
	cfg := Config{
		CRC:          CRCConfig{Reaction: Reaction{Response: RespondShut}},
		PFCStorm:     PFCStormConfig{Deadlocks: 1, Reaction: Reaction{Response: RespondShut}},
		StormControl: StormControlConfig{Broadcast: 100_000, Multicast: 100_000, Reaction: Reaction{Response: RespondShut}},
	}
	m := NewMonitor(cfg)
	now := t0
	up := fabric.Port{Name: "e1", Index: 1, AdminUp: true, Carrier: true}
	tell := func(kind fabric.EventKind, p fabric.Port) { m.Port(fabric.Event{Kind: kind, Port: p, At: now}, now) }
	tell(fabric.PortAdded, up)
	valid := fabric.Fields(rapid.Uint16().Draw(t, "valid")) &^ fabric.FieldDeadlocks
	var errs []time.Time // the real ones
	var crc, broadcast, multicast, frames, paused brokenTotal
	how := ""
	for range rapid.IntRange(1, 80).Draw(t, "steps") {
		step := time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond
		now = now.Add(step)
		n := rapid.Uint64Range(0, 2).Draw(t, "errors")
		for len(errs) > 0 && now.Sub(errs[0]) > 25*time.Second {
			errs = errs[1:]
		}
		if uint64(len(errs))+n > 2 {
			n = 0
		}
		for range n {
			errs = append(errs, now)
		}
		if rapid.IntRange(0, 9).Draw(t, "link") == 0 {
			down := up
			down.Carrier = false
			tell(fabric.PortChanged, down)
			crc.shown += rapid.Uint64Range(0, 900).Draw(t, "training")
			tell(fabric.PortChanged, up)
		}
		how = breaks(t, how)
		crc.add(t, how, maxCRCStep+100, n)
		broadcast.add(t, how, maxCRCStep+100, rapid.Uint64Range(0, uint64(step.Seconds()*90_000)).Draw(t, "broadcast"))
		multicast.add(t, how, maxCRCStep+100, rapid.Uint64Range(0, uint64(step.Seconds()*90_000)).Draw(t, "multicast"))
		was := frames.shown
		frames.add(t, how, maxCRCStep+100, rapid.Uint64Range(1, 1000).Draw(t, "sent"))
		if frames.shown == was { // something always gets through; one that broke and came to the same again would hide it
			frames.shown++
		}
		paused.add(t, how, uint64(2*step), uint64(step)*9/10)
		h := fabric.Health{At: now, Valid: valid, RxCRC: crc.shown, RxBroadcast: broadcast.shown, RxMulticast: multicast.shown}
		h.TxFrames[3], h.RxPauseTime[3], h.RxPause[3] = frames.shown, time.Duration(paused.shown), paused.shown
		for _, c := range m.Sample("e1", h, now) {
			if c.Faulty && c.Cause != LinkDown {
				t.Fatalf("%v after %v with %d errors in the last 25 s", c.Cause, now.Sub(t0), len(errs))
			}
		}
	}
}

func TestBrokenTotalsTripNothing(t *testing.T) { rapid.Check(t, goodPort) }

// anyHealth is whatever a driver may say.
func anyHealth(t *rapid.T, now time.Time) fabric.Health {
	h := fabric.Health{At: now, Valid: fabric.Fields(rapid.Uint16().Draw(t, "valid")),
		RxCRC: rapid.Uint64().Draw(t, "crc"), RxBroadcast: rapid.Uint64().Draw(t, "broadcast"),
		RxMulticast: rapid.Uint64().Draw(t, "multicast"), RxPower: rapid.Int().Draw(t, "power"), Deadlocked: rapid.Uint8().Draw(t, "deadlocked")}
	h.Counters.RxFrames, h.Counters.CarrierChanges = rapid.Uint64().Draw(t, "frames"), rapid.Uint64().Draw(t, "carrier")
	p := rapid.IntRange(0, 7).Draw(t, "priority")
	h.RxPause[p], h.TxFrames[p] = rapid.Uint64().Draw(t, "pause"), rapid.Uint64().Draw(t, "sent")
	h.Deadlocks[p], h.RxPauseTime[p] = rapid.Uint64().Draw(t, "deadlocks"), time.Duration(rapid.Int64().Draw(t, "pause time"))
	if rapid.IntRange(0, 9).Draw(t, "no time") == 0 {
		h.At = time.Unix(0, 0)
	}
	return h
}

// anyReadings lets drivers say anything, and checks what a listener believes.
func anyReadings(t *rapid.T) {
	w := newWorld(t)
	r := Reaction{Response: Response(rapid.IntRange(0, 2).Draw(t, "measured")), Recovery: 30 * time.Second}
	w.cfg.CRC.Reaction, w.cfg.PFCStorm.Reaction, w.cfg.LowPower.Reaction, w.cfg.StormControl.Reaction = r, r, r, r
	w.cfg.PFCStorm.Deadlocks, w.cfg.StormControl.Broadcast = 1, 1
	w.apply(t, w.m.SetConfig(w.cfg, w.now))
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		name := rapid.SampledFrom(wireNames).Draw(t, "port")
		switch rapid.IntRange(0, 4).Draw(t, "what") {
		case 0:
			w.step(t)
		case 1:
			if changes, err := w.m.Shut(name, w.now); err == nil {
				w.apply(t, changes)
			}
		default:
			w.pass(t, time.Duration(rapid.IntRange(1, 12_000).Draw(t, "ms"))*time.Millisecond)
			w.apply(t, w.m.Sample(name, anyHealth(t, w.now), w.now))
		}
		w.check(t)
	}
	w.settle(t)
	w.check(t)
}

func TestNoReadingLosesAFault(t *testing.T) { rapid.Check(t, anyReadings) }

func FuzzReadings(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyReadings)) }
