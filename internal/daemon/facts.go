package daemon

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/health"
)

// warnings gathers what the rules of health look at, and returns what they find.
func (d *Daemon) warnings(ctx context.Context, s *api.Status, peers []api.Peer) (api.Warnings, error) {
	f := health.Facts{
		Now: d.env.Now(), Synced: s.Synced, HeldBack: s.HeldBack, Counts: s.Counts, Peers: peers,
		Certificates: d.certs.warnings(), State: d.savingWarning(), EventsNotLogged: d.logged.Load(), Reload: d.reloads.warning(), Exposed: d.cfg.Load().ExposedSecrets(),
	}
	waiting := d.device.inbox.Status(f.Now)
	f.Waits, f.WaitsOf = waiting.Oldest, waiting.Device
	if d.zones != nil {
		f.Zones = d.zones.warning()
	}
	if err := d.device.Do(ctx, func(c *Core, now time.Time) { c.facts(&f, now) }); err != nil {
		return api.Warnings{}, err
	}
	if d.paths != nil {
		b, err := d.BFD(ctx)
		if err != nil {
			return api.Warnings{}, err
		}
		f.Paths = &health.Paths{BFD: b, Lost: d.paths.Counters().Lost, LastLost: d.paths.Info().LastLost}
	}
	return d.incidents.warnings(&f), nil
}

// facts adds what the owner goroutine knows.
func (c *Core) facts(f *health.Facts, now time.Time) {
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

// oneLine puts a text of several lines into one.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// incidents are the events that raise warnings, for all goroutines.
type incidents struct {
	mu sync.Mutex
	x  health.Incidents
}

func (n *incidents) note(e *api.Event) {
	if e.Warning == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.x.Note(e)
}

func (n *incidents) warnings(f *health.Facts) api.Warnings {
	n.mu.Lock()
	defer n.mu.Unlock()
	return health.Warnings(f, &n.x)
}
