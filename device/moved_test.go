package device

import (
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/snsd"
)

// told counts what a bareCore sent since the last call: new notices, and repeated ones.
func (b *bareCore) told(last *hostnotify.Counters) (sent, retried uint64) {
	c := b.notify.Counters()
	sent, retried = c.Sent-last.Sent, c.Retried-last.Retried
	*last = c
	return sent, retried
}

func TestWhatIsToldAfterARestartDependsOnWhatIsProved(t *testing.T) {
	for _, c := range []struct {
		name          string
		change        func(b *bareCore)
		sent, retried uint64
	}{
		{"nothing happened", func(*bareCore) {}, 0, 0},
		{"the carrier moved", func(b *bareCore) { b.changes["eth1"] += 2 }, 1, 0},
		{"nobody counts", func(b *bareCore) { b.changes["eth1"] = 0 }, 0, 1},
		{"the machine was started", func(b *bareCore) { b.disk.PowerCut() }, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBareCore(t, true)
			b.twoHosts()
			for _, s := range b.notify.Notices() {
				b.notify.Ack(s.Port, snsd.Ack{Host: s.Host, Subject: s.Subject, Seq: s.Seq}, b.now)
			}
			b.KeepRows(b.now)
			b.disk.Stop()
			c.change(b)
			st := keptIn(t, b.disk)
			b.now = b.now.Add(2 * time.Second)
			b.start(true, st)
			for _, p := range []string{"eth1", "eth2"} {
				kind := fabric.PortAdded
				b.Port(fabric.Event{Kind: kind, At: b.now, Changes: b.changes[p], Port: fabric.Port{Name: p, Index: 1, AdminUp: true, Carrier: true}}, b.now)
			}
			b.Start(b.now)
			b.Tick(b.now)
			var none hostnotify.Counters
			if sent, retried := b.told(&none); sent != c.sent || retried != c.retried {
				t.Errorf("%d sent, %d repeated, want %d and %d", sent, retried, c.sent, c.retried)
			}
		})
	}
}

// A kill between two faults: what was told before is neither repeated nor forgotten, and a
// standing inactive is no news.
func TestAfterAKillNothingIsRepeated(t *testing.T) {
	b := newBareCore(t, true)
	b.twoHosts()
	ack := func() {
		for _, s := range b.notify.Notices() {
			b.notify.Ack(s.Port, snsd.Ack{Host: s.Host, Subject: s.Subject, Seq: s.Seq}, b.now)
		}
		b.Tick(b.now)
	}
	ack()
	b.carrier("eth2", false, fabric.PortChanged)
	b.Tick(b.now)
	ack()
	b.disk.Commit(b.disk.Pending() / 2)
	st := keptIn(t, b.disk) // killed
	b.now = b.now.Add(time.Second)
	b.start(true, st)
	b.carrier("eth1", true, fabric.PortAdded)
	b.changes["eth2"]++
	b.carrier("eth2", true, fabric.PortAdded) // the cable is back
	b.Start(b.now)
	b.Tick(b.now)
	var none hostnotify.Counters
	if sent, retried := b.told(&none); sent != 1 || retried != 0 {
		t.Errorf("%d sent, %d repeated", sent, retried)
	}
	// The host whose cable is back is told all; the other one knows that it cannot be reached.
	if all := b.notify.Notices(); all[len(all)-1].Host.String() != i2 {
		t.Errorf("told as news: %+v", all[len(all)-1])
	}
	b.register("h2", "eth2", i2)
	if got := b.state(i2); got != "active none" {
		t.Errorf("heard again: %s", got)
	}
}
