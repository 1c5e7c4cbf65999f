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
	c.SetFence(k.Port, k.Addr, nil)
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
