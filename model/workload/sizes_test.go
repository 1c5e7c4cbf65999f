package workload

import (
	"math"
	"testing"

	"github.com/openinof/inof/model"
)

func TestW3FlowsAreTheReferenceOnes(t *testing.T) {
	flows := Poisson(w3Arrivals(320, 100*model.Gbps))
	total := int64(0)
	for _, f := range flows {
		total += f.Bytes
	}
	if len(flows) != 1210 || total != 2_258_106_375 {
		t.Errorf("%d flows of %d bytes, want 1210 of 2258106375", len(flows), total)
	}
}

// Load is that of each sender's own link; destinations are those asked for; nothing
// starts outside the window.
func TestArrivalsAreWhatIsAskedFor(t *testing.T) {
	a := Arrivals{Sizes: WebSearch, From: []Sender{{0, 100 * model.Gbps}, {1, 25 * model.Gbps}}, To: []model.EndpointID{1, 5, 6},
		Load: 0.5, Start: 10 * model.Millisecond, Until: 510 * model.Millisecond, Seed: 7}
	var bytes [2]float64
	to := map[model.EndpointID]int{}
	flows := Poisson(a)
	for _, f := range flows {
		bytes[f.Src] += float64(f.Bytes)
		if f.Src == 1 {
			to[f.Dst]++
		}
		if f.Start < a.Start || f.Start >= a.Until || f.Dst == f.Src {
			t.Fatalf("flow %+v of arrivals from %v until %v", f, a.Start, a.Until)
		}
	}
	for i, from := range a.From {
		offered := bytes[i] * 8 / 0.5 / float64(from.Rate)
		if offered < 0.4 || offered > 0.6 {
			t.Errorf("sender %d offers %.2f of its link, want 0.5", i, offered)
		}
	}
	if len(to) != 2 || to[5] == 0 || to[6] == 0 {
		t.Errorf("sender 1 sends to %v, want to 5 and 6", to)
	}
	if n := float64(len(flows)); n < 0.8*a.Flows() || n > 1.2*a.Flows() {
		t.Errorf("%d flows, announced %.0f", len(flows), a.Flows())
	}
	alone := Arrivals{Sizes: WebSearch, From: a.From[:1], To: []model.EndpointID{0}, Load: 1, Until: model.Second}
	if got := Poisson(alone); len(got) != 0 {
		t.Errorf("%d flows of a host to itself", len(got))
	}
}

// ln is within 4 units in the last place of the logarithm.
func TestLn(t *testing.T) {
	rng := model.RNG(1)
	for range 1_000_000 {
		x := 1 - rng.Float64()
		if got, want := ln(x), math.Log(x); math.Abs(got-want) > 8e-16*math.Abs(want) {
			t.Fatalf("ln(%g) = %g, want %g", x, got, want)
		}
	}
	if ln(1) != 0 {
		t.Errorf("ln(1) = %g", ln(1))
	}
}
