package daemon

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

var holdEpoch = time.Unix(1_700_000_000, 0)

var oneDevice, otherDevice = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")

// losses are those of some devices.
func losses(devs ...netip.Addr) (l reflector.Losses) {
	for _, dev := range devs {
		l.Several = l.Several || l.Any && l.One != dev
		if !l.Any {
			l.Any, l.One = true, dev
		}
	}
	return l
}

// A stream of messages that never ends, each of which takes some time, flushes that
// take some time too, and losses among them: no message waits longer than what was
// promised, and what finds that nothing was flushed lately does not wait.
func TestHoldIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h hold
		now := holdEpoch
		between := func(from, to time.Duration, name string) time.Duration {
			return time.Duration(rapid.Int64Range(int64(from), int64(to)).Draw(t, name))
		}
		var ended, toldLoss time.Time // of the last flush, and of the last with a loss
		var took time.Duration
		waits := false
		for range rapid.IntRange(1, 300).Draw(t, "messages") {
			step := between(0, 200*time.Microsecond, "step")
			if rapid.IntRange(0, 20).Draw(t, "pause") == 0 {
				step = between(0, 20*time.Millisecond, "pause")
			}
			now = now.Add(step)
			loss := rapid.IntRange(0, 10).Draw(t, "loss") == 0
			waits = waits || loss
			var l reflector.Losses
			if waits {
				l = losses(oneDevice)
			}
			bound := min(max(took, minHoldMessages), 10*time.Millisecond)
			if waits && now.Sub(toldLoss) >= 10*time.Millisecond {
				bound = minHoldMessages
			}
			if ended.IsZero() {
				bound = 0
			}
			if idle := now.Sub(ended); h.over(l, now) != (idle >= bound) {
				t.Fatalf("over is %v, %v after the last flush (which took %v); the bound is %v", h.over(l, now), idle, took, bound)
			}
			if !h.over(l, now) {
				continue
			}
			began := now
			took = between(0, 100*time.Millisecond, "flush")
			now = now.Add(took)
			h.done(l, began, now)
			if ended = now; waits {
				toldLoss = now
			}
			waits = false
		}
	})
}

func hostOf(dev netip.Addr) netip.Addr {
	b := dev.As4()
	b[1] = 1
	return netip.AddrFrom4(b)
}

// twoDevices is a reflector with two devices that have a host each in a zone.
func twoDevices(t *testing.T, out device.Actions) *device.Core {
	t.Helper()
	z := zone.Zone{Name: "z"}
	for _, dev := range []netip.Addr{oneDevice, otherDevice} {
		z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: hostOf(dev)})
	}
	c, err := device.New(device.Config{Self: netip.MustParseAddr("10.0.0.250"), Reflect: true, Epoch: 1,
		Zones: zone.Set{Zones: []zone.Zone{z}}, Reflector: reflector.Config{Paced: true}}, out, holdEpoch)
	if err != nil {
		t.Fatal(err)
	}
	for _, dev := range []netip.Addr{oneDevice, otherDevice} {
		c.ClientUp(dev, holdEpoch)
		u := &wire.Update{Origin: dev, Epoch: 1, Seq: 1, Hosts: []wire.HostRecord{{Op: wire.Put, Host: zone.Host{HostKey: zone.HostKey{Addr: hostOf(dev), Device: dev, Port: "p"}}}}}
		c.ClientMessage(dev, u, holdEpoch)
		c.ClientMessage(dev, &wire.EndOfSync{Epoch: 1, Seq: 1}, holdEpoch)
	}
	for c.Waiting() || c.Owing() {
		c.PullChanges(nil, holdEpoch)
		c.PullStep(nil, holdEpoch)
	}
	return c
}

// A device whose peers always have more to say, in fake time: a fault among their
// changes leaves within minHoldMessages of the last flush however long that took, and
// at once when there was none for so long.
func TestAFaultAmidAStreamLeavesSoon(t *testing.T) {
	const flush = 40 * time.Millisecond // as long as one to 1,000 clients, all in all
	now, reading := holdEpoch, 0
	d := &Device{inbox: link.NewInbox(0), log: api.NewEventLog(100, holdEpoch)}
	d.now = func() time.Time { return now }
	d.core = twoDevices(t, d)
	flushing := false
	d.now = func() time.Time {
		if flushing {
			if reading++; reading%2 == 0 { // its end
				now = now.Add(flush)
			}
		}
		return now
	}
	d.inbox.Put(link.PeerEvent{Peer: &link.Peer{}}, true, nil) // there is always another message
	// say takes a change in and reports whether it has left.
	seq := uint64(1)
	say := func(loss bool) bool {
		seq++
		u := &wire.Update{Origin: oneDevice, Epoch: 1, Seq: seq}
		if loss {
			since := holdEpoch.Add(time.Duration(seq))
			u.Downs = []wire.DownRecord{{Device: oneDevice, Port: "p", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: since}, Addrs: []netip.Addr{hostOf(oneDevice)}}}
		} else {
			u.Hosts = []wire.HostRecord{{Op: wire.Put, Host: zone.Host{HostKey: zone.HostKey{Addr: hostOf(oneDevice), Device: oneDevice, Port: "p"}, Service: snsd.Service{Port: uint16(seq)}}}}
		}
		d.core.ClientMessage(oneDevice, u, now)
		flushing = true
		d.release(now)
		flushing = false
		return !d.core.Waiting()
	}
	if !say(false) {
		t.Fatal("the first message waits, though nothing was flushed before")
	}
	streamed := now
	for now.Sub(streamed) < minHoldMessages-10*time.Microsecond {
		if now = now.Add(10 * time.Microsecond); say(false) {
			t.Fatalf("a change leaves %v after the last flush", now.Sub(streamed))
		}
	}
	if now = streamed.Add(minHoldMessages); !say(true) {
		t.Fatalf("a fault still waits %v after the last flush", minHoldMessages)
	}
	after := now
	for _, step := range []time.Duration{minHoldMessages, maxHoldMessages - time.Microsecond} {
		if now = after.Add(step); say(true) {
			t.Fatalf("a fault of a burst leaves %v after the last flush, which took %v", step, flush)
		}
	}
	if now = after.Add(maxHoldMessages); !say(true) {
		t.Fatalf("a fault of a burst still waits %v after the last flush", maxHoldMessages)
	}
	if now = now.Add(maxHoldMessages); !say(true) {
		t.Fatal("a fault waits, though nothing was flushed for long")
	}
	d.inbox.Take()
	if now = now.Add(time.Microsecond); !say(false) {
		t.Fatal("a change waits for others that are not there")
	}
}

// A device that tells of losses without end, in fake time: the loss of another one
// leaves as soon as if there were none.
func TestLossesOfOneDeviceAreNoBurstForAnother(t *testing.T) {
	own, honest := losses(oneDevice), losses(oneDevice, otherDevice)
	var h hold
	now := holdEpoch
	for range 100 {
		h.done(own, now, now.Add(40*time.Millisecond))
		now = now.Add(40 * time.Millisecond)
		if h.over(own, now.Add(maxHoldMessages-time.Microsecond)) {
			t.Fatal("its own losses do not wait for each other")
		}
		if !h.over(honest, now.Add(minHoldMessages)) {
			t.Fatal("the loss of another device waits for them")
		}
		h.done(honest, now, now)
		if now = now.Add(2 * maxHoldMessages); !h.over(reflector.Losses{}, now) {
			t.Fatal("nothing was flushed for long")
		}
	}
}
