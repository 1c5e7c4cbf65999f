package sim

import (
	"time"

	"github.com/openinof/inof/internal/virtual"
)

// clock is virtual time, in nanoseconds, with what is planned in it.
type clock struct {
	now   time.Duration
	done  uint64 // events so far
	queue virtual.Queue
}

// at plans fn for a moment, which is not before now.
func (c *clock) at(t time.Duration, fn func()) { c.queue.Put(int64(max(t, c.now)), fn) }

// next runs the next event that is not after end; false when there is none, and
// then it is end.
func (c *clock) next(end time.Duration) bool {
	if due, ok := c.queue.Next(); ok && time.Duration(due) <= end {
		c.now = time.Duration(due)
		c.done++
		c.queue.Take()()
		return true
	}
	c.now = max(c.now, end)
	return false
}

func (c *clock) time() time.Time { return virtual.Wall(c.now) }

// stamp is the inverse of time.
func stamp(t time.Time) time.Duration { return virtual.Since(t) }

// Now implements virtual.World.
func (c *clock) Now() int64 { return int64(c.now) }

// At implements virtual.World.
func (c *clock) At(at int64, fn func()) { c.at(time.Duration(at), fn) }

// Time implements virtual.World.
func (c *clock) Time() time.Time { return c.time() }

// Moment implements virtual.World.
func (c *clock) Moment(t time.Time) int64 { return int64(stamp(t)) }
