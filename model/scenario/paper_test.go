package scenario

import (
	"math"
	"slices"
	"testing"

	"github.com/openinof/inof/model"
)

// With the paper's set as the reference reads it, all of it given in the file, the incast of W1
// ends as published: the first flow, the median and the last, medians of 12 seeds.
func TestPaperSetAsTheReferenceReadsIt(t *testing.T) {
	const seeds = 12
	var ends [3][]float64
	for seed := range uint64(seeds) {
		f, err := Load("../../scenarios/incast-dcqcn-paper.yaml")
		if err != nil {
			t.Fatal(err)
		}
		f.Seed += seed
		b, err := f.build()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.begin(); err != nil {
			t.Fatal(err)
		}
		if err := b.sim.RunWhile(f.Duration, func() bool { return b.sim.Active()+b.sim.Pending() > 0 }); err != nil {
			t.Fatal(err)
		}
		var done []float64
		for i := range b.sim.Flows() {
			if s := b.sim.Flow(model.FlowID(i)); s.Done > 0 {
				done = append(done, (s.Done-s.Start).Seconds()*1e3)
			}
		}
		if len(done) != 16 {
			t.Fatalf("seed %d: %d flows are done", f.Seed, len(done))
		}
		slices.Sort(done)
		for i, ms := range []float64{done[0], median(done), done[15]} {
			ends[i] = append(ends[i], ms)
		}
	}
	for i, want := range []float64{12.4, 14.5, 15.8} {
		slices.Sort(ends[i])
		if got := median(ends[i]); math.Abs(got-want) > 0.02*want {
			t.Errorf("the %s flow takes %.2f ms, want %.1f", []string{"first", "median", "last"}[i], got, want)
		} else {
			t.Logf("%.2f ms, want %.1f", got, want)
		}
	}
}
