package hostnotify

import (
	"math/bits"
	"time"
)

// history is a ring of the most recent notices. A notice is named by the number of
// notices before it, so a pair can keep that name without keeping the record alive.
type history struct {
	limit int
	ring  []Notice
	total uint64
}

// add records a notice and returns its name.
func (h *history) add(r Notice) uint64 {
	id := h.total
	if len(h.ring) < h.limit {
		h.ring = append(h.ring, r)
	} else {
		h.ring[id%uint64(h.limit)] = r
	}
	h.total++
	return id
}

// noRecord names no notice.
const noRecord = ^uint64(0)

// at is the record of that name; nil when it is older than the ring.
func (h *history) at(id uint64) *Notice {
	if id >= h.total || h.total-id > uint64(len(h.ring)) {
		return nil
	}
	return &h.ring[id%uint64(h.limit)]
}

func (h *history) ack(id uint64, at time.Time) {
	if r := h.at(id); r != nil {
		r.Acked = at
	}
}

func (h *history) retry(id uint64, port string) {
	if r := h.at(id); r != nil {
		r.Retries++
		r.Port = port
	}
}

func (h *history) drop(id uint64) {
	if r := h.at(id); r != nil {
		r.Dropped = true
	}
}

func (h *history) undrop(id uint64) {
	if r := h.at(id); r != nil {
		r.Dropped = false
	}
}

func (h *history) list() []Notice {
	out := make([]Notice, 0, len(h.ring))
	for id := h.total - uint64(len(h.ring)); id < h.total; id++ {
		out = append(out, h.ring[id%uint64(h.limit)])
	}
	return out
}

// Latencies are the distributions of two durations since New.
type Latencies struct {
	// FaultToSent: from the cause (as given to Changed) to the frame, of inactive
	// notices. Where the cause happened on another device it includes the difference of the clocks.
	FaultToSent Histogram `json:"fault_to_sent"`
	// SentToAcked: from the first frame to the ack, of all notices that were acked.
	SentToAcked Histogram `json:"sent_to_acked"`
}

// Each power of two of nanoseconds has 1<<subBits buckets, so a quantile is right
// to an eighth of its value.
const (
	subBits     = 3
	histBuckets = 44 << subBits // up to 2^43 ns, about 2.4 hours
)

// Histogram is a distribution of durations in logarithmic buckets.
type Histogram struct {
	Count   uint64        `json:"count"`
	Sum     time.Duration `json:"sum_ns"`
	Min     time.Duration `json:"min_ns"`
	Max     time.Duration `json:"max_ns"`
	buckets [histBuckets]uint64
}

func (h *Histogram) add(d stamp) {
	v := time.Duration(max(0, d))
	if h.Count == 0 || v < h.Min {
		h.Min = v
	}
	h.Max = max(h.Max, v)
	h.Count++
	h.Sum += v
	h.buckets[bucketOf(uint64(v))]++
}

// bucketOf numbers the buckets so that the first bit of v and the subBits after it
// give the index.
func bucketOf(v uint64) int {
	exp := bits.Len64(v >> subBits)
	sub := v >> max(0, exp-1)
	if exp == 0 {
		return int(v)
	}
	return min(exp<<subBits|int(sub&(1<<subBits-1)), histBuckets-1)
}

// bucketTop is the largest value of a bucket.
func bucketTop(i int) time.Duration {
	exp, sub := i>>subBits, uint64(i&(1<<subBits-1))
	if exp == 0 {
		return time.Duration(sub)
	}
	return time.Duration((1<<subBits|sub)+1)<<(exp-1) - 1
}

// Mean is the average; 0 when there was nothing.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return h.Sum / time.Duration(h.Count)
}

// Quantile is the duration that a share q (0..1) of all did not exceed, too large by
// an eighth at most; 0 when there was nothing.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.Count == 0 {
		return 0
	}
	want := uint64(q * float64(h.Count))
	var seen uint64
	for i, c := range h.buckets {
		if seen += c; seen > want || (seen == h.Count && c > 0) {
			return min(bucketTop(i), h.Max)
		}
	}
	return h.Max
}

// Buckets calls yield with the upper bound of each bucket that holds anything, and
// how many there are up to it, in order: what a metrics exporter needs.
func (h *Histogram) Buckets(yield func(upTo time.Duration, count uint64)) {
	var seen uint64
	for i, c := range h.buckets {
		if c > 0 {
			seen += c
			yield(bucketTop(i), seen)
		}
	}
}
