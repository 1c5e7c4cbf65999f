package control

import (
	"time"

	"github.com/openinof/inof/fabric/model"
)

// epoch is when every simulation begins for the machines, which know wall-clock time.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// planned is something that happens at a moment; what is of one moment happens in the
// order in which it was planned.
type planned struct {
	at  model.Time
	seq uint64
	fn  func()
}

func (e *planned) before(o *planned) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// clock plans functions on the engine's timers: a binary heap of functions, one timer
// for the first of them.
type clock struct {
	sim    *model.Sim
	tag    uint64 // of the engine's timers
	heap   []planned
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
	c.heap = append(c.heap, planned{max(t, c.sim.Now()), c.seq, fn})
	i := len(c.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.heap[i].before(&c.heap[up]) {
			break
		}
		c.heap[i], c.heap[up] = c.heap[up], c.heap[i]
		i = up
	}
	c.arm()
}

// arm asks the engine for a timer for the first function.
func (c *clock) arm() {
	if len(c.heap) > 0 && !c.firing && (!c.armed || c.heap[0].at < c.set) {
		c.armed, c.set = true, c.heap[0].at
		c.sim.At(c.set, c.tag)
	}
}

// fire does what is due. Timers that an earlier one has overtaken come for nothing.
func (c *clock) fire() {
	if !c.armed || c.sim.Now() < c.set {
		return
	}
	c.armed, c.firing = false, true
	for len(c.heap) > 0 && c.heap[0].at <= c.sim.Now() {
		c.pop().fn()
	}
	c.firing = false
	c.arm()
}

func (c *clock) pop() planned {
	e := c.heap[0]
	last := len(c.heap) - 1
	c.heap[0] = c.heap[last]
	c.heap[last] = planned{}
	c.heap = c.heap[:last]
	for i := 0; ; {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < last; k++ {
			if c.heap[k].before(&c.heap[least]) {
				least = k
			}
		}
		if least == i {
			return e
		}
		c.heap[i], c.heap[least] = c.heap[least], c.heap[i]
		i = least
	}
}
