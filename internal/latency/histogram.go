package latency

import (
	"math/bits"
	"time"
)

// Bounds are the upper bounds, inclusive, of the fixed buckets; a last one without
// bound is meant behind them. They are the same everywhere, so that the histograms of
// several devices can be added up.
var Bounds = [...]time.Duration{
	10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond,
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Each power of two of nanoseconds has 1<<subBits buckets.
const (
	subBits = 3
	buckets = 44 << subBits // up to 2^46 ns, about 19 hours; what is longer counts in the last
)

// Histogram is a distribution of durations. The zero value is empty and ready.
type Histogram struct {
	count uint64
	sum   time.Duration
	max   time.Duration
	log   [buckets]uint64
	fixed [len(Bounds) + 1]uint64
}

// Record adds a duration; a negative one counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(0, d)
	h.max = max(h.max, d)
	h.count++
	h.sum += d
	h.log[bucketOf(d)]++
	h.fixed[fixedOf(d)]++
}

// Quantile is the duration that a share q (0..1) of all did not exceed: never too
// small, too large by an eighth at most, never above the longest. 0 when there was none.
func (h *Histogram) Quantile(q float64) time.Duration {
	return quantile(h.log[:], h.count, h.max, q)
}

// Cumulative gives for each of Bounds, and last without bound, how many durations did
// not exceed it.
func (h *Histogram) Cumulative() []uint64 {
	out := make([]uint64, len(h.fixed))
	var seen uint64
	for i, n := range h.fixed {
		seen += n
		out[i] = seen
	}
	return out
}

// quantile walks counts of bucketOf.
func quantile[N uint16 | uint64](counts []N, count uint64, longest time.Duration, q float64) time.Duration {
	if count == 0 {
		return 0
	}
	want := max(1, min(count, uint64(q*float64(count)+0.9999999))) // the smallest rank that is q of all
	var seen uint64
	for i, n := range counts {
		if seen += uint64(n); seen >= want {
			return min(bucketTop(i), longest)
		}
	}
	return longest
}

// bucketOf numbers the buckets so that the first bit of v and the subBits after it
// give the index.
func bucketOf(d time.Duration) int {
	v := uint64(d)
	exp := bits.Len64(v >> subBits)
	if exp == 0 {
		return int(v)
	}
	sub := v >> (exp - 1) & (1<<subBits - 1)
	return min(exp<<subBits|int(sub), buckets-1)
}

// bucketTop is the largest value of a bucket.
func bucketTop(i int) time.Duration {
	exp, sub := i>>subBits, uint64(i&(1<<subBits-1))
	switch {
	case i >= buckets-1:
		return 1<<63 - 1
	case exp == 0:
		return time.Duration(sub)
	}
	return time.Duration((1<<subBits|sub)+1)<<(exp-1) - 1
}

// fixedOf is the index of the fixed bucket of d.
func fixedOf(d time.Duration) int {
	for i, b := range Bounds {
		if d <= b {
			return i
		}
	}
	return len(Bounds)
}
