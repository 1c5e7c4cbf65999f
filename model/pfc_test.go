package model

import "testing"

// pauser is two hosts on a switch, host 0 sending to host 1 without end.
func pauser(t *testing.T, sp SwitchProfile, np NICProfile) *Sim {
	t.Helper()
	s := oneSwitch(t, 2, sp, np, link100, Options{Seed: 1})
	if _, err := s.AddFlow(FlowSpec{Src: 0, Dst: 1, Bytes: Forever, TOS: 3 << 5}); err != nil {
		t.Fatal(err)
	}
	return s
}

func sent(s *Sim, p PortID, q int) uint64 { return s.Queue(p, q).TxFrames }

// A pause that nobody refreshes or cancels runs out after its quanta.
func TestPauseExpires(t *testing.T) {
	np := ReferenceNIC(nil)
	np.PFC.Quanta = 1000 // 5.12 us at 100G
	s := pauser(t, ReferenceSwitch(1<<20, nil), np)
	run(t, s, 20*Microsecond)
	s.Storm(1, 1<<3, 100*Microsecond, s.Now()+50*Microsecond) // no refresh in time
	sw := s.PortOf(0, 1)
	run(t, s, s.Now()+4*Microsecond)
	a := sent(s, sw, 3)
	run(t, s, s.Now()+2*Microsecond)
	if b := sent(s, sw, 3); b != a {
		t.Errorf("%d frames left while paused", b-a)
	}
	// The storm's frame carries the maximum of 335 us; it is cancelled at 50 us.
	run(t, s, s.Now()+60*Microsecond)
	if st := s.Queue(sw, 3); st.PausedNow || st.RxXoff != 1 || st.RxXon != 1 || st.Paused < 49*Microsecond || st.Paused > 51*Microsecond {
		t.Errorf("after the storm: %+v", st)
	}
}

func run(t testing.TB, s *Sim, until Time) {
	t.Helper()
	if err := s.Run(until); err != nil {
		t.Fatal(err)
	}
}

// With finite quanta an XOFF that lasts is refreshed, so the queue never moves.
func TestXoffIsRefreshed(t *testing.T) {
	sp := ReferenceSwitch(400_000, nil)
	sp.PFC.Quanta = 2000 // 10.24 us
	s := pauser(t, sp, ReferenceNIC(nil))
	run(t, s, 5*Microsecond)
	s.Storm(1, 1<<3, 50*Microsecond, 500*Microsecond) // host 1 stops the switch, which stops host 0
	run(t, s, 200*Microsecond)
	up := s.PortOf(1, 0) // host 0
	a := sent(s, up, 3)
	run(t, s, 450*Microsecond)
	if b := sent(s, up, 3); b != a {
		t.Errorf("host 0 sent %d frames against a refreshed XOFF", b-a)
	}
	if n := s.Queue(s.PortOf(0, 0), 3).TxXoff; n < 80 || n > 95 {
		t.Errorf("%d XOFF frames in about 450 us at one per 5.12 us", n)
	}
	run(t, s, 700*Microsecond)
	if sent(s, up, 3) == a {
		t.Error("host 0 did not go on after the storm")
	}
	if d := s.Totals().Dropped; len(d) > 0 {
		t.Errorf("dropped %v", d)
	}
}

// The reaction time counts from the arrival of the PFC frame.
func TestReactionDelay(t *testing.T) {
	for _, reaction := range []Time{0, 600 * Nanosecond} {
		sp := ReferenceSwitch(1<<20, nil)
		sp.PFC.Reaction = reaction
		s := pauser(t, sp, ReferenceNIC(nil))
		run(t, s, 20*Microsecond)
		start := s.Now()
		s.Storm(1, 1<<3, Millisecond, 2*Millisecond)
		run(t, s, start+20*Microsecond)
		st := s.Queue(s.PortOf(0, 1), 3)
		// 1 us on the wire, the frame's 5.12 ns, at most one ACK of the host before it.
		began := start + 20*Microsecond - st.Paused
		if d := began - start - Microsecond - reaction; d < 5*Nanosecond || d > 20*Nanosecond {
			t.Errorf("reaction %v: silence after %v", reaction, began-start)
		}
	}
}

// Only the class that is paused stands still; PAUSE stops all.
func TestPauseIsPerClass(t *testing.T) {
	for _, pause := range []bool{false, true} {
		np := ReferenceNIC(nil)
		np.PFC.Pause = pause
		s := oneSwitch(t, 3, ReferenceSwitch(1<<20, nil), np, link100, Options{})
		for src, tos := range []uint8{3 << 5, 5 << 5} {
			if _, err := s.AddFlow(FlowSpec{Src: EndpointID(src), Dst: 2, Bytes: Forever, TOS: tos, Rate: 10 * Gbps}); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, 20*Microsecond)
		if pause {
			ig := &s.ingress[int32(s.EndpointPort(2))*NumQueues+3]
			s.xoff(int32(s.EndpointPort(2)), &s.ports[s.EndpointPort(2)], ig, 3)
		} else {
			s.Storm(2, 1<<3, Millisecond, Second)
		}
		run(t, s, 30*Microsecond)
		p := s.PortOf(0, 2)
		a3, a5 := sent(s, p, 3), sent(s, p, 5)
		run(t, s, 60*Microsecond)
		if sent(s, p, 3) != a3 {
			t.Errorf("pause=%v: class 3 moved", pause)
		}
		if moved := sent(s, p, 5) != a5; moved == pause {
			t.Errorf("pause=%v: class 5 moved: %v", pause, moved)
		}
	}
}

