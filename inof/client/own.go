package client

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// What a client says of its own hosts and faults: the latest state of each record, by key,
// leaves with the next Flush.

// PutHost adds or replaces a host of this device; its Device is set by the client.
// The change leaves with the next Flush; a host that is as before changes nothing.
func (c *Client) PutHost(h zone.Host) {
	h.Device = c.self
	old, known := c.hosts[h.HostKey]
	if _, dirty := c.dirtyHosts[h.HostKey]; known && !dirty && old.Same(&h) {
		return
	}
	c.hosts[h.HostKey] = h
	c.dirtyHosts[h.HostKey] = snsd.ReasonNone
}

// WithdrawHost removes a host of this device for a reason; one that is not there
// is passed over.
func (c *Client) WithdrawHost(k zone.HostKey, why snsd.Reason) {
	k.Device = c.self
	if _, known := c.hosts[k]; !known {
		return
	}
	delete(c.hosts, k)
	c.dirtyHosts[k] = why
}

// Hosts are the own hosts by key, with the changes that wait for Flush; not to be changed.
func (c *Client) Hosts() map[zone.HostKey]zone.Host { return c.hosts }

// Faults are the own faults by port, like Hosts.
func (c *Client) Faults() map[string]wire.FaultRecord { return c.faults }

// PutFault adds or replaces the fault of one port of this device; Op and Device
// are set by the client.
func (c *Client) PutFault(f wire.FaultRecord) {
	f.Op, f.Device = wire.Put, c.self
	f.Addrs = wire.SortedAddrs(slices.Clone(f.Addrs))
	old, known := c.faults[f.Port]
	if _, dirty := c.dirtyFaults[f.Port]; known && !dirty && sameFault(&old, &f) {
		return
	}
	c.faults[f.Port] = f
	c.dirtyFaults[f.Port] = struct{}{}
}

func sameFault(a, b *wire.FaultRecord) bool {
	return a.Device == b.Device && a.Port == b.Port && a.Why == b.Why && a.Since.Equal(b.Since) && slices.Equal(a.Addrs, b.Addrs)
}

// WithdrawFault clears the fault of a port; one that is not there is passed over.
func (c *Client) WithdrawFault(port string) {
	if _, known := c.faults[port]; !known {
		return
	}
	delete(c.faults, port)
	c.dirtyFaults[port] = struct{}{}
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
	for _, f := range c.faults {
		b.Faults = append(b.Faults, f)
	}
	b.Sort()
	return b
}

// pending empties the sets of changes into a batch, sorted by key.
func (c *Client) pending() wire.Batch {
	var b wire.Batch
	for k, why := range c.dirtyHosts {
		r := wire.HostRecord{Op: wire.Withdraw, Host: zone.Host{HostKey: k}, Why: why}
		if h, ok := c.hosts[k]; ok {
			r = wire.HostRecord{Op: wire.Put, Host: h}
		}
		b.Hosts = append(b.Hosts, r)
	}
	for port := range c.dirtyFaults {
		var was, is *wire.FaultRecord
		if f, ok := c.told[port]; ok {
			was = &f
		}
		if f, ok := c.faults[port]; ok {
			is, c.told[port] = &f, f
		} else {
			delete(c.told, port)
		}
		if f, ok := wire.Difference(was, is); ok {
			b.Faults = append(b.Faults, f)
		}
	}
	clear(c.dirtyHosts)
	clear(c.dirtyFaults)
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
		c.counters.RecordsOut += uint64(len(u.Hosts) + len(u.Faults))
	}
	return out
}

func (c *Client) next() uint64 { c.seq++; return c.seq }
