package daemon

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/health"
)

// descriptorsShown is how long a connection that was closed for want of descriptors is worth a warning.
const descriptorsShown = 10 * time.Minute

// warnings gathers what the rules of health look at, and returns what they find.
func (d *Daemon) warnings(ctx context.Context, s *api.Status, peers []api.Peer) (api.Warnings, error) {
	f := health.Facts{
		Now: d.env.Now(), Mode: s.Mode, Synced: s.Synced, HeldBack: s.HeldBack, LastSync: s.LastSync, Counts: s.Counts, Peers: peers,
		Certificates: d.certs.warnings(), State: d.savingWarnings(), EventsNotLogged: d.logged.Load(), Reload: d.reloads.warning(), Exposed: d.cfg.Load().ExposedSecrets(),
		Syslog: d.syslogTroubles(), NoDescriptors: d.descriptors.refusedIn(descriptorsShown, d.env.Now()),
		Listeners: d.failing.now(d.env.Now()),
	}
	waiting := d.device.inbox.Status(f.Now)
	f.Waits, f.WaitsOf = waiting.Oldest, waiting.Device
	f.Rests, f.RestsOf = waiting.RestingOldest, waiting.RestingDevice
	if t, ok := d.env.Dataplane.(fabric.Doubter); ok {
		f.Doubts = t.Doubts(f.Now)
	}
	f.Blind = d.device.sampler.blind(f.Now)
	if d.hard != nil {
		d.hard.mu.Lock()
		f.HardSuspended = d.hard.state.suspended && d.hard.state.running
		d.hard.mu.Unlock()
	}
	if d.guard != nil {
		f.PortGuard = d.guard.warning()
	}
	if d.fence != nil && d.env.Fence != nil {
		f.Fence = d.fence.now().Trouble
	}
	switch {
	case d.cluster != nil:
		f.Cluster = d.cluster.warning()
	case d.zones != nil:
		f.Zones = d.zones.warning()
	}
	if err := d.device.Do(ctx, func(c *device.Core, now time.Time) { c.Facts(&f, now) }); err != nil {
		return api.Warnings{}, err
	}
	if d.paths != nil {
		b, err := d.BFD(ctx)
		if err != nil {
			return api.Warnings{}, err
		}
		f.Paths = &health.Paths{BFD: b, Device: d.cfg.Load().Device.ID, Lost: d.paths.Counters().Lost, LastLost: d.paths.Info().LastLost}
	}
	return d.incidents.warnings(&f), nil
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
