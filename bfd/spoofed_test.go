package bfd

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func unnamed(p *Packet) { p.YourDiscr = 0 }

// A host that sends from the peer's address does not know our discriminator. While true
// packets arrive nothing that it sends ends the session.
func TestSpoofedPacketsDoNotFailAPathThatWorks(t *testing.T) {
	for _, st := range []State{StateDown, StateAdminDown} {
		pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
		pu.up()
		pu.takeEvents()
		for range 400 {
			if err := pu.says(st, unnamed, func(p *Packet) { p.MyDiscr = 4711 }); !errors.Is(err, ErrUnnamed) {
				t.Fatalf("%v: %v", st, err)
			}
			pu.wait(40 * ms)
			pu.mustSay(StateUp)
		}
		if ev := pu.takeEvents(); len(ev) != 0 || pu.s().state != StateUp || pu.s().remoteDiscr == 4711 {
			t.Errorf("%v: %+v", st, ev)
		}
		if c := pu.m.Counters(); c.Unnamed != 400 || c.Flaps != 0 {
			t.Errorf("counters %+v", c)
		}
	}
}

// A path that failed stays failed, whoever claims that the peer is held down on purpose;
// the peer itself knows our discriminator, since it hears us.
func TestASpoofedAdminDownHidesNoFailure(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.takeEvents()
	spoof := func() { _ = pu.says(StateAdminDown, unnamed) }
	for range 10 { // before, while and after it fails
		spoof()
		pu.wait(30 * ms)
	}
	if d := cmp.Diff([]Report{ReportDown}, reports(pu.takeEvents())); d != "" {
		t.Fatal(d)
	}
	for range 50 {
		spoof()
		pu.wait(time.Second)
	}
	if ev := pu.takeEvents(); len(ev) != 0 {
		t.Errorf("hidden: %+v", ev)
	}
	pu.mustSay(StateAdminDown)
	if d := cmp.Diff([]Report{ReportAdminDown}, reports(pu.takeEvents())); d != "" {
		t.Error(d)
	}
}

// Who floods with what a restarted peer would send puts off the report of a real failure
// by the patience with such a peer and no more.
func TestASpoofedRestartDelaysAFailureNoLongerThanARealOne(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.takeEvents()
	failed := pu.now
	for len(pu.events) == 0 && pu.now.Sub(failed) < time.Minute {
		_ = pu.says(StateDown, unnamed)
		pu.wait(20 * ms)
	}
	ev := pu.takeEvents()
	if d := cmp.Diff([]Report{ReportDown}, reports(ev)); d != "" {
		t.Fatal(d)
	}
	if after := pu.now.Sub(failed); after > 150*ms+5*time.Second+20*ms {
		t.Errorf("told after %v", after)
	}
}
