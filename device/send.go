package device

import (
	"time"

	"github.com/openinof/inof/hostnotify"
)

// sendNotices puts frames on the wire, and then notes when each of them left.
func (c *Core) sendNotices(now time.Time) {
	out := c.notify.Poll(now)
	c.left = c.left[:0]
	for _, o := range out {
		c.keepFrame(o)
		c.out.SendFrame(o.Port, o.Frame)
		left := now
		if c.stopwatch != nil {
			left = c.stopwatch.Left()
		}
		c.left = append(c.left, left)
	}
	for i, o := range out {
		c.notify.Handed(o, c.left[i])
	}
}

// keepFrame gives the rows of what a frame says, before it leaves: a process that is killed
// right after that must know of it.
func (c *Core) keepFrame(o hostnotify.Out) {
	if c.keeps() {
		c.notify.RowsOf(o, c.putTold)
		c.keep.to.Flush()
	}
}

// introduce sends our LLDPDU to a host that was just learned, or that asks, before what it is
// notified of: an agent takes notices of the switch that LLDP shows, and of no other. Many questions
// lead to five LLDPDUs, and then to one a second (lldp.Transmitter's credit).
func (c *Core) introduce(port string, now time.Time) {
	if c.speak == nil {
		return
	}
	c.speak.NewNeighbour(port, now)
	for _, f := range c.speak.Due(now) {
		c.out.SendFrame(f.Port, f.Frame)
	}
}
