package client

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// Outside says why a host of this device may not be its own by what its reflectors bind it to;
// empty: it may. One reflector that takes a host is enough for others to know it, so that it is
// outside only where all say so that have said anything since the start. A silent one said what
// it said last.
func (c *Client) Outside(h *zone.Host) (why string) {
	for _, id := range slices.SortedFunc(maps.Keys(c.bound), netip.Addr.Compare) {
		out := c.bound[id].Binding().Outside(h)
		if out == "" {
			return ""
		}
		if why == "" {
			why = out
		}
	}
	return why
}

// Declared lists the hosts that reflectors declare, by the first that does, and reports whether
// all reflectors have been heard since the start.
func (c *Client) Declared() (list []wire.DeclaredHost, all bool) {
	for _, id := range slices.SortedFunc(maps.Keys(c.bound), netip.Addr.Compare) {
		list = append(list, c.bound[id].Hosts...)
	}
	return list, len(c.bound) >= c.learned.expected
}

// bind takes what a reflector binds this device to; it reports whether that is new.
func (c *Client) bind(reflector netip.Addr, m *wire.Bound) bool {
	was := c.bound[reflector]
	c.bound[reflector] = m
	return was == nil || !was.Binding().Equal(m.Binding()) || !slices.EqualFunc(was.Hosts, m.Hosts, wire.DeclaredHost.Equal)
}
