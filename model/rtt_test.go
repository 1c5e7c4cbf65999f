package model_test

import (
	"testing"

	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/workload"
)

// The longest round trip of a fabric is found by counting hops where all cost the same, else by
// walking between all pairs: both give the same.
func TestLongestRoundTripIsThatOfAWalk(t *testing.T) {
	p := workload.Profiles{Switch: model.ReferenceSwitch(32<<20, nil), NIC: model.ReferenceNIC(nil)}
	l := model.LinkSpec{Rate: 100 * model.Gbps, Delay: model.Microsecond}
	slow := model.LinkSpec{Rate: 40 * model.Gbps, Delay: 3 * model.Microsecond}
	for name, c := range map[string]struct {
		make    func() (*workload.Fabric, error)
		counted bool
		host    int // which has a longer cable to the first switch, besides; 0 = none
	}{
		"star":        {func() (*workload.Fabric, error) { return workload.Star(5, l, p) }, false, 0},
		"leaf-spine":  {func() (*workload.Fabric, error) { return workload.LeafSpine(5, 3, 4, slow, l, p) }, true, 0},
		"one far off": {func() (*workload.Fabric, error) { return workload.LeafSpine(5, 3, 4, l, l, p) }, true, 1},
		"two far off": {func() (*workload.Fabric, error) { return workload.Clos(4, 2, 2, 2, 4, l, l, p) }, true, 2},
		"fat tree":    {func() (*workload.Fabric, error) { return workload.Clos(6, 3, 3, 3, 9, l, l, p) }, true, 0},
		"one pod":     {func() (*workload.Fabric, error) { return workload.Clos(1, 4, 2, 2, 4, l, l, p) }, true, 0},
		"ring":        {func() (*workload.Fabric, error) { return workload.Ring(7, 1, l, l, p) }, true, 0},
		"slow ring":   {func() (*workload.Fabric, error) { return workload.Ring(6, 2, l, slow, p) }, true, 1},
		"two sites":   {func() (*workload.Fabric, error) { return workload.TwoSites(2, l, slow, p) }, true, 0},
	} {
		f, err := c.make()
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.host {
			h := f.Net.AddHost("far"+string(rune('0'+i)), p.NIC)
			if _, err := f.Net.Connect(h, f.Edge[i], model.LinkSpec{Rate: l.Rate, Delay: 40 * model.Microsecond}); err != nil {
				t.Fatal(err)
			}
		}
		s, err := f.Net.Build(model.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		found, walked, counted := s.LongestRTT()
		if found != walked || found < 4*model.Microsecond || counted != c.counted {
			t.Errorf("%s: %v, a walk gives %v; hops counted: %v", name, found, walked, counted)
		}
	}
	for _, r := range workload.References { // W3 has links of two rates
		s, _, err := r.Build(model.Options{Seed: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if found, walked, _ := s.LongestRTT(); found != walked {
			t.Errorf("%s: %v, a walk gives %v", r.Name, found, walked)
		}
	}
}
