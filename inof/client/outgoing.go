package client

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// everything are all own records.
func (c *Client) everything() wire.Batch {
	var b wire.Batch
	for _, h := range c.hosts {
		b.Hosts = append(b.Hosts, wire.HostRecord{Op: wire.Put, Host: h})
	}
	c.fenceRecords(&b, false)
	b.Sort()
	return b
}

// pending empties the sets of changes into a batch, sorted by key.
func (c *Client) pending() wire.Batch {
	var b wire.Batch
	if len(c.dirty)+len(c.fencesDirty) == 0 {
		return b
	}
	downs := wire.Downs{}
	for k, ch := range c.dirty {
		h, there := c.hosts[k]
		switch {
		case !there:
			b.Hosts = append(b.Hosts, wire.HostRecord{Op: wire.Withdraw, Host: zone.Host{HostKey: k}, Why: ch.why})
		case ch.onlyDown:
			downs[k] = h.Down
		default:
			b.Hosts = append(b.Hosts, wire.HostRecord{Op: wire.Put, Host: h})
		}
	}
	clear(c.dirty)
	b.Downs = downs.Records()
	c.fenceRecords(&b, true)
	b.Sort()
	return b
}

// deliver makes the Updates of a batch; changed: they are changes, each with a number
// of its own. A repetition has the number of the last change, whose state it is.
func (c *Client) deliver(b *wire.Batch, to []netip.Addr, faultAt, now time.Time, changed bool) []wire.Delivery {
	like := wire.Update{Origin: c.self, Epoch: c.epoch, Seq: c.seq, Partial: !changed, FaultAt: faultAt, SentAt: now}
	if !faultAt.IsZero() {
		like.DecidedAt = now
	}
	us := b.Updates(&like, &c.counters.TooLarge)
	out := make([]wire.Delivery, 0, len(us))
	for _, u := range us {
		if changed {
			u.Seq = c.next()
			c.log.note(u, c)
		}
		if len(to) == 0 {
			continue
		}
		out = append(out, wire.Delivery{To: to, Msg: u})
		c.counters.UpdatesOut++
		c.counters.RecordsOut += uint64(u.Records())
	}
	return out
}

func (c *Client) next() uint64 { c.seq++; return c.seq }
