package sim

import (
	"time"

	"github.com/openinof/inof/internal/timerheap"
)

// epoch is when every simulation begins.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// event is something that happens at a moment; events of one moment happen in the
// order in which they were planned.
type event struct {
	timerheap.Place[event]
	seq uint64
	fn  func()
}

// Ahead implements timerheap.Entry.
func (e *event) Ahead(o *event) bool { return e.seq < o.seq }

// clock is virtual time with what is planned in it.
type clock struct {
	now  time.Duration
	seq  uint64
	done uint64 // events so far
	heap timerheap.Heap[event, *event]
}

// at plans fn for a moment, which is not before now.
func (c *clock) at(t time.Duration, fn func()) {
	c.seq++
	c.heap.Put(&event{seq: c.seq, fn: fn}, int64(max(t, c.now)))
}

// next runs the next event that is not after end; false when there is none, and
// then it is end.
func (c *clock) next(end time.Duration) bool {
	if c.heap.Len() > 0 {
		if e, due := c.heap.First(); time.Duration(due) <= end {
			c.heap.Remove(e)
			c.now = time.Duration(due)
			c.done++
			e.fn()
			return true
		}
	}
	c.now = max(c.now, end)
	return false
}

func (c *clock) time() time.Time { return epoch.Add(c.now) }

// stamp is the inverse of time.
func stamp(t time.Time) time.Duration { return t.Sub(epoch) }
