package client

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// sayAgain says everything to reflectors that had no room for all own hosts, and have now.
func (c *Client) sayAgain(now time.Time) (out []wire.Delivery) {
	for id := range c.again {
		delete(c.again, id)
		if _, up := c.learned.index(id); !up {
			continue // a session that begins does so anyway
		}
		to, b := []netip.Addr{id}, c.everything()
		out = append(out, c.deliver(&b, to, time.Time{}, now, false)...)
		out = append(out, wire.Delivery{To: to, Msg: &wire.EndOfSync{Epoch: c.epoch, Seq: c.seq, Resumed: !c.holdBack.IsZero()}})
	}
	return out
}

// Refusals are what the reflectors have no room for, by reflector.
func (c *Client) Refusals() map[netip.Addr]wire.Refusal { return c.refusals }
