package latency

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var durations = rapid.Custom(func(t *rapid.T) time.Duration {
	// As likely of any size as small.
	return time.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(0, 50).Draw(t, "bits")).Draw(t, "ns"))
})

// exact is the quantile by sorting.
func exact(ds []time.Duration, q float64) time.Duration {
	s := slices.Clone(ds)
	slices.Sort(s)
	return s[max(1, int(math.Ceil(q*float64(len(s)))))-1]
}

func TestQuantilesAreRightToAnEighth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := rapid.SliceOfN(durations, 1, 200).Draw(t, "ds")
		var h Histogram
		var sum time.Duration
		for _, d := range ds {
			h.Record(d)
			sum += d
		}
		if h.count != uint64(len(ds)) || h.sum != sum || h.max != slices.Max(ds) {
			t.Fatalf("count %d sum %v max %v of %v", h.count, h.sum, h.max, ds)
		}
		for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
			got, want := h.Quantile(q), exact(ds, q)
			if got < want || (got > want+want/8 && want < 1<<46) {
				t.Fatalf("quantile %v is %v, exactly %v, of %v", q, got, want, ds)
			}
		}
	})
}

// Every duration lies in the bucket of its number and above the one before.
func TestBucketsHaveNoGaps(t *testing.T) {
	if bucketOf(0) != 0 || bucketOf(math.MaxInt64) != buckets-1 {
		t.Fatal("the ends are not in the first and the last bucket")
	}
	for i := range buckets - 1 {
		if top := bucketTop(i); bucketOf(top) != i || bucketOf(top+1) != i+1 {
			t.Fatalf("bucket %d ends at %d, which is in %d; the next value in %d", i, top, bucketOf(top), bucketOf(top+1))
		}
	}
}

func TestFixedBucketsAreExactAndCumulative(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{0, 10 * time.Microsecond, 10*time.Microsecond + 1, time.Millisecond, time.Millisecond + 1, 10 * time.Second, 10*time.Second + 1, -5} {
		h.Record(d)
	}
	c := h.Cumulative()
	for i, want := range map[int]uint64{0: 3, 1: 4, 5: 4, 6: 5, 7: 6, len(Bounds) - 1: 7, len(Bounds): 8} {
		if c[i] != want {
			t.Errorf("up to bound %d: %d, want %d", i, c[i], want)
		}
	}
	if !slices.IsSorted(Bounds[:]) || !slices.IsSorted(c) || c[len(c)-1] != h.count {
		t.Errorf("bounds %v, counts %v of %d", Bounds, c, h.count)
	}
}

func TestSeriesKeepsTheNewestApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3*Recent).Draw(t, "n")
		var s Series
		var ds []time.Duration
		for i := range n {
			d := time.Duration(i%97+1) * time.Millisecond * time.Duration(1+2*(i/Recent))
			ds = append(ds, d)
			s.Record(d)
		}
		newest := ds[max(0, n-Recent):]
		got := s.Summary()
		if got.Total.Count != uint64(n) || got.Recent.Count != uint64(len(newest)) {
			t.Fatalf("%d and %d, want %d and %d", got.Total.Count, got.Recent.Count, n, len(newest))
		}
		for q, got := range map[float64]time.Duration{0.5: got.Recent.P50, 0.9: got.Recent.P90, 0.99: got.Recent.P99, 1: got.Recent.Max} {
			if want := exact(newest, q); got < want || got > want+want/8 {
				t.Fatalf("recent quantile %v is %v, exactly %v", q, got, want)
			}
		}
	})
}

func TestWhatIsNoDurationIsCountedApart(t *testing.T) {
	var s Series
	if !s.Empty() {
		t.Error("a new series is not empty")
	}
	for _, d := range []time.Duration{-1, MostSkew + 1, -24 * time.Hour, math.MinInt64, math.MaxInt64} {
		if s.RecordBetween(d) {
			t.Errorf("%v was taken", d)
		}
	}
	for _, d := range []time.Duration{0, MostSkew} {
		if !s.RecordBetween(d) {
			t.Errorf("%v was not taken", d)
		}
	}
	s.Skip()
	s.Hold()
	got := s.Summary()
	got.Cumulative = nil
	want := Summary{Total: Figures{2, 0, MostSkew, MostSkew, MostSkew}, Recent: Figures{2, 0, MostSkew, MostSkew, MostSkew}, Sum: MostSkew, Skewed: 6, Held: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEmptySeriesHasAllBuckets(t *testing.T) {
	var s Series
	if got := s.Summary(); len(got.Cumulative) != len(Bounds)+1 || got.Total != (Figures{}) {
		t.Errorf("%+v", got)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	var s Series
	s.Record(1)
	d := time.Duration(0)
	if n := testing.AllocsPerRun(5000, func() { d += 37 * time.Microsecond; s.Record(d) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	var s Series
	b.ReportAllocs()
	for i := range b.N {
		s.Record(time.Duration(i&0xfffff) * time.Microsecond)
	}
}