// At the default timers an endless pause is deadlock 1 at 100 ms, one more every
// 200 ms, and the 30th at 5.9 s turns PFC off.
func TestDeadlockControlTripsAt5900ms(t *testing.T) {
	sp := ReferenceSwitch(1<<20, nil)
	sp.Deadlock = Deadlock{On: true, Detect: 100 * Millisecond, Recover: 100 * Millisecond, TurnOff: 30}
	s := oneSwitch(t, 2, sp, ReferenceNIC(nil), link100, Options{})
	s.Storm(1, 1<<3, 10*Second, 20*Second)
	p := s.PortOf(0, 1)
	for _, c := range []struct {
		at        Time
		deadlocks uint64
		off       bool
	}{{99 * Millisecond, 0, false}, {101 * Millisecond, 1, false}, {299 * Millisecond, 1, false}, {301 * Millisecond, 2, false}, {5899 * Millisecond, 29, false}, {5901 * Millisecond, 30, true}, {9 * Second, 30, true}} {
		run(t, s, c.at)
		if st := s.Queue(p, 3); st.Deadlocks != c.deadlocks || st.TurnedOff != c.off || st.PausedNow && c.off {
			t.Errorf("at %v: %d deadlocks, off %v, paused %v; want %d, %v", c.at, st.Deadlocks, st.TurnedOff, st.PausedNow, c.deadlocks, c.off)
		}
	}
	s.RestorePFC(p, 3)
	run(t, s, 10100*Millisecond) // the storm repeats at 10 s
	if st := s.Queue(p, 3); !st.PausedNow {
		t.Error("PFC is not obeyed after the restore")
	}
}

// Counts that the window cannot hold never trip: at 1500/1500 ms only 6 fall in 20 s.
func TestDeadlockWindow(t *testing.T) {
	sp := ReferenceSwitch(1<<20, nil)
	sp.Deadlock = Deadlock{On: true, Detect: 1500 * Millisecond, Recover: 1500 * Millisecond, TurnOff: 30}
	s := oneSwitch(t, 2, sp, ReferenceNIC(nil), link100, Options{})
	s.Storm(1, 1<<3, 100*Second, 200*Second)
	run(t, s, 150*Second)
	if st := s.Queue(s.PortOf(0, 1), 3); st.TurnedOff || st.Deadlocks < 49 {
		t.Errorf("%+v", st)
	}
}

// With a poll the watchdog finds a deadlock in [detect, detect + poll].
func TestWatchdogPolls(t *testing.T) {
	const detect, poll = 3 * Millisecond, Millisecond
	for _, start := range []Time{0, 100 * Microsecond, 999 * Microsecond} {
		sp := ReferenceSwitch(1<<20, nil)
		sp.Deadlock = Deadlock{On: true, Detect: detect, Poll: poll, Recover: detect}
		s := oneSwitch(t, 2, sp, ReferenceNIC(nil), link100, Options{})
		run(t, s, start)
		s.Storm(1, 1<<3, Second, 2*Second)
		run(t, s, 10*Millisecond)
		began := start + Microsecond + 5120*Picosecond
		if d := s.Queue(s.PortOf(0, 1), 3).FirstDeadlock - began; d < detect || d > detect+poll {
			t.Errorf("storm at %v: found after %v, want %v..%v", start, d, detect, detect+poll)
		}
	}
}

// Recovery by forwarding drains the queue, by discarding counts drops.
func TestRecoveryActions(t *testing.T) {
	for _, discard := range []bool{false, true} {
		sp := ReferenceSwitch(1<<20, nil)
		sp.Deadlock = Deadlock{On: true, Detect: Millisecond, Recover: Millisecond, Discard: discard}
		s := pauser(t, sp, ReferenceNIC(nil))
		run(t, s, 10*Microsecond)
		s.Storm(1, 1<<3, Second, 2*Second)
		run(t, s, Millisecond)
		p := s.PortOf(0, 1)
		if s.QueueBytes(p, 3) == 0 {
			t.Fatal("nothing queued behind the storm")
		}
		before := sent(s, p, 3)
		run(t, s, 1100*Microsecond)
		dropped := s.Totals().Dropped[DropRecovery.String()]
		if discard && (dropped == 0 || sent(s, p, 3) != before) {
			t.Errorf("discard: %d dropped, %d sent", dropped, sent(s, p, 3)-before)
		}
		if !discard && (dropped != 0 || sent(s, p, 3) == before) {
			t.Errorf("forward: %d dropped, %d sent", dropped, sent(s, p, 3)-before)
		}
		if err := s.CheckConservation(); err != nil {
			t.Error(err)
		}
	}
}

