package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
)

// portGuard keeps LLDP and SNSD frames from passing between hosts: it guards the access ports that
// there are, and counts what was dropped. It runs with hard zoning and without.
type portGuard struct {
	rounds
	d *Daemon

	mu     sync.Mutex
	ports  []fabric.GuardedPort // that there are
	states map[string]fabric.GuardState
	frames map[string]fabric.ForbiddenFrames
	wrong  []string // why some ports are not guarded
	errors uint64

	// Of the goroutine.
	guard  fabric.PortGuard // nil: not open
	placed []fabric.GuardedPort
	retry  time.Time
	noted  map[string]forbiddenEvent // by port
}

// forbiddenEvent is what the last event of a port said.
type forbiddenEvent struct {
	at    time.Time
	total uint64
}

const (
	guardRead  = time.Second      // how often counts are read
	guardRetry = 30 * time.Second // after an error
	// guardEvent is the least time between two events about frames of one port.
	guardEvent = time.Minute
)

func newPortGuard(d *Daemon) *portGuard {
	return &portGuard{rounds: newRounds(), d: d, states: make(map[string]fabric.GuardState),
		frames: make(map[string]fabric.ForbiddenFrames), noted: make(map[string]forbiddenEvent)}
}

func (g *portGuard) String() string { return "port guard" }

// hand takes over the access ports that there are; it never waits.
func (g *portGuard) hand(ports []fabric.GuardedPort) {
	g.mu.Lock()
	g.ports = ports
	g.mu.Unlock()
	g.wake()
}

// Run implements task.
func (g *portGuard) Run(ctx context.Context) error {
	g.run(ctx, g.d.env.Now, func(context.Context) time.Time {
		now := g.d.env.Now()
		g.round(now)
		return now.Add(guardRead)
	})
	if g.guard != nil {
		_ = g.guard.Close()
	}
	return nil
}

// round guards the ports that there are, and reads what was dropped.
func (g *portGuard) round(now time.Time) {
	g.mu.Lock()
	ports := slices.Clone(g.ports)
	g.mu.Unlock()
	if g.guard == nil && len(ports) > 0 && !now.Before(g.retry) {
		g.open(now)
	}
	if g.guard == nil {
		return
	}
	if !slices.Equal(ports, g.placed) || !g.retry.IsZero() && !now.Before(g.retry) {
		g.place(ports, now)
	}
	g.read(now)
}

// open opens the guard. An error beside a guard says what it lacks.
func (g *portGuard) open(now time.Time) {
	guard, err := g.d.env.PortGuard()
	g.retry = time.Time{}
	if guard == nil {
		g.retry = now.Add(guardRetry)
		g.fail(fmt.Errorf("no access port is guarded: %w", cmp.Or(err, errors.New("no reason is known"))))
		return
	}
	g.guard = guard
	g.d.warn("port-guard", err)
}

// place guards the ports. What went wrong at one is tried again.
func (g *portGuard) place(ports []fabric.GuardedPort, now time.Time) {
	list := g.guard.SetPorts(ports)
	g.placed, g.retry = ports, time.Time{}
	states := make(map[string]fabric.GuardState, len(list))
	var errs []error
	for _, st := range list {
		states[st.Port] = st
		if st.Err != nil {
			errs = append(errs, st.Err)
			g.retry = now.Add(guardRetry)
		}
	}
	g.mu.Lock()
	g.states = states
	g.mu.Unlock()
	g.fail(errors.Join(errs...))
}

// fail keeps what is wrong; nil: nothing is. It is an event when it changes.
func (g *portGuard) fail(err error) {
	var wrong []string
	if err != nil {
		wrong = []string{oneLine(err.Error())}
	}
	g.mu.Lock()
	changed := !slices.Equal(wrong, g.wrong)
	g.wrong = wrong
	if err != nil {
		g.errors++
	}
	g.mu.Unlock()
	if changed && err != nil {
		g.d.warn("port-guard", errors.New(wrong[0]))
	}
}

// read takes over the counts, and names the ports at which frames were dropped.
func (g *portGuard) read(now time.Time) {
	frames, err := g.guard.Forbidden()
	if err != nil {
		g.fail(err)
		return
	}
	g.mu.Lock()
	g.frames = frames
	g.mu.Unlock()
	maps.DeleteFunc(g.noted, func(port string, _ forbiddenEvent) bool { _, there := frames[port]; return !there })
	for _, port := range slices.Sorted(maps.Keys(frames)) {
		f := frames[port]
		last, known := g.noted[port]
		total := f.In + f.Out
		if total < last.total || !known {
			last.total = 0
		}
		if total == last.total || known && now.Sub(last.at) < guardEvent {
			continue
		}
		g.noted[port] = forbiddenEvent{at: now, total: total}
		g.d.log.Append(api.Event{Time: now, Kind: "denied", Port: port,
			Text:   fmt.Sprintf("port %s: %d LLDP or SNSD frames that would have passed to or from another host were dropped, the last (EtherType %#04x) from MAC %s", port, total-last.total, f.Type, f.Src),
			Fields: map[string]string{"why": "link-frame-forwarded", "from_host": fmt.Sprint(f.In), "to_host": fmt.Sprint(f.Out), "source_mac": f.Src.String(), "ethertype": fmt.Sprintf("%#04x", f.Type)}})
	}
}

// addTo adds what is known of each port.
func (g *portGuard) addTo(ports []api.Port) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range ports {
		p := &ports[i]
		if st, there := g.states[p.Name]; there && st.Err == nil {
			p.Guard = st.Way
		}
		if f, there := g.frames[p.Name]; there {
			p.Forbidden = &api.PortForbidden{In: f.In, Out: f.Out}
		}
	}
}

// warning says why ports are not guarded.
func (g *portGuard) warning() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.wrong)
}

func (g *portGuard) counters() map[string]uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := map[string]uint64{"ports_guarded": 0, "frames_forbidden_in": 0, "frames_forbidden_out": 0, "errors": g.errors}
	for _, st := range g.states {
		if st.Err == nil {
			m["ports_guarded"]++
		}
	}
	for _, f := range g.frames {
		m["frames_forbidden_in"] += f.In
		m["frames_forbidden_out"] += f.Out
	}
	return m
}
