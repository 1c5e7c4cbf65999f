package testbed

import (
	"fmt"
	"math"
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

// Quantiles of one measurement, in microseconds.
type Quantiles struct {
	Trials int     `json:"trials"`
	Min    float64 `json:"min_us"`
	Median float64 `json:"median_us"`
	P99    float64 `json:"p99_us"`
	Max    float64 `json:"max_us"`
}

// BenchRatio is how many times as long something took, and how exactly that is known: as other
// trials of the same might have come, drawn from these again and again, 90 of 100 ratios lie
// between Low and High.
type BenchRatio struct {
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

func (r BenchRatio) String() string { return fmt.Sprintf("%.2fx (%.2f..%.2f)", r.Ratio, r.Low, r.High) }

func quantiles(ds []time.Duration) Quantiles {
	s := slices.Sorted(slices.Values(ds))
	us := func(t time.Duration) float64 { return math.Round(float64(t.Nanoseconds())/100) / 10 }
	q := Quantiles{Trials: len(s)}
	if len(s) > 0 {
		q.Min, q.Median, q.Max = us(s[0]), us(median(s)), us(s[len(s)-1])
		q.P99 = us(s[min(len(s)-1, int(math.Ceil(0.99*float64(len(s))))-1)])
	}
	return q
}
