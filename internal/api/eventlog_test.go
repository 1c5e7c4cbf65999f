package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestEventLogGivesRunsWithoutGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(t, "size")
		first := rapid.Uint64Range(1, 20).Draw(t, "first")
		l := NewEventLog(size, time.UnixMicro(int64(first)))
		n := rapid.Uint64Range(0, 30).Draw(t, "events")
		for range n {
			l.Append(Event{})
		}
		after := rapid.Uint64Range(0, 60).Draw(t, "after")
		b := l.Events(after)
		last := first + n - 1
		if b.Last != last {
			t.Fatalf("last %d, want %d", b.Last, last)
		}
		if after < first || after > last {
			after = first - 1
		}
		if got := uint64(len(b.Events)) + b.Missed; got != last-after {
			t.Fatalf("%d events and missed ones, want %d", got, last-after)
		}
		if len(b.Events) > size || len(b.Events) < size && b.Missed > 0 {
			t.Fatalf("%d events of %d, %d missed", len(b.Events), size, b.Missed)
		}
		for i, e := range b.Events {
			if e.ID != after+b.Missed+uint64(i)+1 {
				t.Fatalf("event %d has ID %d", i, e.ID)
			}
		}
	})
}

func TestEventsOfBeforeARestartAreThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 6).Draw(t, "size")
		kept := map[uint64]Event{}
		follow := func(e Event, gone uint64) {
			kept[e.ID] = e
			delete(kept, gone)
		}
		var all []uint64 // of every event ever
		clock := int64(100)
		for range rapid.IntRange(1, 4).Draw(t, "lives") {
			l := NewEventLog(size, time.UnixMicro(clock))
			clock += rapid.Int64Range(-60, 60).Draw(t, "clock")
			clock = max(clock, 1)
			var events []Event
			for _, e := range kept {
				events = append(events, e)
			}
			for _, e := range l.Restore(events) {
				delete(kept, e.ID)
			}
			l.Follow(follow)
			for range rapid.IntRange(0, 8).Draw(t, "events") {
				all = append(all, l.Append(Event{}).ID)
			}
			for _, after := range append([]uint64{0}, all...) {
				want := all[max(0, len(all)-size):]
				for len(want) > 0 && want[0] <= after {
					want = want[1:]
				}
				b := l.Events(after)
				var got []uint64
				for _, e := range b.Events {
					got = append(got, e.ID)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("after %d of %v: %v, want %v", after, all, got, want)
				}
			}
			if len(kept) > size || !slices.IsSorted(all) {
				t.Fatalf("%d events are kept, IDs %v", len(kept), all)
			}
		}
	})
}

func TestSubscribeWaitsForTheNextEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewEventLog(4, time.UnixMicro(100))
		got := make(chan EventBatch, 3)
		for range 3 {
			go func() {
				b, err := l.Subscribe(t.Context(), 99)
				if err != nil {
					t.Error(err)
				}
				got <- b
			}()
		}
		synctest.Wait()
		l.Append(Event{Text: "a"})
		for range 3 {
			if b := <-got; len(b.Events) != 1 || b.Events[0].Text != "a" || b.Last != 100 {
				t.Errorf("%+v", b)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Subscribe(ctx, 100); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestDurationIsSecondsInJSON(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", time.Second: "1", 1250 * time.Millisecond: "1.25", 49 * time.Hour: "176400", -time.Microsecond: "-0.000001",
	} {
		b, err := json.Marshal(Duration(d))
		var back Duration
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || time.Duration(back) != d || string(b) != want && d >= 0 {
			t.Errorf("%v: %s, back %v, %v", d, b, time.Duration(back), err)
		}
	}
	var d Duration
	if json.Unmarshal([]byte("1e300"), &d) == nil || json.Unmarshal([]byte(`"1s"`), &d) == nil {
		t.Error("accepted")
	}
}

func TestPortsAreOrderedByTheirNumbers(t *testing.T) {
	got := []string{"Ethernet10", "Ethernet2", "Ethernet", "Ethernet1/10", "Ethernet1/9", "eth0", "Ethernet02", "Ethernet1.100"}
	slices.SortFunc(got, ComparePorts)
	want := []string{"Ethernet", "Ethernet1.100", "Ethernet1/9", "Ethernet1/10", "Ethernet2", "Ethernet02", "Ethernet10", "eth0"}
	if !slices.Equal(got, want) {
		t.Error(got)
	}
}

func FuzzComparePorts(f *testing.F) {
	f.Add("a1", "a01", "a2")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if ComparePorts(a, b) != -ComparePorts(b, a) {
			t.Fatalf("%q and %q", a, b)
		}
		if (ComparePorts(a, b) == 0) != (a == b) {
			t.Fatalf("%q equals %q", a, b)
		}
		if ComparePorts(a, b) < 0 && ComparePorts(b, c) < 0 && ComparePorts(a, c) >= 0 {
			t.Fatalf("%q < %q < %q but not %q < %q", a, b, c, a, c)
		}
	})
}
