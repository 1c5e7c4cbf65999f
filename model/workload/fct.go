package workload

import (
	"math"
	"sort"

	"github.com/openinof/inof/model"
)

// Percentile gives the value below which p percent of the sorted values lie, linear
// between neighbours; NaN of none.
func Percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	x := p / 100 * float64(len(sorted)-1)
	i := int(x)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (sorted[i+1]-sorted[i])*(x-float64(i))
}

// FCTs gives the completion times in ms of all finished flows, sorted.
func FCTs(s *model.Sim) []float64 {
	var out []float64
	for i := range s.Flows() {
		if f := s.Flow(model.FlowID(i)); f.Done > 0 {
			out = append(out, (f.Done-f.Start).Seconds()*1e3)
		}
	}
	sort.Float64s(out)
	return out
}

// Slowdowns gives, sorted, the completion times of all finished flows as multiples
// of what they would take alone: the base round trip of a full payload along the
// path plus all frames at the rate of the slower end.
func Slowdowns(s *model.Sim) []float64 { return SlowdownsOf(s, 0, math.MaxInt64) }

// SlowdownsOf gives those of the flows of at least least and less than below bytes.
func SlowdownsOf(s *model.Sim, least, below int64) []float64 {
	var out []float64
	for i := range s.Flows() {
		f := s.Flow(model.FlowID(i))
		if f.Done == 0 || f.Bytes < least || f.Bytes >= below {
			continue
		}
		out = append(out, max(1, (f.Done-f.Start).Seconds()/s.IdealFCT(model.FlowID(i)).Seconds()))
	}
	sort.Float64s(out)
	return out
}

// Mean gives the average.
func Mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
