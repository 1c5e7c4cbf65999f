package errdown

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openinof/inof/fabric"
)

// world is a dataplane of a few ports that does what it is told, some time later,
// while cables and operators do as they like.
type world struct {
	m     *Monitor
	cfg   Config
	now   time.Time
	ports map[string]*wire
	// folded is what a listener who only hears Changes believes.
	folded map[string]map[Cause]time.Time
}

type wire struct {
	present, admin, cable bool
	index                 int
	changes               uint64
	told                  fabric.Port // what the monitor was told last
	toldPresent           bool
	asked                 Action // under way, not yet done
	asking                bool
}

var wireNames = []string{"e1", "e2", "e3"}

func (w *wire) state(name string) fabric.Port {
	return fabric.Port{Name: name, Index: w.index, AdminUp: w.admin, Carrier: w.admin && w.cable}
}

func newWorld(t *rapid.T) *world {
	cfg := Config{}
	cfg.LinkFlap.Response = Response(rapid.IntRange(0, 2).Draw(t, "response"))
	cfg.LinkFlap.Changes = rapid.IntRange(2, 6).Draw(t, "changes")
	cfg.LinkFlap.Recovery = rapid.SampledFrom([]time.Duration{0, 30 * time.Second}).Draw(t, "recovery")
	cfg.LinkDown.HoldUp = rapid.SampledFrom([]time.Duration{0, 2 * time.Second}).Draw(t, "hold-up")
	w := &world{m: NewMonitor(cfg), cfg: cfg, now: t0, ports: map[string]*wire{}, folded: map[string]map[Cause]time.Time{}}
	for i, n := range wireNames {
		w.ports[n] = &wire{index: i + 1}
		w.folded[n] = map[Cause]time.Time{}
	}
	return w
}

// tell hands the present state of a port to the monitor.
func (w *world) tell(t *rapid.T, name string) {
	p := w.ports[name]
	ev := fabric.Event{Kind: fabric.PortChanged, Port: p.state(name), At: w.now}
	switch {
	case p.present && !p.toldPresent:
		ev.Kind = fabric.PortAdded
	case !p.present && p.toldPresent:
		ev.Kind, ev.Port = fabric.PortRemoved, p.told
	case !p.present:
		return
	}
	p.told, p.toldPresent = ev.Port, p.present
	w.apply(t, w.m.Port(ev, w.now))
}

// apply folds changes as a listener would, and checks that they make sense.
func (w *world) apply(t *rapid.T, changes []Change) {
	before := map[string]bool{}
	for n, f := range w.folded {
		before[n] = len(f) > 0
	}
	dipped := map[string]bool{}
	for _, c := range changes {
		f := w.folded[c.Port]
		since, faulty := f[c.Cause]
		switch {
		case c.Faulty && faulty && (!c.Initial || c.Action != ActionShut): // but what was left to do is asked for again
			t.Fatalf("%+v: it was faulty already", c)
		case !c.Faulty && !faulty:
			t.Fatalf("%+v: a recovery without a trip", c)
		case !c.Faulty && !since.Equal(c.Since):
			t.Fatalf("%+v: the trip was at %v", c, since)
		case c.Faulty:
			f[c.Cause] = c.Since
		default:
			delete(f, c.Cause)
		}
		dipped[c.Port] = dipped[c.Port] || len(f) == 0
		if c.Action != ActionNone {
			if (c.Action == ActionShut) != c.Faulty && !c.Initial || !w.ports[c.Port].toldPresent {
				t.Fatalf("%+v makes no sense", c)
			}
			w.ports[c.Port].asked, w.ports[c.Port].asking = c.Action, true
		}
	}
	for n, f := range w.folded {
		if before[n] && len(f) > 0 && dipped[n] {
			t.Fatalf("port %s was well for a moment within %v", n, changes)
		}
	}
}

