package model

import "testing"

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

// Dynamic thresholds rise with the share of elephants, of each queue by itself and while the fabric
// runs.
func TestDynamicThresholdsFollowElephants(t *testing.T) {
	low := func(elephants, mice int) int64 {
		cc := Paper()
		sp := ReferenceSwitch(32<<20, cc)
		sp.Tuners = []TunerSettings{settingsOf(t, PartTuner, "dynamic-ecn").(TunerSettings)}
		s := oneSwitch(t, 5, sp, ReferenceNIC(cc), link100, Options{Seed: 1})
		still, _, _ := s.Marking(s.PortOf(0, 4), 3)
		for i := range elephants {
			if _, err := s.AddFlow(FlowSpec{Src: EndpointID(i), Dst: 3, Bytes: Forever, TOS: 3 << 5}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range mice { // one after the other
			if _, err := s.AddFlow(FlowSpec{Src: 2, Dst: 3, Bytes: 50_000, TOS: 3 << 5, Start: Time(i) * 5 * Microsecond}); err != nil {
				t.Fatal(err)
			}
		}
		run(t, s, 1950*Microsecond)
		if now, _, _ := s.Marking(s.PortOf(0, 4), 3); now != still {
			t.Errorf("a queue without traffic has %d instead of %d", now, still)
		}
		low, high, ok := s.Marking(s.PortOf(0, 3), 3)
		if !ok || low < 20_000 || low > 1_500_000 || high != 4*low {
			t.Errorf("%d elephants, %d mice: thresholds %d..%d", elephants, mice, low, high)
		}
		return low
	}
	if beside, alone := low(1, 400), low(2, 0); beside > alone*6/10 {
		t.Errorf("an elephant beside mice marks from %d on, two alone from %d", beside, alone)
	}
}
