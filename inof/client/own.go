package client

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// What a client says of its own hosts: the latest state of each, by key,
// leaves with the next Flush.

// PutHost adds or replaces a host of this device; its Device is set by the client.
// The change leaves with the next Flush; a host that is as before changes nothing.
func (c *Client) PutHost(h zone.Host) {
	h.Device = c.self
	old, known := c.hosts[h.HostKey]
	if _, dirty := c.dirty[h.HostKey]; known && !dirty && old.Same(&h) {
		return
	}
	c.hosts[h.HostKey] = h
	c.dirty[h.HostKey] = change{}
}

// WithdrawHost removes a host of this device for a reason; one that is not there
// is passed over.
func (c *Client) WithdrawHost(k zone.HostKey, why snsd.Reason) {
	k.Device = c.self
	if _, known := c.hosts[k]; !known {
		return
	}
	delete(c.hosts, k)
	c.dirty[k] = change{why: why}
}

// Hosts are the own hosts by key, with the changes that wait for Flush; not to be changed.
func (c *Client) Hosts() map[zone.HostKey]zone.Host { return c.hosts }

// SetDown says of own hosts at a port that they cannot be reached, or with the zero Down that
// they can again. Hosts that are not there are passed over: they are put with their state.
func (c *Client) SetDown(port string, addrs []netip.Addr, down zone.Down) {
	for _, addr := range addrs {
		k := zone.HostKey{Addr: addr, Device: c.self, Port: port}
		h, known := c.hosts[k]
		if !known || h.Down.Same(down) {
			continue
		}
		h.Down = down
		c.hosts[k] = h
		if _, dirty := c.dirty[k]; !dirty {
			c.dirty[k] = change{onlyDown: true}
		}
	}
}

// change is what is new of an own host since the last Flush.
type change struct {
	why      snsd.Reason // of one that is gone
	onlyDown bool        // the reflectors have the rest
}

// MarkFault stamps the next Flush with the time of the event that caused the
// changes; the earliest of several counts.
func (c *Client) MarkFault(at time.Time) {
	if c.faultAt.IsZero() || at.Before(c.faultAt) {
		c.faultAt = at
	}
}

// Flush gives the changes since the last one for every reflector that is up. The
// others get them when their session resumes, or with everything.
func (c *Client) Flush(now time.Time) []wire.Delivery {
	b := c.pending()
	at := c.faultAt
	c.faultAt = time.Time{}
	var out []wire.Delivery
	if !b.Empty() {
		out = c.deliver(&b, c.learned.up(), at, now, true)
	}
	return append(append(out, c.sayAgain(now)...), c.endHoldBack(now)...)
}

// everything are all own records.
func (c *Client) everything() wire.Batch {
	var b wire.Batch
	for _, h := range c.hosts {
		b.Hosts = append(b.Hosts, wire.HostRecord{Op: wire.Put, Host: h})
	}
	b.Sort()
	return b
}

// pending empties the sets of changes into a batch, sorted by key.
func (c *Client) pending() wire.Batch {
	var b wire.Batch
	if len(c.dirty) == 0 {
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
		c.counters.RecordsOut += uint64(len(u.Hosts) + len(u.Downs))
	}
	return out
}

func (c *Client) next() uint64 { c.seq++; return c.seq }
