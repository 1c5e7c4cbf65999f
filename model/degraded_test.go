package model

import (
	"math"
	"slices"
	"testing"
)

// At half load and a loss of 1e-4 errors come at 596 a second; the third one, and with it the
// notice, comes after 4.49 ms in the median (an Erlang distribution), and never on a good link.
func TestDegradedLinkIsToldInTime(t *testing.T) {
	const runs = 60
	var after []float64
	for seed := range uint64(runs) {
		if at, _ := degradedRun(t, seed+1, 1e-4, 100, 60*Millisecond); at != never {
			after = append(after, at.Seconds()*1e3)
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

// degradedRun gives when a switch tells of the link to its sender, which sends at half of 100G; never
// if it does not until the end. Errors, frames and readings are as with 10 s, 10 ms and a loss
// that is smaller by the same factor.
func degradedRun(t *testing.T, seed uint64, loss float64, faster, end Time) (told Time, errors uint64) {
	t.Helper()
	set := settingsOf(t, PartTuner, "degraded-link").(*Degraded)
	set.Window, set.Every = set.Window/faster, set.Every/faster
	sp := ReferenceSwitch(8<<20, nil)
	sp.Tuners = []TunerSettings{set}
	np := ReferenceNIC(nil)
	np.Selective, np.RTO = true, Millisecond
	n := &Network{}
	sw := n.AddSwitch("s", sp)
	for _, loss := range []float64{loss, 0} {
		if _, err := n.Connect(n.AddHost("h", np), sw, LinkSpec{Rate: 100 * Gbps, Delay: Microsecond, Loss: loss}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := n.Build(Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddFlow(FlowSpec{Src: 0, Dst: 1, Bytes: Forever, TOS: 3 << 5, Rate: 50 * Gbps}); err != nil {
		t.Fatal(err)
	}
	told = never
	for s.Now() < end && told == never {
		run(t, s, min(end, s.Now()+end/20))
		for i, e := range s.Incidents() {
			if i > 0 || e.Port != s.PortOf(sw, 0) {
				t.Fatalf("seed %d: %+v", seed, s.Incidents())
			}
			told = e.At
		}
	}
	return told, Switch{s, 0}.Corrupted(s.PortOf(sw, 0))
}

// One frame in a million at half load is 5.96 errors a second: the third comes after 0.45 s in the
// median and 1.42 s in 99 of 100 runs. Here all is 1,000 times as fast.
func TestDegradedLinkIsToldAsOftenAsChanceHasIt(t *testing.T) {
	const faster, runs = 1000, 1000
	var after []float64
	for seed := range uint64(runs) {
		if at, _ := degradedRun(t, seed+1, 1e-6*faster, faster, 4*Second/faster); at != never {
			after = append(after, at.Seconds()*faster)
		}
	}
	slices.Sort(after)
	if len(after) < runs {
		t.Fatalf("%d of %d links were told of", len(after), runs)
	}
	for at, want := range map[int]float64{runs / 2: 0.45, runs * 99 / 100: 1.42} {
		t.Logf("%d of %d after %.3f s, the distribution has %.2f", at, runs, after[at], want)
		if math.Abs(after[at]/want-1) > 0.1 {
			t.Errorf("%d of %d links were told of after %.3f s, want %.2f", at, runs, after[at], want)
		}
	}
}

// One frame in a thousand million is an error in 168 s: within 60 s a third one within the window
// of 10 s comes in less than one of a thousand runs. Here all is a million times as fast.
func TestAGoodLinkIsNotCalledDegraded(t *testing.T) {
	const faster, runs = 1_000_000, 10_000
	bad, errors := 0, uint64(0)
	for seed := range uint64(runs) {
		at, n := degradedRun(t, seed+1, 1e-9*faster, faster, 60*Second/faster)
		if errors += n; at != never {
			bad++
		}
	}
	mean := float64(errors) / runs
	t.Logf("%d of %d links were told of, %.3f errors on each", bad, runs, mean)
	if bad >= runs/1000 || math.Abs(mean/(60*5.96e-3)-1) > 0.1 {
		t.Errorf("%d of %d links were told of, %.3f errors on each, want less than one in 1,000 and %.3f", bad, runs, mean, 60*5.96e-3)
	}
}
