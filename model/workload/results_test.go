package workload

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/model"
)

// The tests of this file compare the model with published or measured results of
// other simulators, on the reference profile. Tolerances: medians and means 3 %, p95
// 5 %, p99 and extremes 10 %, runs without randomness 0.5 %. A reference that is one run
// of unknown seed, or a median over few, must also lie where 95 of 100 such runs or
// medians of ours do: the spread of one run is often wider than the tolerance. The longer
// ones run with INOF_MODEL=1 (`make model`).

func long(t *testing.T) {
	t.Helper()
	if os.Getenv("INOF_MODEL") == "" {
		netnstest.LeftTo(t, "make model")
	}
}

func within(t *testing.T, what string, got, want, percent float64) {
	t.Helper()
	dev := 100 * (got/want - 1)
	t.Logf("%-28s %9.3f  reference %9.3f  %+.2f %%", what, got, want, dev)
	if math.Abs(dev) > percent || math.IsNaN(dev) {
		t.Errorf("%s: %.4g, want %.4g within %g %%", what, got, want, percent)
	}
}

func finishRun(t *testing.T, s *model.Sim, until model.Time) {
	t.Helper()
	if err := s.Run(until); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckConservation(); err != nil {
		t.Error(err)
	}
	if tot := s.Totals(); len(tot.Dropped) > 0 {
		t.Errorf("dropped %v", tot.Dropped)
	}
}

func TestModelW1WithPFCOnly(t *testing.T) {
	r := References[0]
	for _, ns := range []bool{true, false} {
		s, f, err := r.Build(model.Options{Seed: 1, NSClock: ns}, nil)
		if err != nil {
			t.Fatal(err)
		}
		finishRun(t, s, r.Until)
		fct := FCTs(s)
		if ns {
			within(t, "W1 PFC FCT min ms", fct[0], 13.25, 0.5)
			within(t, "W1 PFC FCT median ms", Percentile(fct, 50), 13.27, 0.5)
			within(t, "W1 PFC FCT max ms", fct[15], 13.28, 0.5)
			within(t, "W1 PFC queue peak KB", float64(s.Queue(s.PortOf(f.Edge[0], 16), 3).Peak)/1000, 22369, 0.5)
		} else {
			within(t, "W1 PFC exact FCT max ms", fct[15], 13.42, 0.5)
		}
		if tot := s.Totals(); tot.DataHops != 320_000 {
			t.Errorf("%d data frame-hops, want 320000", tot.DataHops)
		}
	}
}

// TestModelClosedFormPeak: N senders reach N (S/(8+N) + 4096 + 2 delay rate + 0.3 frame).
func TestModelClosedFormPeak(t *testing.T) {
	for _, n := range []int{2, 4, 8, 16, 32} {
		f, err := Star(n+1, model.LinkSpec{Rate: 100 * model.Gbps, Delay: refDelay}, refProfiles(32, nil))
		if err != nil {
			t.Fatal(err)
		}
		var flows []model.FlowSpec
		for i := range n {
			flows = append(flows, model.FlowSpec{Src: model.EndpointID(i), Dst: model.EndpointID(n), Bytes: 10_000_000, TOS: DataTOS})
		}
		s, _, err := start(f, model.Options{}, flows)
		if err != nil {
			t.Fatal(err)
		}
		finishRun(t, s, 3*model.Millisecond)
		shared := 32<<20 - (n+1)*(37_500+4096)
		want := float64(n) * (float64(shared)/float64(8+n) + 4096 + 25_000 + 0.3*1048)
		within(t, "closed form, N senders", float64(s.Queue(s.PortOf(f.Edge[0], n), 3).Peak)/1000, want/1000, 0.5)
	}
}

