package testbed

import (
	"testing"
	"time"
)

// The p99 of a hundred trials is that of one or two of them: the range says so, and is narrow where
// there are many.
func TestARatioSaysHowExactItIs(t *testing.T) {
	trials := func(n int, scale float64) (out []time.Duration) {
		for i := range n {
			d := 1000 + float64(i*7919%n)*100/float64(n) // even
			if i%100 == 50 {
				d *= 1 + float64(i%700)/100 // now and then far off
			}
			out = append(out, time.Duration(d*scale)*time.Microsecond)
		}
		return out
	}
	median, p99 := func(q Quantiles) float64 { return q.Median }, func(q Quantiles) float64 { return q.P99 }
	if r := ratioOf(trials(1000, 1), trials(1000, 1.2), median); r.Ratio < 1.19 || r.Ratio > 1.21 || r.Low < 1.15 || r.High > 1.25 || r.Low > r.Ratio || r.High < r.Ratio {
		t.Errorf("median of many: %v", r)
	}
	if r := ratioOf(trials(120, 1), trials(120, 1), p99); r.Ratio != 1 || r.High-r.Low < 0.5 {
		t.Errorf("p99 of 120: %v", r)
	}
	if r := ratioOf(nil, trials(1, 1), median); r != (BenchRatio{}) {
		t.Errorf("of nothing: %v", r)
	}
}
