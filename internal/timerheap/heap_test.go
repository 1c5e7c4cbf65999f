package timerheap

import (
	"testing"

	"pgregory.net/rapid"
)

type timer struct {
	Place[timer]
	id int
}

func (t *timer) Ahead(o *timer) bool { return t.id < o.id }

// Whatever is put in, moved and taken out, the earliest is always first, everybody
// knows its place, and what is in is what was put in.
func TestTheEarliestIsAlwaysFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Heap[timer, *timer]
		all := make([]*timer, 20)
		for i := range all {
			all[i] = &timer{id: i}
		}
		in := map[*timer]int64{}
		pick := rapid.SampledFrom(all)
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {
				if !h.Sound() || h.Len() != len(in) {
					t.Fatalf("broken, or %d in it instead of %d", h.Len(), len(in))
				}
				held := map[*timer]int64{}
				h.Each(func(e *timer, due int64) { held[e] = due })
				var first *timer
				for e, due := range in {
					if at, ok := held[e]; !ok || at != due || !e.Queued() {
						t.Fatalf("%d is due at %d, in the heap %d (%v)", e.id, due, at, ok)
					}
					if first == nil || due < in[first] || due == in[first] && e.Ahead(first) {
						first = e
					}
				}
				if first == nil {
					return
				}
				if e, due := h.First(); e != first || due != in[first] {
					t.Fatalf("first is %d at %d, want %d at %d", e.id, due, first.id, in[first])
				}
			},
			"put": func(t *rapid.T) {
				e, due := pick.Draw(t, "e"), rapid.Int64Range(-5, 5).Draw(t, "due")
				in[e] = due
				h.Put(e, due)
			},
			"remove": func(t *rapid.T) { e := pick.Draw(t, "e"); delete(in, e); h.Remove(e) },
		})
		for last := int64(-6); h.Len() > 0; {
			e, due := h.First()
			h.Remove(e)
			if e.Queued() || due < last {
				t.Fatalf("%d came after %d", due, last)
			}
			last = due
		}
	})
}

func full(n int) (h Heap[timer, *timer]) {
	for i := range n {
		h.Put(&timer{id: i}, int64(i*7919%n))
	}
	return h
}

func TestMovingDoesNotAllocate(t *testing.T) {
	h := full(1000)
	if n := testing.AllocsPerRun(1000, func() {
		e, due := h.First()
		h.Put(e, due+997)
		e = h.nodes[500].place.e
		h.Remove(e)
		h.Put(e, due+500)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The earliest of 1,024 is put off, as a BFD session's transmit timer is.
func BenchmarkPutOff(b *testing.B) {
	h := full(1024)
	b.ReportAllocs()
	for b.Loop() {
		e, due := h.First()
		h.Put(e, due+1024)
	}
}
