package model

import (
	"math"
	"testing"
)

// At half load and a loss of 1e-4 errors come at 596 a second; the third one, and with it the
// notice, comes after 4.49 ms in the median (an Erlang distribution), and never on a good link.
func TestDegradedLinkIsToldInTime(t *testing.T) {
	const runs = 60
	var after []float64
	for seed := range uint64(runs) {
		set := settingsOf(t, PartTuner, "degraded-link").(*Degraded)
		set.Window, set.Every = 100*Millisecond, 50*Microsecond
		sp := ReferenceSwitch(8<<20, nil)
		sp.Tuners = []TunerSettings{set}
		np := ReferenceNIC(nil)
		np.Selective, np.RTO = true, Millisecond
		n := &Network{}
		sw := n.AddSwitch("s", sp)
		for _, loss := range []float64{1e-4, 0} {
			if _, err := n.Connect(n.AddHost("h", np), sw, LinkSpec{Rate: 100 * Gbps, Delay: Microsecond, Loss: loss}); err != nil {
				t.Fatal(err)
			}
		}
		s, err := n.Build(Options{Seed: seed + 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AddFlow(FlowSpec{Src: 0, Dst: 1, Bytes: Forever, TOS: 3 << 5, Rate: 50 * Gbps}); err != nil {
			t.Fatal(err)
		}
		for len(s.Incidents()) == 0 && s.Now() < 60*Millisecond {
			run(t, s, s.Now()+Millisecond)
		}
		for i, e := range s.Incidents() {
			if i > 0 || e.Port != s.PortOf(sw, 0) {
				t.Fatalf("seed %d: %+v", seed, s.Incidents())
			}
			after = append(after, e.At.Seconds()*1e3)
		}
	}
	if len(after) < runs-1 {
		t.Fatalf("%d of %d runs were told", len(after), runs)
	}
	sum := 0.0
	for _, v := range after {
		sum += v
	}
	// The mean is 3/0.596 ms; of 60 runs it deviates by 2.9/sqrt(60) ms. The ACKs of the link lose
	// too: h0 is not the switch.
	if mean := sum / float64(len(after)); math.Abs(mean-3/0.596) > 1.2 {
		t.Errorf("told after %.2f ms in the mean, want about %.2f", mean, 3/0.596)
	}
}
