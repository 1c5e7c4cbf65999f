package device

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

// ClearHost forgets a host of this device on each port that it is on, whatever its time to
// live: its peers are told that it has aged out. Who announces the address again is learned
// again. The error wraps api.ErrNotFound, or api.ErrRefused when another device has the host.
func (c *Core) ClearHost(addr netip.Addr, now time.Time) ([]api.HostCleared, error) {
	defer c.settle(now)
	var cleared []api.HostCleared
	for _, name := range c.claimPorts(addr) {
		macs := c.table.Claimants(name, addr)
		for _, mac := range macs {
			c.neighboursChanged(c.table.Forget(name, addr, mac, snsd.ReasonAgedOut, now), now)
		}
		if len(macs) > 0 {
			cleared = append(cleared, api.HostCleared{Host: addr, Port: name, MACs: macs})
		}
	}
	if len(cleared) > 0 {
		return cleared, nil
	}
	for _, h := range c.View().Attachments(addr) {
		if h.Device != c.self {
			return nil, fmt.Errorf("host %s: %w: it is on device %s port %s: clear it there", addr, api.ErrRefused, h.Device, h.HostKey.Port)
		}
	}
	return nil, fmt.Errorf("host %s: %w on a port of this device", addr, api.ErrNotFound)
}

// claimPorts lists the ports on which an address is announced, sorted.
func (c *Core) claimPorts(addr netip.Addr) (names []string) {
	for k := range c.local {
		if k.Addr == addr {
			names = append(names, k.Port)
		}
	}
	slices.Sort(names)
	return names
}