func (w *world) step(t *rapid.T) {
	name := rapid.SampledFrom(wireNames).Draw(t, "port")
	p := w.ports[name]
	switch rapid.SampledFrom([]string{"cable", "cable", "cable", "blink", "admin", "plug", "sample", "wait", "long", "obey", "obey", "recover", "again", "flap-config"}).Draw(t, "what") {
	case "cable":
		p.cable = !p.cable
		p.changes++
		w.tell(t, name)
	case "blink":
		p.changes += 2 // too short for an event
	case "admin":
		p.admin = !p.admin
		w.tell(t, name)
	case "plug":
		if p.present = !p.present; p.present {
			p.index += 10
			p.admin, p.asking = true, false
		}
		w.tell(t, name)
	case "sample":
		w.apply(t, w.m.Sample(name, counted(p.changes), w.now))
	case "wait":
		w.pass(t, time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms"))*time.Millisecond)
	case "long":
		w.pass(t, 31*time.Second)
	case "obey":
		w.obey(t, p)
	case "recover":
		if changes, err := w.m.Recover(name, w.now); err == nil {
			w.apply(t, changes)
		}
	case "again":
		w.tell(t, name)
	case "flap-config":
		w.cfg.LinkFlap.Response = Response(rapid.IntRange(0, 2).Draw(t, "response"))
		w.apply(t, w.m.SetConfig(w.cfg, w.now))
	}
}

// pass lets time go by from deadline to deadline.
func (w *world) pass(t *rapid.T, d time.Duration) {
	end := w.now.Add(d)
	for i := 0; ; i++ {
		next := w.m.Next()
		if next.IsZero() || next.After(end) {
			break
		}
		if i > 100 {
			t.Fatalf("Next stays at %v although Tick was called", next)
		}
		if next.After(w.now) {
			w.now = next
		}
		w.apply(t, w.m.Tick(w.now))
	}
	w.now = end
}

// check compares what the monitor says with the wires.
func (w *world) check(t *rapid.T) {
	for _, s := range w.m.Status(w.now) {
		p, f := w.ports[s.Port], w.folded[s.Port]
		if len(s.Causes) != len(f) {
			t.Fatalf("status %+v, but the changes add up to %v", s, f)
		}
		for _, c := range s.Causes {
			if since, ok := f[c.Cause]; !ok || !since.Equal(c.Since) {
				t.Fatalf("status %+v, but the changes add up to %v", s, f)
			}
		}
		if up := p.toldPresent && p.told.Up(); !up && len(s.Causes) == 0 {
			t.Fatalf("port %s is down and has no fault: %+v", s.Port, p)
		}
		if s.Shut && !slices.ContainsFunc(s.Causes, func(c CauseStatus) bool { return c.Cause != LinkDown }) {
			t.Fatalf("port %s is shut for no cause", s.Port)
		}
	}
}

// settle lets everything asked for be done and all cables be good; then every port
// must be well but for causes that wait for the operator, and after him for all.
func (w *world) settle(t *rapid.T) {
	for _, n := range wireNames {
		p := w.ports[n]
		for range 3 {
			w.obey(t, p)
			if changes, err := w.m.Recover(n, w.now); err == nil {
				w.apply(t, changes)
			}
		}
		if !p.present {
			continue
		}
		p.admin, p.cable, p.asking = true, true, false
		w.tell(t, n)
		w.pass(t, 40*time.Second)
		if changes, err := w.m.Recover(n, w.now); err == nil {
			w.apply(t, changes)
		}
		w.pass(t, 40*time.Second)
		if c, faulty := w.m.Worst(n); faulty {
			t.Fatalf("port %s has carrier and is left with %v: %+v", n, c, p)
		}
	}
}

func anyHistory(t *rapid.T) {
	w := newWorld(t)
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		w.step(t)
		w.check(t)
	}
	w.settle(t)
	w.check(t)
}

// kill ends the process: what it had asked for and was not done yet is not done any
// more. The next one has what was kept.
func (w *world) kill(t *rapid.T) {
	saved := w.m.Snapshot()
	w.m = NewMonitor(w.cfg)
	for _, n := range wireNames {
		clear(w.folded[n])
		w.ports[n].asking, w.ports[n].toldPresent = false, false
	}
	for _, c := range w.m.Restore(saved, w.now) {
		w.folded[c.Port][c.Cause] = c.Since
	}
	for _, n := range wireNames {
		w.tell(t, n)
	}
}

// anyKills lets a process be killed at any moment while no operator touches a port:
// once its faults are over every port is open.
func anyKills(t *rapid.T) {
	w := newWorld(t)
	for _, n := range wireNames {
		w.ports[n].present, w.ports[n].admin, w.ports[n].cable = true, true, true
		w.tell(t, n)
	}
	for range rapid.IntRange(1, 80).Draw(t, "steps") {
		p := w.ports[rapid.SampledFrom(wireNames).Draw(t, "port")]
		switch rapid.SampledFrom([]string{"cable", "cable", "cable", "cable", "wait", "long", "obey", "recover", "kill"}).Draw(t, "what") {
		case "cable":
			p.cable = !p.cable
			w.tell(t, w.name(p))
		case "wait":
			w.pass(t, time.Second)
		case "long":
			w.pass(t, 31*time.Second)
		case "obey":
			w.obey(t, p)
		case "recover":
			if changes, err := w.m.Recover(w.name(p), w.now); err == nil {
				w.apply(t, changes)
			}
		case "kill":
			w.kill(t)
		}
		w.check(t)
	}
	for _, n := range wireNames {
		p := w.ports[n]
		w.obey(t, p)
		if changes, err := w.m.Recover(n, w.now); err == nil {
			w.apply(t, changes)
		}
		w.obey(t, p)
		if s, _ := w.m.PortStatus(n, w.now); !p.admin || s.Shut {
			t.Fatalf("port %s is left shut, and nobody will open it: %+v", n, s)
		}
		if s := w.m.Saved(n); s.Opening || s.Unseen {
			t.Fatalf("kept of a port that is open: %+v", s)
		}
	}
}

func (w *world) name(p *wire) string {
	for n, q := range w.ports {
		if p == q {
			return n
		}
	}
	return ""
}

// obey does what was asked for at a port.
func (w *world) obey(t *rapid.T, p *wire) {
	if p.asking {
		p.admin, p.asking = p.asked == ActionOpen, false
		w.tell(t, w.name(p))
	}
}

func TestNoKilledProcessLeavesAPortShut(t *testing.T) { rapid.Check(t, anyKills) }

func TestNoHistoryLosesAFault(t *testing.T) { rapid.Check(t, anyHistory) }

func FuzzHistory(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyHistory)) }

func BenchmarkCarrierLossAmong512Ports(b *testing.B) {
	m := NewMonitor(Config{})
	for i := range 512 {
		m.Port(fabric.Event{Kind: fabric.PortAdded, Port: fabric.Port{Name: fmt.Sprintf("e%d", i), AdminUp: true, Carrier: true}}, t0)
	}
	ev := fabric.Event{Kind: fabric.PortChanged, Port: fabric.Port{Name: "e99", AdminUp: true}}
	now := t0
	b.ReportAllocs()
	for b.Loop() {
		ev.Port.Carrier = !ev.Port.Carrier
		now = now.Add(time.Minute)
		m.Port(ev, now)
		m.Next()
	}
}