// each runs f for n seeds (with INOF_MODEL=short a quarter of them, but 20) from 1 on, as many at a
// time as there are cores, and gives what it returned by row: rows[k] holds value k of all seeds,
// sorted.
func each(t *testing.T, n int, f func(seed uint64) ([]float64, error)) (rows [][]float64) {
	t.Helper()
	if os.Getenv("INOF_MODEL") == "short" && n > 20 {
		n = max(20, n/4)
	}
	all, errs := make([][]float64, n), make([]error, n)
	var next atomic.Int32
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				all[i], errs[i] = f(uint64(i + 1))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for k := range all[0] {
		row := make([]float64, n)
		for i := range all {
			row[i] = all[i][k]
		}
		slices.Sort(row)
		rows = append(rows, row)
	}
	return rows
}

// complete runs s to the given time and verifies that nothing was lost.
func complete(s *model.Sim, until model.Time) error {
	if err := s.Run(until); err != nil {
		return err
	}
	if tot := s.Totals(); len(tot.Dropped) > 0 {
		return fmt.Errorf("dropped %v", tot.Dropped)
	}
	return s.CheckConservation()
}

// oneOf checks a reference that is one run of unknown seed: 95 of 100 runs of ours lie
// around it. It logs where among ours it stands.
func oneOf(t *testing.T, what string, sorted []float64, ref float64) {
	t.Helper()
	lo, med, hi := Percentile(sorted, 2.5), Percentile(sorted, 50), Percentile(sorted, 97.5)
	below, _ := slices.BinarySearch(sorted, ref)
	t.Logf("%-28s %9.3f .. %9.3f .. %9.3f over %d seeds, reference %9.3f at %2.0f %%, median %+.2f %%", what, lo, med, hi, len(sorted), ref, 100*float64(below)/float64(len(sorted)), 100*(med/ref-1))
	if ref < lo || ref > hi {
		t.Errorf("%s: the reference %.4g is not within %.4g .. %.4g", what, ref, lo, hi)
	}
}

// medianOf checks a reference that is the median of n random choices of paths: 95 of 100
// medians of n of ours lie around it.
func medianOf(t *testing.T, what string, n int, sorted []float64, ref float64) {
	t.Helper()
	rng := model.RNG(1)
	medians, pick := make([]float64, 4000), make([]float64, n)
	for i := range medians {
		for k := range pick {
			pick[k] = sorted[rng.Intn(len(sorted))]
		}
		slices.Sort(pick)
		medians[i] = Percentile(pick, 50)
	}
	slices.Sort(medians)
	lo, hi := Percentile(medians, 2.5), Percentile(medians, 97.5)
	t.Logf("%-28s median %.1f of %d, of %d in %.1f .. %.1f, reference %.1f", what, Percentile(sorted, 50), len(sorted), n, lo, hi, ref)
	if ref < lo || ref > hi {
		t.Errorf("%s: the reference %.4g is not within %.4g .. %.4g", what, ref, lo, hi)
	}
}

// W1 with DCQCN: the reference is one run, whose marks fell by chance. Its p95 depends on
// the first marks so much (a deviation of 8 % from run to run) that no tolerance on it is asserted.
func TestModelW1WithDCQCN(t *testing.T) {
	long(t)
	r := References[0]
	rows := each(t, 200, func(seed uint64) ([]float64, error) {
		s, f, err := r.Build(model.Options{Seed: seed, NSClock: true}, model.CX4())
		if err != nil {
			return nil, err
		}
		p := s.PortOf(f.Edge[0], 16)
		var depth []float64
		for at := model.Microsecond; s.Now() == 0 || s.Active() > 0; at += model.Microsecond {
			if err := s.Run(at); err != nil {
				return nil, err
			}
			depth = append(depth, float64(s.QueueBytes(p, 3))/1000)
		}
		if err := complete(s, r.Until); err != nil {
			return nil, err
		}
		if n := s.Totals().TxXoff; n > 0 {
			return nil, fmt.Errorf("seed %d: %d XOFF, want none", seed, n)
		}
		slices.Sort(depth)
		fct := FCTs(s)
		return []float64{fct[0], Percentile(fct, 50), fct[15], Percentile(depth, 50), Percentile(depth, 95), Percentile(depth, 99), float64(s.Queue(p, 3).Peak) / 1000}, nil
	})
	for i, ref := range []struct {
		what             string
		value, tolerance float64
	}{{"W1 cx4 FCT min ms", 13.28, 10}, {"W1 cx4 FCT median ms", 14.07, 3}, {"W1 cx4 FCT max ms", 15.80, 10}, {"W1 cx4 queue p50 KB", 151, 3},
		{"W1 cx4 queue p95 KB", 2101, 0}, {"W1 cx4 queue p99 KB", 5141, 10}, {"W1 cx4 queue max KB", 5857, 10}} {
		oneOf(t, ref.what, rows[i], ref.value)
		if ref.tolerance > 0 && os.Getenv("INOF_MODEL") != "short" { // the median of few is not known to 3 %
			within(t, ref.what, Percentile(rows[i], 50), ref.value, ref.tolerance)
		}
	}
}

