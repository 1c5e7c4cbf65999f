package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
)

// fakeGuard guards ports; those in bad it cannot.
type fakeGuard struct {
	mu     sync.Mutex
	bad    map[string]error
	ports  []fabric.GuardedPort
	frames map[string]fabric.ForbiddenFrames
	closed bool
}

func (g *fakeGuard) SetPorts(ports []fabric.GuardedPort) (list []fabric.GuardState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ports = ports
	for _, p := range ports {
		list = append(list, fabric.GuardState{Port: p.Name, Way: "tcx", Err: g.bad[p.Name]})
	}
	return list
}

func (g *fakeGuard) Forbidden() (map[string]fabric.ForbiddenFrames, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[string]fabric.ForbiddenFrames{}
	for _, p := range g.ports {
		out[p.Name] = g.frames[p.Name]
	}
	return out, nil
}

func (g *fakeGuard) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	return nil
}

// guarded runs tor1 with a guard; it cannot be opened at first.
func guarded(t *testing.T, g *fakeGuard) (*testFabric, *node) {
	f := threeSwitches(t)
	n, tries := f.nodes["tor1"], 0
	n.halt()
	n.tune = func(e *Env) {
		e.PortGuard = func() (fabric.PortGuard, error) {
			if tries++; tries == 1 {
				return nil, errors.New("it needs CAP_BPF")
			}
			return g, nil
		}
	}
	n.start()
	time.Sleep(3 * time.Second)
	return f, n
}

func unguarded(t *testing.T, n *node, text string) bool {
	t.Helper()
	s, err := n.d.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(s.Warnings, func(w api.Warning) bool { return w.Rule == "port-not-guarded" && strings.Contains(w.Text, text) })
}

func TestPortsAreGuardedWithoutHardZoning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &fakeGuard{bad: map[string]error{"eth2": errors.New("port eth2 cannot be guarded: no room")}, frames: map[string]fabric.ForbiddenFrames{}}
		f, n := guarded(t, g)
		if !unguarded(t, n, "it needs CAP_BPF") {
			t.Error("no warning says that ports are not guarded")
		}
		time.Sleep(guardRetry)
		if unguarded(t, n, "CAP_BPF") || !unguarded(t, n, "port eth2 cannot be guarded") {
			t.Error("the warning is not of what is wrong now")
		}
		g.mu.Lock()
		g.bad = nil
		g.mu.Unlock()
		time.Sleep(guardRetry)
		if unguarded(t, n, "") {
			t.Error("both ports are guarded, and the warning stays")
		}
		ports, err := n.d.Ports(t.Context())
		if err != nil || len(ports) != 2 || ports[0].Guard != "tcx" || ports[0].Forbidden == nil {
			t.Errorf("%+v %v", ports, err)
		}
		if c := n.d.guard.counters(); c["ports_guarded"] != 2 || c["errors"] < 2 {
			t.Errorf("%v", c)
		}
		_ = f
		n.halt()
		if !g.closed {
			t.Error("the guard was not closed")
		}
	})
}

func TestAPortThatSendsForbiddenFramesIsNamedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &fakeGuard{frames: map[string]fabric.ForbiddenFrames{}}
		_, n := guarded(t, g)
		time.Sleep(guardRetry)
		add := func(in, out uint64) {
			g.mu.Lock()
			defer g.mu.Unlock()
			x := g.frames["eth1"]
			g.frames["eth1"] = fabric.ForbiddenFrames{In: x.In + in, Out: x.Out + out, Src: fabric.MAC{2, 0, 0, 0, 0, 9}, Type: 0x88a7}
		}
		for range 150 { // of a flood that lasts for two minutes and a half
			add(10, 1)
			time.Sleep(time.Second)
		}
		time.Sleep(guardEvent)
		var texts []string
		for _, e := range n.d.log.Events(0).Events {
			if e.Kind == "denied" {
				texts = append(texts, e.Text)
				if e.Port != "eth1" || e.Fields["ethertype"] != "0x88a7" || e.Fields["source_mac"] != "02:00:00:00:00:09" {
					t.Errorf("%+v", e)
				}
			}
		}
		frames := 0
		for _, text := range texts {
			var n int
			if _, err := fmt.Sscanf(text, "port eth1: %d LLDP or SNSD frames", &n); err != nil {
				t.Errorf("%q: %v", text, err)
			}
			frames += n
		}
		if len(texts) != 4 || frames != 1650 {
			t.Errorf("%d events of %d frames: %q", len(texts), frames, texts)
		}
		ports, err := n.d.Ports(t.Context())
		if err != nil || *ports[0].Forbidden != (api.PortForbidden{In: 1500, Out: 150}) {
			t.Errorf("%+v %v", ports[0], err)
		}
		if c := n.d.guard.counters(); c["frames_forbidden_in"] != 1500 || c["frames_forbidden_out"] != 150 {
			t.Errorf("%v", c)
		}
	})
}
