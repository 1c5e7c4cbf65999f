package model

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The wheel must hand out events exactly in the order of (time, key), whatever the
// mixture of near, far, present and equal times.
func TestWheelGivesEventsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w wheel
		w.init(rapid.Float64Range(1e6, 1e12).Draw(t, "rate"))
		now := Time(0)
		var want []event
		add := func() {
			span := rapid.SampledFrom([]int64{1, 100, 10_000, 1_000_000, 100_000_000, 100_000_000_000}).Draw(t, "span")
			e := event{at: now + Time(rapid.Int64Range(0, span).Draw(t, "delta")), key: uint32(rapid.IntRange(0, 20).Draw(t, "key"))}
			w.schedule(e.at, e.key)
			want = append(want, e)
		}
		for range rapid.IntRange(1, 20).Draw(t, "first") {
			add()
		}
		for range 200 {
			if len(want) == 0 || rapid.Bool().Draw(t, "add") {
				add()
				continue
			}
			slices.SortFunc(want, func(a, b event) int {
				if a.before(b) {
					return -1
				}
				return 1
			})
			if e, ok := w.next(want[0].at - 1); ok {
				t.Fatalf("got %v, nothing is due before %v", e, want[0].at)
			}
			e, ok := w.next(never - 1)
			if !ok || e != want[0] {
				t.Fatalf("got %v %v, want %v", e, ok, want[0])
			}
			if w.len() != len(want)-1 {
				t.Fatalf("len %d, want %d", w.len(), len(want)-1)
			}
			now, want = e.at, want[1:]
		}
	})
}
