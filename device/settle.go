package device

import (
	"time"

	"github.com/openinof/inof/inof/wire"
)

// An input falls through the files once: it changes a table, hosts that changed go to those whom
// they concern, and what others are to hear is gathered. What a device has to tell itself on that
// way (it is the client of its own reflector; an address passes from one of its hosts to another)
// waits until the input is through. The files stand in this order in internal/archtest.

// settle ends an input: the reflectors are told, and the device takes in what it had to tell
// itself, one thing after the other, until nothing is left.
func (c *Core) settle(now time.Time) {
	for {
		for c.declared.changed() || len(c.yields) > 0 {
			if c.followDeclared(now); len(c.yields) == 0 {
				continue
			}
			k := c.yields[0]
			c.yields = c.yields[1:]
			if c.contested(k) {
				c.yield(k, now)
			}
		}
		c.flush(now)
		if len(c.said) == 0 {
			return
		}
		m := c.said[0]
		c.said = c.said[1:]
		if u, ok := m.(*wire.Update); ok && u.Settings != nil {
			c.hearHalt(c.self, u.Settings.Halt, now)
		}
		a, err := c.client.Receive(c.self, m, now)
		c.apply(&a, now)
		c.protocolError(c.self, err, now)
	}
}