// W2 with DCQCN depends on which flows meet on an uplink; with the choice of paths of the
// reference the times are the reference's.
func TestModelW2WithDCQCN(t *testing.T) {
	long(t)
	rows := each(t, 40, func(seed uint64) ([]float64, error) {
		s, _, err := References[1].Build(model.Options{Seed: seed, NSClock: true, NSPaths: true}, model.CX4())
		if err != nil {
			return nil, err
		}
		if err := complete(s, References[1].Until); err != nil {
			return nil, err
		}
		if n := s.Totals().DataHops; n != 640_000 {
			return nil, fmt.Errorf("%d data frame-hops, want 640000", n)
		}
		fct := FCTs(s)
		return []float64{Percentile(fct, 50), fct[15]}, nil
	})
	within(t, "W2 cx4 FCT median ms", Percentile(rows[0], 50), 2.37, 3)
	within(t, "W2 cx4 FCT max ms", Percentile(rows[1], 50), 3.33, 10)
}

// TestModelW3WithDCQCN compares the flows that are done at 2 ms, which is when the reference
// stops looking, by size class, with the reference's choice of paths; its one run is of
// unknown seed. In a class of 176 flows neighbours in rank are 10 % apart, and how the
// reference rounds a rank is not known: a percentile must be within its tolerance
// between the ranks one below and one above.
func TestModelW3WithDCQCN(t *testing.T) {
	long(t)
	classes := []struct {
		name           string
		least, below   int64
		mean, p95, p99 float64
	}{
		{"all", 0, math.MaxInt64, 1.62, 3.79, 5.44},
		{"below 10 KB", 0, 10_000, 1.43, 4.42, 7.01},
		{"10-100 KB", 10_000, 100_000, 1.42, 3.03, 4.60},
		{"0.1-1 MB", 100_000, 1_000_000, 1.62, 3.45, 5.97},
		{"above 1 MB", 1_000_000, math.MaxInt64, 2.04, 4.31, 5.16},
	}
	rows := each(t, 40, func(seed uint64) ([]float64, error) {
		s, _, err := References[2].Build(model.Options{Seed: seed, NSClock: true, NSPaths: true}, model.CX4())
		if err != nil {
			return nil, err
		}
		if err := complete(s, References[2].Until); err != nil {
			return nil, err
		}
		out := []float64{float64(len(Slowdowns(s))), float64(s.Totals().FrameHops) / 1e6}
		for _, c := range classes {
			sd := SlowdownsOf(s, c.least, c.below)
			out = append(out, Mean(sd))
			for _, p := range []int{95, 99} {
				rank := len(sd) * p / 100
				out = append(out, sd[rank-1], sd[min(rank+1, len(sd)-1)])
			}
		}
		return out, nil
	})
	within(t, "W3 cx4 flows done at 2 ms", Percentile(rows[0], 50), 1139, 0.5)
	within(t, "W3 cx4 M frame-hops at 2 ms", Percentile(rows[1], 50), 20.11, 0.5)
	for i, c := range classes {
		got := rows[2+5*i:]
		within(t, "W3 cx4 "+c.name+" mean", Percentile(got[0], 50), c.mean, 3)
		between(t, "W3 cx4 "+c.name+" p95", Percentile(got[1], 50), Percentile(got[2], 50), c.p95, 5)
		between(t, "W3 cx4 "+c.name+" p99", Percentile(got[3], 50), Percentile(got[4], 50), c.p99, 10)
	}
}

