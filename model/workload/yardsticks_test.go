package workload

import (
	"math"
	"slices"
	"testing"

	"github.com/openinof/inof/model"
)

// The rate controls that others compare with, on W2 with the reference's paths: completion
// times of the public ns-3 code in ms (first, median, last).
func TestYardsticksOnW2(t *testing.T) {
	for _, c := range []struct {
		kind string
		want [3]float64
		tol  [3]float64 // of each
	}{
		{"hpcc", [3]float64{1.016, 2.075, 2.814}, [3]float64{0.01, 0.01, 0.01}},
		{"timely", [3]float64{0.864, 2.579, 3.529}, [3]float64{0.01, 0.05, 0.02}},
		{"dctcp", [3]float64{0.860, 1.748, 2.498}, [3]float64{0.01, 0.02, 0.01}},
	} {
		set, err := model.NewSettings(model.PartCongestion, c.kind, "")
		if err != nil {
			t.Fatal(err)
		}
		s, _, err := References[1].Build(model.Options{Seed: 5, NSClock: true, NSPaths: true}, set.(model.Control))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(6 * model.Millisecond); err != nil {
			t.Fatal(err)
		}
		var fct []float64
		for i := range s.Flows() {
			fct = append(fct, s.Flow(model.FlowID(i)).Done.Seconds()*1e3)
		}
		slices.Sort(fct)
		got := [3]float64{fct[0], (fct[7] + fct[8]) / 2, fct[15]}
		for i := range got {
			if math.Abs(got[i]/c.want[i]-1) > c.tol[i] {
				t.Errorf("%s: %.3f, the reference has %.3f", c.kind, got, c.want)
			}
		}
		if n := s.Totals(); n.TxXoff > 0 || len(n.Dropped) > 0 {
			t.Errorf("%s: %d XOFF, drops %v", c.kind, n.TxXoff, n.Dropped)
		}
	}
}
