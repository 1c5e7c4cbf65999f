package daemon

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/health"
)

// warnings gathers what the rules of health look at, and returns what they find.
func (d *Daemon) warnings(ctx context.Context, s *api.Status, peers []api.Peer) (api.Warnings, error) {
	f := health.Facts{
		Now: d.env.Now(), Synced: s.Synced, HeldBack: s.HeldBack, Counts: s.Counts, Peers: peers,
		Certificates: d.certs.warnings(), State: d.saver.warning(), EventsNotLogged: d.logged.Load(), Reload: d.reloads.warning(), Exposed: d.cfg.Load().ExposedSecrets(),
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

// reporter tells the reflectors what is wrong here: the health of the fabric is seen there.
type reporter struct{ d *Daemon }

// reportEvery is how often it looks, and repeats what stands.
const reportEvery = 10 * time.Second

func (r reporter) String() string { return "report to the reflectors" }

// Run implements task.
func (r reporter) Run(ctx context.Context) error {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	said := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		s, err := r.d.Status(ctx)
		if err != nil {
			continue // the device stops
		}
		m := health.Report(s.Warnings)
		if is := len(m.Warnings) > 0; is || said {
			said = is
			_ = r.d.device.Do(ctx, func(*Core, time.Time) { r.d.device.tellReflectors(m) })
		}
	}
}

// lossWatch looks at what the kernel drops before anybody can read it, which nothing else
// would tell.
type lossWatch struct {
	d  *Daemon
	dp fabric.LossReader
}

// lossEvery is how often it looks.
const lossEvery = 10 * time.Second

func (w lossWatch) String() string { return "watch over dropped frames" }

// Run implements task.
func (w lossWatch) Run(ctx context.Context) error {
	tick := time.NewTicker(lossEvery)
	defer tick.Stop()
	before := w.dp.LostFrames()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := w.dp.LostFrames()
		w.tell(before, now)
		before = now
	}
}

// tell makes known on which ports more was dropped than before.
func (w lossWatch) tell(before, now []fabric.LostFrames) {
	had := make(map[string]uint64, len(before))
	for _, l := range before {
		had[l.Port] = l.Frames
	}
	for _, l := range now {
		if n := l.Frames - min(l.Frames, had[l.Port]); n > 0 {
			w.d.log.Append(api.Event{Time: w.d.env.Now(), Kind: "error", Port: l.Port, Warning: health.FramesDropped,
				Text: fmt.Sprintf("port %s: the kernel dropped %d control frame(s) within %s: LLDP of hosts, acks or zone queries are lost", l.Port, n, lossEvery)})
		}
	}
}