// between checks that a reference lies between two figures, widened by a tolerance.
func between(t *testing.T, what string, lo, hi, want, percent float64) {
	t.Helper()
	t.Logf("%-28s %9.3f .. %9.3f  reference %9.3f", what, lo, hi, want)
	if !(lo*(1-percent/100) <= want && want <= hi*(1+percent/100)) {
		t.Errorf("%s: %.4g .. %.4g, want %.4g within %g %%", what, lo, hi, want, percent)
	}
}

// All flows of W3 run to completion make exactly the frame-hops that another simulator
// (ConWeave's) counts for them: the destinations are the reference's.
func TestModelW3FrameHops(t *testing.T) {
	s, _, err := References[2].Build(model.Options{Seed: 1, NSClock: true}, model.CX4())
	if err != nil {
		t.Fatal(err)
	}
	if err := complete(s, 20*model.Millisecond); err != nil {
		t.Fatal(err)
	}
	if n := len(Slowdowns(s)); n != 1210 {
		t.Errorf("%d flows are done, want 1210", n)
	}
	if tot := s.Totals(); tot.FrameHops != 25_034_336 {
		t.Errorf("%d frame-hops, want 25034336: %+v", tot.FrameHops, tot)
	}
}

// fairShares gives what H1..H4 of the parking lot get over a time, of n choices of paths.
func fairShares(t *testing.T, n int, cc model.Control, from, to model.Time) [][]float64 {
	t.Helper()
	return each(t, n, func(seed uint64) ([]float64, error) {
		s, _, err := Unfairness(model.Options{Seed: seed}, cc)
		if err != nil {
			return nil, err
		}
		g, err := Goodputs(s, from, to)
		if err != nil {
			return nil, err
		}
		return g, complete(s, to)
	})
}

func TestModelUnfairness(t *testing.T) {
	g := fairShares(t, 100, nil, 5*model.Millisecond, 10*model.Millisecond)
	others := slices.Concat(g[0], g[1], g[2])
	slices.Sort(others)
	within(t, "PFC only, H4 Gb/s", Percentile(g[3], 50), 12.7, 3)
	within(t, "PFC only, H1-H3 Gb/s", Percentile(others, 50), 6.4, 3)
}

func TestModelUnfairnessWithDCQCN(t *testing.T) {
	long(t)
	all := slices.Concat(fairShares(t, 20, model.Paper(), 20*model.Millisecond, 100*model.Millisecond)...)
	slices.Sort(all)
	within(t, "DCQCN, least Gb/s", all[0], 8.6, 10)
	within(t, "DCQCN, most Gb/s", all[len(all)-1], 10.3, 10)
}

// TestModelVictim: more senders elsewhere take from a flow that shares no congested
// link, and DCQCN gives it back. Throughput is that of the whole run, which lasts 10 ms
// with PFC alone and, because the paper's set takes tens of ms to settle, 100 ms with DCQCN; the
// source does not say how long its runs were. Its figures are medians of 20 choices of paths.
func TestModelVictim(t *testing.T) {
	long(t)
	var pfc, dcqcn [3]float64
	for n := range 3 {
		run := func(cc model.Control, seeds int, span model.Time) []float64 {
			return each(t, seeds, func(seed uint64) ([]float64, error) {
				s, _, err := Victim(model.Options{Seed: seed, NSClock: true}, cc, n)
				if err != nil {
					return nil, err
				}
				err = complete(s, span)
				return []float64{float64(s.Acked(0)) * 8 / span.Seconds() / 1e9}, err
			})[0]
		}
		a := run(nil, 100, 10*model.Millisecond)
		b := run(model.Paper(), 40, 100*model.Millisecond)
		medianOf(t, fmt.Sprintf("victim, PFC only, n = %d", n), 20, a, [3]float64{12.3, 8.0, 6.9}[n])
		medianOf(t, fmt.Sprintf("victim, DCQCN, n = %d", n), 20, b, [3]float64{18.6, 20.8, 23.1}[n])
		pfc[n], dcqcn[n] = Percentile(a, 50), Percentile(b, 50)
	}
	if !(pfc[0] > pfc[1] && pfc[1] > pfc[2]) {
		t.Errorf("PFC only: %.1f, %.1f, %.1f does not fall", pfc[0], pfc[1], pfc[2])
	}
	if dcqcn[2] < dcqcn[0]-1 {
		t.Errorf("with DCQCN the victim falls: %.1f, %.1f, %.1f", dcqcn[0], dcqcn[1], dcqcn[2])
	}
	for n := range 3 {
		if dcqcn[n] < 1.4*pfc[n] {
			t.Errorf("n=%d: DCQCN gives %.1f, PFC alone %.1f", n, dcqcn[n], pfc[n])
		}
	}
}

