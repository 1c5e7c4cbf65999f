package model

import "testing"

// A TCP flow over a link that loses one frame in 5,000 delivers everything, mostly by fast
// retransmission; a window grows by a frame a round trip after slow start; cube roots are exact.
func TestTCPRepairsLosses(t *testing.T) {
	for _, kind := range []string{"reno", "cubic"} {
		cc := settingsOf(t, PartCongestion, kind).(Control)
		link := link100
		link.Loss = 0.0002
		np := ReferenceNIC(cc)
		np.RTO = 2 * Millisecond
		sp := ReferenceSwitch(4<<20, nil)
		sp.Lossless = 0
		s := oneSwitch(t, 2, sp, np, link, Options{Seed: 3})
		id, err := s.AddFlow(FlowSpec{Src: 0, Dst: 1, Bytes: 40_000_000, TOS: 1 << 5})
		if err != nil {
			t.Fatal(err)
		}
		run(t, s, Second)
		f := s.Flow(id)
		if f.Done == 0 || f.Acked != 40_000_000 || f.Cuts < 3 || f.Retx < 3 || f.Retx > 2000 {
			t.Errorf("%s: done at %v with %d bytes, %d cuts, %d sent again", kind, f.Done, f.Acked, f.Cuts, f.Retx)
		}
	}
	for _, v := range []uint64{0, 1, 7, 8, 26, 27, 999_999, 1_000_000, 1 << 50} {
		if x := cbrt(v); x*x*x > v || (x+1)*(x+1)*(x+1) <= v {
			t.Errorf("cbrt(%d) = %d", v, x)
		}
	}
}
