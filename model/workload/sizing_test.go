package workload

import (
	"testing"

	"github.com/openinof/inof/model"
)

// The computed sizes are proved by simulation at every speed and length.
func TestModelSizing(t *testing.T) {
	for _, c := range []struct {
		rate model.Rate
		km   float64
		mtu  int32
	}{{100, 70, 4200}, {400, 40, 4200}, {25, 10, 1600}, {100, 10, 9216}, {100, 0.3, 9216}, {400, 0.1, 4200},
		{100, 100, 9216}, {40, 5, 256}, {10, 20, 1500}, {100, 1, 4200}, {100, 0.03, 4200}} {
		if c.km >= 40 && testing.Short() {
			continue
		}
		h := model.Headroom{Rate: c.rate * model.Gbps, Delay: model.KM(c.km), MTU: c.mtu, Reaction: model.Microsecond, Cell: LongCell}
		a := NewSizing(h, 0)
		if err := a.Prove(); err != nil {
			t.Fatal(err)
		}
		for _, p := range a.Proof {
			t.Logf("%v %g km: %-32s %+v", h.Rate, c.km, p.What, p.Worst)
			if !p.OK {
				t.Errorf("%v over %g km: %s: %+v", h.Rate, c.km, p.What, p.Worst)
			}
		}
	}
}
