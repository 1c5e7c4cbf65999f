package device

import (
	"time"

	"github.com/openinof/inof/internal/health"
)

// Facts adds what the owner goroutine knows.
func (c *Core) Facts(f *health.Facts, now time.Time) {
	if c.refl != nil {
		for _, a := range c.refl.Awaited() {
			f.Awaited = append(f.Awaited, health.Awaited(a))
		}
		for _, s := range c.refl.Short() {
			f.Refused = append(f.Refused, health.Refused{Device: s.Device, Hosts: s.Refused, Limit: s.Limit})
		}
	}
	if c.client != nil {
		for id, r := range c.client.Refusals() {
			f.Refused = append(f.Refused, health.Refused{Device: id, Own: true, Hosts: int(r.Hosts), Limit: int(r.Limit)})
		}
	}
	c.portFacts(f)
	for dev, m := range c.reports {
		f.Reports = append(f.Reports, health.Reported{Device: dev, Warnings: m.Warnings})
	}
	if c.notify != nil {
		for _, s := range c.notify.Silent(health.SilentAfter, now) {
			f.Silent = append(f.Silent, health.Silent(s))
		}
	}
}
