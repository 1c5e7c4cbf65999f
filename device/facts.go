package device

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/internal/health"
)

// groupOutside gives the addresses of refused hosts by device.
func groupOutside(list []reflector.OutsideHost) map[netip.Addr][]netip.Addr {
	by := map[netip.Addr][]netip.Addr{}
	for _, o := range list {
		by[o.Device] = append(by[o.Device], o.Addr)
	}
	return by
}

// Facts adds what the owner goroutine knows.
func (c *Core) Facts(f *health.Facts, now time.Time) {
	if c.refl != nil {
		for _, a := range c.refl.Awaited() {
			f.Awaited = append(f.Awaited, health.Awaited(a))
		}
		for _, s := range c.refl.Short() {
			f.Refused = append(f.Refused, health.Refused{Device: s.Device, Hosts: s.Refused, Limit: s.Limit})
		}
		for dev, hosts := range groupOutside(c.refl.Outside()) {
			f.Refused = append(f.Refused, health.Refused{Device: dev, Outside: len(hosts), Named: hosts})
		}
		slices.SortStableFunc(f.Refused, func(a, b health.Refused) int { return a.Device.Compare(b.Device) })
	}
	if c.client != nil {
		for id, r := range c.client.Refusals() {
			f.Refused = append(f.Refused, health.Refused{Device: id, Own: true, Hosts: int(r.Hosts), Limit: int(r.Limit), Outside: int(r.Outside), Named: r.Named})
		}
	}
	c.portFacts(f)
	c.declaredFacts(f)
	for dev, m := range c.reports {
		f.Reports = append(f.Reports, health.Reported{Device: dev, Warnings: m.Warnings})
	}
	if c.notify != nil {
		for _, s := range c.notify.Silent(health.SilentAfter, now) {
			f.Silent = append(f.Silent, health.Silent(s))
		}
	}
}
