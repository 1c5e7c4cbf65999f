package testbed

import (
	"math/rand/v2"
	"slices"
	"time"
)

// redraws is how often trials are drawn anew to see how exactly a ratio is known.
const redraws = 1000

// ratioOf compares a quantile of two measurements, the second to the first (a bootstrap with
// percentiles; Efron 1979). The same trials give the same.
func ratioOf(first, second []time.Duration, of func(Quantiles) float64) BenchRatio {
	if len(first) == 0 || len(second) == 0 {
		return BenchRatio{}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	again := func(list []time.Duration) []time.Duration {
		out := make([]time.Duration, len(list))
		for i := range out {
			out[i] = list[rng.IntN(len(list))]
		}
		return out
	}
	all := make([]float64, redraws)
	for i := range all {
		all[i] = of(quantiles(again(second))) / of(quantiles(again(first)))
	}
	slices.Sort(all)
	return BenchRatio{of(quantiles(second)) / of(quantiles(first)), all[redraws/20], all[redraws-1-redraws/20]}
}
