package load

import (
	"slices"
	"time"
)

// Quantiles of one measurement, in milliseconds.
type Quantiles struct {
	Trials int     `json:"trials"`
	Min    float64 `json:"min_ms"`
	Median float64 `json:"median_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
}

func quantiles(ds []time.Duration) Quantiles {
	if len(ds) == 0 {
		return Quantiles{}
	}
	s := slices.Sorted(slices.Values(ds))
	at := func(p int) float64 { return ms(s[min(len(s)-1, len(s)*p/100)]) }
	return Quantiles{Trials: len(s), Min: ms(s[0]), Median: at(50), P99: at(99), Max: ms(s[len(s)-1])}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Compared is a measurement and its bound of the same run.
type Compared struct {
	Ours        Quantiles `json:"ours"`
	Bound       Quantiles `json:"bound"`
	MedianRatio float64   `json:"median_ratio"`
	P99Ratio    float64   `json:"p99_ratio"`
	// TLS is the bound of bare connections in TLS and ours to it, in mode tls only: what
	// is left of the ratio above is what TLS costs.
	TLS *TLSBound `json:"tls_bound,omitempty"`
}

// TLSBound is a bound of bare connections in TLS.
type TLSBound struct {
	Quantiles
	MedianRatio float64 `json:"median_ratio"` // ours to it
	P99Ratio    float64 `json:"p99_ratio"`
}

// withTLS adds the bound of bare connections in TLS.
func (c Compared) withTLS(bound []time.Duration) Compared {
	if len(bound) == 0 {
		return c
	}
	b := &TLSBound{Quantiles: quantiles(bound)}
	if b.Median > 0 {
		b.MedianRatio, b.P99Ratio = c.Ours.Median/b.Median, c.Ours.P99/b.P99
	}
	c.TLS = b
	return c
}

func compare(ours, bound []time.Duration) Compared {
	c := Compared{Ours: quantiles(ours), Bound: quantiles(bound)}
	if c.Bound.Median > 0 {
		c.MedianRatio, c.P99Ratio = c.Ours.Median/c.Bound.Median, c.Ours.P99/c.Bound.P99
	}
	return c
}
