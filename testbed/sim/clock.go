package sim

import "time"

// epoch is when every simulation begins.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// event is something that happens at a moment; events of one moment happen in the
// order in which they were planned.
type event struct {
	at  time.Duration
	seq uint64
	fn  func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// clock is virtual time with what is planned in it: a binary heap.
type clock struct {
	now  time.Duration
	seq  uint64
	done uint64 // events so far
	heap []event
}

// at plans fn for a moment, which is not before now.
func (c *clock) at(t time.Duration, fn func()) {
	c.seq++
	c.heap = append(c.heap, event{max(t, c.now), c.seq, fn})
	i := len(c.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.heap[i].before(&c.heap[up]) {
			break
		}
		c.heap[i], c.heap[up] = c.heap[up], c.heap[i]
		i = up
	}
}

// next runs the next event that is not after end; false when there is none, and
// then it is end.
func (c *clock) next(end time.Duration) bool {
	if len(c.heap) == 0 || c.heap[0].at > end {
		c.now = max(c.now, end)
		return false
	}
	e := c.heap[0]
	last := len(c.heap) - 1
	c.heap[0] = c.heap[last]
	c.heap[last] = event{}
	c.heap = c.heap[:last]
	for i := 0; ; {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < last; k++ {
			if c.heap[k].before(&c.heap[least]) {
				least = k
			}
		}
		if least == i {
			break
		}
		c.heap[i], c.heap[least] = c.heap[least], c.heap[i]
		i = least
	}
	c.now = e.at
	c.done++
	e.fn()
	return true
}

func (c *clock) time() time.Time { return epoch.Add(c.now) }

// stamp is the inverse of time.
func stamp(t time.Time) time.Duration { return t.Sub(epoch) }
