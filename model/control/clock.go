package control

import (
	"time"

	"github.com/openinof/inof/internal/virtual"
	"github.com/openinof/inof/model"
)

// clock plans functions on the engine's timers: one timer for the first of them.
type clock struct {
	sim    *model.Sim
	tag    uint64 // of the engine's timers
	queue  virtual.Queue
	armed  bool
	set    model.Time // when armed: the earliest timer that was asked for and has not come
	firing bool
}

func (c *clock) time() time.Time { return virtual.Wall(c.sim.Now().Duration()) }

// stamp is the inverse of time.
func stamp(t time.Time) model.Time { return model.FromDuration(virtual.Since(t)) }

func (c *clock) after(d model.Time, fn func()) { c.at(c.sim.Now()+d, fn) }

// at plans fn for a moment, which is not before now.
func (c *clock) at(t model.Time, fn func()) {
	c.queue.Put(int64(max(t, c.sim.Now())), fn)
	c.arm()
}

// Now implements virtual.World.
func (c *clock) Now() int64 { return int64(c.sim.Now()) }

// At implements virtual.World.
func (c *clock) At(at int64, fn func()) { c.at(model.Time(at), fn) }

// Time implements virtual.World.
func (c *clock) Time() time.Time { return c.time() }

// Moment implements virtual.World.
func (c *clock) Moment(t time.Time) int64 { return int64(stamp(t)) }

// arm asks the engine for a timer for the first function.
func (c *clock) arm() {
	due, ok := c.queue.Next()
	if c.firing || !ok {
		return
	}
	if !c.armed || model.Time(due) < c.set {
		c.armed, c.set = true, model.Time(due)
		c.sim.At(c.set, c.tag)
	}
}

// fire does what is due. Timers that an earlier one has overtaken come for nothing.
func (c *clock) fire() {
	if !c.armed || c.sim.Now() < c.set {
		return
	}
	c.armed, c.firing = false, true
	for {
		due, ok := c.queue.Next()
		if !ok || model.Time(due) > c.sim.Now() {
			break
		}
		c.queue.Take()()
	}
	c.firing = false
	c.arm()
}
