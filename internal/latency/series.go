package latency

import "time"

// Recent is how many of the newest values a Series keeps apart.
const Recent = 1024

// MostSkew is the longest a difference between the clocks of two devices is taken
// for a duration: longer than that nothing takes that works, and a clock is set wrong.
const MostSkew = 10 * time.Second

// Series is one stage: everything since the start, and the newest Recent values. The
// zero value is ready; it takes its memory, some 6 KiB, with the first value.
type Series struct {
	kept  *kept
	skew  uint64
	apart uint64
}

type kept struct {
	all    Histogram
	counts [buckets]uint16 // of the values in ring
	ring   [Recent]uint16  // their buckets
}

// Record adds a duration that one clock measured; a negative one, as two time stamps
// of one moment may give, counts as 0.
func (s *Series) Record(d time.Duration) {
	if s.kept == nil {
		s.kept = new(kept)
	}
	k := s.kept
	slot := &k.ring[k.all.count%Recent]
	if k.all.count >= Recent {
		k.counts[*slot]--
	}
	k.all.Record(d)
	*slot = uint16(bucketOf(max(0, d)))
	k.counts[*slot]++
}

// RecordBetween adds the difference of two devices' clocks. What cannot be a duration
// (see Skewed) is counted apart, and the answer is false.
func (s *Series) RecordBetween(d time.Duration) bool {
	if Skewed(d) {
		s.skew++
		return false
	}
	s.Record(d)
	return true
}

// RecordSet adds a duration of another device's clock, however long. One that is negative
// says that this clock was set meanwhile: it is counted apart, and the answer is false.
func (s *Series) RecordSet(d time.Duration) bool {
	if d < 0 {
		s.skew++
		return false
	}
	s.Record(d)
	return true
}

// Skewed reports whether a difference of two devices' clocks says more about the clocks
// than about time: it is negative, or longer than MostSkew.
func Skewed(d time.Duration) bool { return d < 0 || d > MostSkew }

// Skip counts a value that is left out because clocks differ.
func (s *Series) Skip() { s.skew++ }

// Hold counts a value that is left out because it does not measure the stage.
func (s *Series) Hold() { s.apart++ }

// Figures are percentiles of a distribution.
type Figures struct {
	Count              uint64
	P50, P90, P99, Max time.Duration
}

// Summary is a Series at one moment; it belongs to the reader.
type Summary struct {
	Total  Figures
	Sum    time.Duration // of the total
	Recent Figures       // of the newest values, each as exact as a percentile
	// Cumulative counts the values of the total up to each of Bounds, and all of them.
	Cumulative []uint64
	Skewed     uint64 // left out: negative or absurd, because clocks differ
	Held       uint64 // left out by Hold
}

// Empty reports whether nothing was recorded nor left out.
func (s *Series) Empty() bool { return s.kept == nil && s.skew == 0 && s.apart == 0 }

// Summary works out the figures.
func (s *Series) Summary() Summary {
	out := Summary{Skewed: s.skew, Held: s.apart, Cumulative: make([]uint64, len(Bounds)+1)}
	k := s.kept
	if k == nil {
		return out
	}
	h := &k.all
	out.Sum, out.Cumulative = h.sum, h.Cumulative()
	out.Total = Figures{Count: h.count, P50: h.Quantile(0.5), P90: h.Quantile(0.9), P99: h.Quantile(0.99), Max: h.max}
	n := min(h.count, Recent)
	at := func(q float64) time.Duration { return quantile(k.counts[:], n, h.max, q) }
	out.Recent = Figures{Count: n, P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: at(1)}
	return out
}