// TestModelVictimSettles: once the fabric is full, from 10 to 20 ms, PFC alone leaves the victim what
// the paper's hardware measured, about 10 Gb/s and less with each sender elsewhere; medians of 20
// choices of paths.
func TestModelVictimSettles(t *testing.T) {
	long(t)
	for n, want := range []float64{9.6, 6.4, 4.8} {
		rows := each(t, 20, func(seed uint64) ([]float64, error) {
			s, _, err := Victim(model.Options{Seed: seed, NSClock: true}, nil, n)
			if err != nil {
				return nil, err
			}
			g, err := Goodputs(s, 10*model.Millisecond, 20*model.Millisecond)
			if err != nil {
				return nil, err
			}
			return g[:1], nil
		})
		within(t, fmt.Sprintf("victim settles, n = %d", n), Percentile(rows[0], 50), want, 3)
	}
}

// TestModelRingDeadlock: in a ring of four switches each flow may go either way; of
// the 16 choices exactly the two that go all one way round deadlock.
func TestModelRingDeadlock(t *testing.T) {
	l := model.LinkSpec{Rate: 40 * model.Gbps, Delay: model.Microsecond}
	for choice := range 16 {
		f, err := Ring(4, 1, l, l, refProfiles(12, nil))
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.Net.Build(model.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		// Members of a group are in port order: the ring link to the next switch and
		// the one to the previous; which comes first differs at switch 0.
		for i := range 4 {
			clockwise := choice>>i&1 == 0
			want := 0
			if clockwise != (s.PortOf(f.Edge[i], 1) == nextRingPort(s, f, i)) {
				want = 1
			}
			for h := uint32(1); ; h++ {
				if s.ECMPChoice(f.Edge[i], h, 2) == want {
					if _, err := s.AddFlow(model.FlowSpec{Src: model.EndpointID(i), Dst: model.EndpointID((i + 2) % 4), Bytes: model.Forever, TOS: DataTOS, Hash: h}); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
		}
		stuckAt := model.Time(0)
		last := int64(-1)
		for at := 20 * model.Microsecond; at <= 6*model.Millisecond; at += 20 * model.Microsecond {
			if err := s.Run(at); err != nil {
				t.Fatal(err)
			}
			sum := int64(0)
			for i := range 4 {
				sum += s.Flow(model.FlowID(i)).Acked
			}
			if sum == last && stuckAt == 0 {
				stuckAt = at
			} else if sum != last {
				stuckAt = 0
			}
			last = sum
		}
		if err := s.CheckConservation(); err != nil {
			t.Error(err)
		}
		cycle := choice == 0 || choice == 15
		if (stuckAt != 0) != cycle {
			t.Errorf("choice %04b: stuck at %v, forms a cycle: %v", choice, stuckAt, cycle)
		}
		if cycle {
			within(t, "ring deadlock at ms", stuckAt.Seconds()*1e3, 1.07, 10)
		}
	}
}

// nextRingPort gives the port of ring switch i towards switch i+1.
func nextRingPort(s *model.Sim, f *Fabric, i int) model.PortID {
	p, _ := s.LinkPorts(f.Links[4+i])
	return p
}
