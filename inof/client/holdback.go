package client

import (
	"time"

	"github.com/openinof/inof/inof/wire"
)

// HoldBack says that own records may be missing before until: the device started
// without knowing which hosts it had. Its syncs remove nothing at a reflector until
// then, because a host that has not registered yet is not gone. With the first Flush
// from then on every reflector gets a full sync. It is to be called before the first
// session.
func (c *Client) HoldBack(until time.Time) { c.holdBack = until }

// HeldBack is until when own records may be missing; zero: none is.
func (c *Client) HeldBack() time.Time { return c.holdBack }

// endHoldBack repeats all own records with an End-of-Sync that removes the others.
func (c *Client) endHoldBack(now time.Time) []wire.Delivery {
	if c.holdBack.IsZero() || now.Before(c.holdBack) {
		return nil
	}
	c.holdBack = time.Time{}
	c.log.base = c.next() // who does not get this one resumes from nothing
	to := c.learned.up()
	if len(to) == 0 {
		return nil
	}
	for _, id := range to {
		c.sent[id] = wire.Full("the time to hear all hosts is over")
	}
	b := c.everything()
	return append(c.deliver(&b, to, time.Time{}, now, false), wire.Delivery{To: to, Msg: &wire.EndOfSync{Epoch: c.epoch, Seq: c.seq}})
}
