package device

import (
	"maps"
	"slices"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric/fence"
)

// This file takes what the dataplane says of blocks, and hands out what it is to do.

// FenceBegin says that there is a dataplane, and which blocks stand from before this process.
func (c *Core) FenceBegin(blocks []fence.Block, now time.Time) {
	defer c.settle(now)
	c.fence.machine.Adopt(blocks, now)
	c.followFences(now)
}

// FenceEnd says that there is none now.
func (c *Core) FenceEnd(now time.Time) {
	defer c.settle(now)
	c.fence.machine.Lost()
	c.followFences(now)
}

// FenceWork returns what the dataplane is to do. It is called after the frames have left that the same
// events are behind.
func (c *Core) FenceWork(now time.Time) []fence.Step {
	if c.client == nil {
		return nil
	}
	next := c.fence.machine.Next(now)
	if next.IsZero() || next.After(now) {
		return nil
	}
	defer c.settle(now)
	steps := c.fence.machine.Steps(now)
	c.followFences(now)
	return steps
}

// FenceNext is when FenceWork has something to do; zero: after the next event.
func (c *Core) FenceNext(now time.Time) time.Time {
	if c.client == nil {
		return time.Time{}
	}
	return c.fence.machine.Next(now)
}

// FenceDone takes what came of steps.
func (c *Core) FenceDone(results []fence.Result, now time.Time) {
	defer c.settle(now)
	for _, r := range results {
		c.fence.machine.Done(r, now)
	}
	c.followFences(now)
}

// LiftFences ends every block now.
func (c *Core) LiftFences(now time.Time) {
	if c.client == nil {
		return
	}
	defer c.settle(now)
	c.fence.machine.LiftAll()
	c.followFences(now)
}

// SetFence changes whether and how long is blocked.
func (c *Core) SetFence(cfg fence.Config, now time.Time) {
	if c.client == nil {
		return
	}
	defer c.settle(now)
	c.fence.cfg = cfg
	c.fenceMode()
	c.followFences(now)
}

// followFences takes over which ports are closed, and what is fenced.
func (c *Core) followFences(now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(c.ports)) {
		p := c.ports[name]
		closed := c.closed(p)
		if closed == p.closed {
			continue
		}
		if p.closed = closed; !p.fault.active {
			f := &p.fault
			if len(f.addrs) == 0 {
				f.why, f.cause, f.since = errdown.LinkDown.Reason(), errdown.LinkDown, now
			}
			f.addrs = c.addrsOn(name, !closed)
			c.tellFault(p, now, now)
		}
	}
	c.fenceFacts(now)
}
