package model

import "testing"

// Marking as a frame leaves tells the sender one queue earlier than marking as it comes.
func TestMarkingAtDequeueTellsAQueueEarlier(t *testing.T) {
	const low = 100_000
	told := func(mode ECNMode) Time {
		cc := Paper()
		cc.ECN = ECN{Mode: mode, KMin: low, KMax: low + 1, PMax: 1}
		s := oneSwitch(t, 3, ReferenceSwitch(4<<20, cc), ReferenceNIC(cc), link100, Options{Seed: 1})
		for src := range EndpointID(2) {
			if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 2, Bytes: Forever, TOS: 3 << 5}); err != nil {
				t.Fatal(err)
			}
		}
		for s.Totals().Created["cnp"] == 0 && s.Now() < Millisecond {
			run(t, s, s.Now()+10*Nanosecond)
		}
		return s.Now()
	}
	late, soon := told(ECNEnqueue), told(ECNDequeue)
	queue := Time(low * 8 * 10) // ps at 100 Gb/s
	if d := late - soon; d < queue-300*Nanosecond || d > queue+300*Nanosecond {
		t.Errorf("notified at %v and at %v; a queue of %d bytes takes %v", soon, late, low, queue)
	}
}

// No pause is needed when what may come between marking and XOFF is at least what comes until
// senders have heard: the surplus times the delay of the loop.
func TestNoPauseWhenXOFFLeavesTimeForTheLoop(t *testing.T) {
	const low = 100_000
	// A marked frame goes to its receiver, the notification back to the sender, and what that one
	// sends at half its rate reaches the switch: 4 us of wire, 0.4 us of frames that are being sent.
	surplus := (100 * Gbps).Bytes(4400 * Nanosecond)
	for _, c := range []struct {
		room   int64 // of the queue, between marking and XOFF
		pauses bool
	}{{surplus, false}, {surplus / 2, true}} {
		cc := Paper()
		cc.ECN = ECN{Mode: ECNDequeue, KMin: low, KMax: low + 1, PMax: 1}
		np := ReferenceNIC(cc)
		sp := staticCells(4<<20, (low+c.room)/2*1280/1048, 6400) // of each of two ingresses, in cells
		sp.ECN = cc.ECN
		s := oneSwitch(t, 3, sp, np, link100, Options{Seed: 1})
		for src := range EndpointID(2) {
			if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 2, Bytes: Forever, TOS: 3 << 5}); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, Millisecond)
		if n := s.XoffSent(); n > 0 != c.pauses {
			t.Errorf("%d bytes between marking and XOFF: %d XOFF; the loop needs %d", c.room, n, surplus)
		}
	}
}

// A switch that notifies in the receiver's place sends a flow at most one notification in 50 us,
// and what the receiver sends besides does not arrive.
func TestFastCNPKeepsThePaceOfNotifications(t *testing.T) {
	cc := Paper()
	cc.ECN = ECN{Mode: ECNDequeue, KMin: 0, KMax: 1, PMax: 1} // all that waits is marked
	sp := ReferenceSwitch(4<<20, cc)
	sp.Stages = []StageSettings{settingsOf(t, PartStage, "fast-cnp").(StageSettings)}
	s := oneSwitch(t, 5, sp, ReferenceNIC(cc), link100, Options{Seed: 1})
	for src := range EndpointID(4) {
		if _, err := s.AddFlow(FlowSpec{Src: src, Dst: 4, Bytes: Forever, TOS: 3 << 5}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, s, 10*Millisecond)
	n := s.StageCounters()
	if n["fast-cnp.sent"] < 100 || n["fast-cnp.np-dropped"] < 100 {
		t.Errorf("%v: this test shows nothing", n)
	}
	for i := range 4 {
		if heard := s.Flow(FlowID(i)).CNPs; heard > 201 {
			t.Errorf("flow %d was notified %d times in 10 ms", i, heard)
		}
	}
}

// A NACK halves the rate of CTCC, exactly.
func TestCTCCHalvesAtANACK(t *testing.T) {
	cc := settingsOf(t, PartCongestion, "ctcc").(*CTCC)
	cc.First = 80 * Gbps
	s := oneSwitch(t, 2, ReferenceSwitch(4<<20, nil), ReferenceNIC(cc), link100, Options{})
	if _, err := s.AddFlow(FlowSpec{Src: 0, Dst: 1, Bytes: Forever, TOS: 3 << 5}); err != nil {
		t.Fatal(err)
	}
	run(t, s, Microsecond)
	c := s.controls[1].ctl.(*ctccSender)
	for want := 40e9; want > 1e9; want /= 2 {
		c.Ack(QP{s, 0}, Ack{})
		c.Ack(QP{s, 0}, Ack{Nack: true})
		if got := c.qps[0].rate; got != want {
			t.Errorf("rate %g, want %g", got, want)
		}
	}
}

// Dynamic thresholds fall with the number of flows that share a queue and rise with the share of
// elephants, of each queue by itself and while the fabric runs.
func TestDynamicThresholdsFollowIncastAndElephants(t *testing.T) {
	low := func(elephants, mice int) int64 {
		cc := Paper()
		sp := ReferenceSwitch(32<<20, cc)
		sp.Tuners = []TunerSettings{settingsOf(t, PartTuner, "dynamic-ecn").(TunerSettings)}
		s := oneSwitch(t, 36, sp, ReferenceNIC(cc), link100, Options{Seed: 1})
		still, _, _ := s.Marking(s.PortOf(0, 35), 3)
		for i := range elephants {
			if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i), Dst: 34, Bytes: Forever, TOS: 3 << 5}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range mice { // one after the other
			if _, err := s.AddFlow(FlowSpec{Src: 33, Dst: 34, Bytes: 50_000, TOS: 3 << 5, Start: Time(i) * 5 * Microsecond}); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, 1950*Microsecond)
		if now, _, _ := s.Marking(s.PortOf(0, 35), 3); now != still {
			t.Errorf("a queue without traffic has %d instead of %d", now, still)
		}
		low, high, ok := s.Marking(s.PortOf(0, 34), 3)
		if !ok || low < 20_000 || low > 1_500_000 || high != 4*low {
			t.Errorf("%d elephants, %d mice: thresholds %d..%d", elephants, mice, low, high)
		}
		return low
	}
	byIncast := []int64{low(8, 0), low(16, 0), low(32, 0)}
	byShare := []int64{low(1, 400), low(2, 0)}
	if byIncast[1] > byIncast[0]*6/10 || byIncast[2] > byIncast[1]*6/10 || byShare[0] > byShare[1]*6/10 {
		t.Errorf("8, 16, 32 elephants: %d; one beside mice, two alone: %d", byIncast, byShare)
	}
}