// Deadlock control may take the port down instead of turning PFC off; taking the link up
// again ends it, and the count begins anew.
func TestDeadlockControlTakesThePortDown(t *testing.T) {
	sp := ReferenceSwitch(1<<20, nil)
	sp.Deadlock = Deadlock{On: true, Detect: Millisecond, Recover: Millisecond, TurnOff: 3, ErrorDown: true}
	s := oneSwitch(t, 2, sp, ReferenceNIC(nil), link100, Options{})
	s.Storm(1, 1<<3, 100*Microsecond, Second)
	p := s.PortOf(0, 1)
	run(t, s, 4900*Microsecond)
	if s.ErrorDown(p) || !s.LinkUp(p) {
		t.Error("down before the third deadlock")
	}
	run(t, s, 5100*Microsecond)
	if st := s.Queue(p, 3); !s.ErrorDown(p) || s.LinkUp(p) || st.TurnedOff || st.Deadlocks != 3 {
		t.Errorf("error-down %v, up %v, %+v", s.ErrorDown(p), s.LinkUp(p), st)
	}
	s.SetLink(s.LinkOf(p), true)
	if s.ErrorDown(p) || !s.LinkUp(p) {
		t.Error("not ended by taking the link up")
	}
	run(t, s, 9*Millisecond)
	if st := s.Queue(p, 3); st.Deadlocks != 5 || s.ErrorDown(p) {
		t.Errorf("4 ms later: %+v", st)
	}
}

// Several lossless classes that fill their headroom one after the other, towards a receiver
// that stands still, never hold more than the buffer, and lose nothing.
func TestSeveralLosslessClassesFitTheBuffer(t *testing.T) {
	sp := ReferenceSwitch(2_000_000, nil)
	sp.Lossless = 0xff
	s := oneSwitch(t, 5, sp, ReferenceNIC(nil), link100, Options{Seed: 1})
	s.Storm(4, 0xff, 100*Microsecond, 10*Millisecond)
	for q := range NumQueues {
		for src := range EndpointID(4) {
			if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 4, Bytes: Forever, TOS: uint8(q << 5), Start: Time(q) * 200 * Microsecond}); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(t, s, 3*Millisecond)
	held, headroom := int64(0), int64(0)
	for k := range 5 {
		for q := range NumQueues {
			st := s.Queue(s.PortOf(0, k), q)
			held, headroom = held+st.Bytes, headroom+st.Headroom
		}
	}
	if held > sp.Buffer || headroom < 8*4*20_000 {
		t.Errorf("the switch holds %d bytes of its %d, %d of them headroom", held, sp.Buffer, headroom)
	}
	if tot := s.Totals(); len(tot.Dropped) > 0 {
		t.Errorf("dropped %v", tot.Dropped)
	}
}

// Of a cell-based buffer whose headroom is not given, each port keeps what its link needs.
func TestCellsKeepTheHeadroomThatLinksNeed(t *testing.T) {
	sp := SwitchProfile{Name: "cells", MMU: MMUCells, Buffer: 32 << 20, Lossless: 1 << 3, Cells: CellMMU{Xoff: 100_000}}
	s := oneSwitch(t, 9, sp, ReferenceNIC(nil), LinkSpec{Rate: 100 * Gbps, Delay: 20 * Microsecond}, Options{Seed: 1})
	for src := range EndpointID(8) {
		if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 8, Bytes: Forever, TOS: 3 << 5}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, 3*Millisecond)
	if tot := s.Totals(); len(tot.Dropped) > 0 {
		t.Errorf("dropped %v", tot.Dropped)
	}
	if c := s.Switch(0); c.HeadroomPeak == 0 || c.Headroom < 9*500_000 {
		t.Errorf("headroom peak %d of %d bytes: want it used, and 2 x 20 us at 100G for each port", c.HeadroomPeak, c.Headroom)
	}
}

// A marking threshold that no queue can reach marks nothing.
func TestThresholdsBeyondTheBufferMarkNothing(t *testing.T) {
	sp := ReferenceSwitch(1<<20, nil)
	sp.ECN = ECN{Mode: ECNDequeue, KMin: 5_000_000_000, KMax: 6_000_000_000, PMax: 1}
	s := oneSwitch(t, 3, sp, ReferenceNIC(nil), link100, Options{Seed: 1})
	for src := range EndpointID(2) {
		if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 2, Bytes: Forever, TOS: 3<<5 | 2}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, Millisecond)
	if tot := s.Totals(); tot.Marks > 0 {
		t.Errorf("%d frames are marked", tot.Marks)
	}
}
