package control

import (
	"time"

	"github.com/openinof/inof/internal/timerheap"
	"github.com/openinof/inof/model"
)

// epoch is when every simulation begins for the machines, which know wall-clock time.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// planned is something that happens at a moment; what is of one moment happens in the
// order in which it was planned.
type planned struct {
	timerheap.Place[planned]
	seq uint64
	fn  func()
}

// Ahead implements timerheap.Entry.
func (e *planned) Ahead(o *planned) bool { return e.seq < o.seq }

// clock plans functions on the engine's timers: one timer for the first of them.
type clock struct {
	sim    *model.Sim
	tag    uint64 // of the engine's timers
	heap   timerheap.Heap[planned, *planned]
	seq    uint64
	armed  bool
	set    model.Time // when armed: the earliest timer that was asked for and has not come
	firing bool
}

func (c *clock) time() time.Time { return epoch.Add(c.sim.Now().Duration()) }

// stamp is the inverse of time.
func stamp(t time.Time) model.Time { return model.FromDuration(t.Sub(epoch)) }

func (c *clock) after(d model.Time, fn func()) { c.at(c.sim.Now()+d, fn) }

// at plans fn for a moment, which is not before now.
func (c *clock) at(t model.Time, fn func()) {
	c.seq++
	c.heap.Put(&planned{seq: c.seq, fn: fn}, int64(max(t, c.sim.Now())))
	c.arm()
}

// arm asks the engine for a timer for the first function.
func (c *clock) arm() {
	if c.firing || c.heap.Len() == 0 {
		return
	}
	if _, due := c.heap.First(); !c.armed || model.Time(due) < c.set {
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
	for c.heap.Len() > 0 {
		e, due := c.heap.First()
		if model.Time(due) > c.sim.Now() {
			break
		}
		c.heap.Remove(e)
		e.fn()
	}
	c.firing = false
	c.arm()
}
