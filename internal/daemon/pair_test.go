package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/snsd"
)

// pairFabric is two reflectors and two switches with a host each, p at tor1 and q at
// tor2, in one zone of both reflectors.
func pairFabric(t *testing.T, agreement string) *testFabric {
	f := newTestFabric(t)
	device := func(name, doc string, ports ...string) {
		cfg, err := config.Parse(name, []byte(doc+"session: {auth: none}\nnotify: {peers: all}\nstate-directory: "+t.TempDir()+"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		list := make([]fabric.Port, len(ports))
		for i, p := range ports {
			list[i] = fabric.Port{Name: p, AdminUp: true}
		}
		n := &node{t: t, f: f, cfg: cfg, fake: fabric.NewFake(fabric.FakeConfig{Name: name}, list...)}
		f.nodes[name] = n
		n.start()
	}
	for i, name := range []string{"r1", "r2"} {
		device(name, fmt.Sprintf("device: {id: 10.0.0.10%d, name: %s, roles: [reflector]}\n", i+1, name))
		f.zones(name, map[string][]string{"a": {i1, t1, t2}})
	}
	for i, name := range []string{"tor1", "tor2"} {
		device(name, fmt.Sprintf("device: {id: 10.0.0.%d, name: %s, roles: [client]}\nports: {access: [eth*]}\n"+
			"client: {reflectors: [{address: 10.0.0.101}, {address: 10.0.0.102}], zone-agreement: %s}\n", i+1, name, agreement), "eth1", "eth2")
	}
	settle(20 * time.Second)
	f.host("p", "tor1", "eth1", i1, snsd.RoleInitiator)
	f.host("q", "tor2", "eth1", t1, snsd.RoleTarget)
	settle(2 * time.Second)
	f.expect("registered: each is told once, though both reflectors say it", map[string][]string{"p": {t1 + active}, "q": {i1 + active}})
	return f
}

// member adds or removes a member of zone a at one reflector.
func (f *testFabric) member(dev string, add bool, member string) {
	f.t.Helper()
	change := f.nodes[dev].d.RemoveMembers
	if add {
		change = f.nodes[dev].d.AddMembers
	}
	if err := change(f.t.Context(), "a", []string{member}); err != nil {
		f.t.Fatal(err)
	}
	settle(time.Second)
}

// differing lists what `show zone --inconsistent` shows at a switch.
func (f *testFabric) differing(dev string) []api.Zone {
	f.t.Helper()
	zs, err := ask[[]api.Zone](f.t.Context(), f.nodes[dev].d, "zones", "inconsistent", "true")
	if err != nil {
		f.t.Fatal(err)
	}
	return slices.DeleteFunc(zs, func(z api.Zone) bool { return !z.Inconsistent })
}

// told counts the events of a device with these words.
func (f *testFabric) told(dev string, words ...string) (n int) {
	for _, e := range f.nodes[dev].d.Events(1).Events {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e.Text, w) }) {
			n++
		}
	}
	return n
}

// A member is taken away and added at one reflector and then at the other, under both
// agreements: what is in force, what is shown, and that one event tells of it.
func TestReflectorsThatDiffer(t *testing.T) {
	for _, agreement := range []string{"identical", "union"} {
		t.Run(agreement, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := pairFabric(t, agreement)
				both := func(what string) map[string][]string {
					return map[string][]string{"p": {t1 + what}, "q": {i1 + what}}
				}
				when := func(identical bool, what string) map[string][]string {
					if identical == (agreement == "identical") {
						return both(what)
					}
					return nil
				}
				f.member("r1", false, t1)
				f.expect("taken away at one", when(true, unzoned))
				zs := f.differing("tor2")
				if len(zs) != 1 || zs[0].Name != "a" || len(zs[0].Words) != 2 {
					t.Errorf("inconsistent at tor2: %+v", zs)
				}
				settle(time.Minute)
				f.expect("a minute later", nil)
				if n := f.told("tor2", "the reflectors differ about 1 zone(s), such as a"); n != 1 {
					t.Errorf("the difference is told %d times", n)
				}
				f.member("r2", false, t1)
				f.expect("and at the other one", when(false, unzoned))
				if zs := f.differing("tor2"); len(zs) != 0 {
					t.Errorf("inconsistent at tor2: %+v", zs)
				}
				if n := f.told("tor2", "agree about all zones again"); n != 1 {
					t.Errorf("the agreement is told %d times", n)
				}
				f.member("r2", true, t1)
				f.expect("added at one", when(false, active))
				f.member("r1", true, t1)
				f.expect("and at the other one", when(true, active))
				f.member("r1", true, t2)
				f.member("r2", true, t2)
				f.expect("a change that concerns nobody who is there", nil)
				if n := f.told("tor2", "the reflectors differ"); n != 1 {
					t.Errorf("short differences are told: %d events", n)
				}
			})
		})
	}
}

// A host that one reflector has in a zone, and the other one in the default zone, is in
// none. A switch of the default zone hears of it from the second only: it asks the first
// one, and follows each change of the answer, also what changed while it had no session.
func TestAHostThatOneReflectorHasInAZone(t *testing.T) {
	for _, agreement := range []string{"identical", "union"} {
		t.Run(agreement, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := pairFabric(t, agreement)
				remove := func(dev, name string) {
					t.Helper()
					if err := f.nodes[dev].d.RemoveZone(t.Context(), name); err != nil {
						t.Fatal(err)
					}
					settle(time.Second)
				}
				add := func(dev, name string, members ...string) {
					t.Helper()
					f.zones(dev, map[string][]string{name: members})
					settle(time.Second)
				}
				remove("r1", "a")
				remove("r2", "a")
				f.expectAnything()
				add("r1", "x", t2)
				f.host("s", "tor2", "eth2", t2, snsd.RoleTarget)
				settle(2 * time.Second)
				f.expect("registered, in a zone of r1", nil)
				add("r2", "x", t2)
				f.expect("in a zone of both", nil)
				remove("r1", "x")
				f.expect("in a zone of r2", nil)
				f.nodes["r2"].halt()
				settle(time.Second)
				f.expect("that has stopped", nil)
				f.nodes["r2"].start()
				settle(20 * time.Second)
				f.expect("and is back", nil)
				all := map[string][]string{"p": {t2 + active}, "q": {t2 + active}, "s": {i1 + active, t1 + active}}
				remove("r2", "x")
				f.expect("in no zone", all)
				settle(time.Minute)
				f.expect("a minute later", nil)
			})
		})
	}
}

// One reflector after the other stops, and both: nothing is told of that, faults are,
// once each; a session that was cut resumes, and `show peer` says so and why.
func TestASilentReflectorChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pairFabric(t, "identical")
		cable := func(up bool) {
			if err := f.nodes["tor2"].fake.SetCarrier("eth1", up); err != nil {
				t.Fatal(err)
			}
			settle(2 * time.Second)
		}
		for _, r := range []string{"r1", "r2"} {
			f.nodes[r].halt()
			settle(time.Minute)
			f.expect(r+" is gone", nil)
			cable(false)
			f.expect("a cable is pulled", map[string][]string{"p": {t1 + linkDown}})
			cable(true)
			f.expect("and plugged", map[string][]string{"p": {t1 + active}, "q": {i1 + active}})
			f.nodes[r].start()
			settle(3 * time.Minute)
			f.expect(r+" is back", nil)
		}
		f.net.Cut()
		settle(time.Minute)
		f.expect("every connection was cut", nil)
		peers, err := f.nodes["tor1"].d.Peers(t.Context())
		if err != nil || len(peers) != 2 {
			t.Fatalf("%v, %v", peers, err)
		}
		for _, p := range peers {
			if p.State != api.PeerEstablished || p.SyncIn != "resumed" || p.SyncOut != "resumed" || !strings.HasPrefix(p.SyncOutWhy, "after change ") {
				t.Errorf("session with %s: %v, in %s, out %s (%s)", p.Device, p.State, p.SyncIn, p.SyncOut, p.SyncOutWhy)
			}
		}
		f.nodes["r1"].halt()
		f.nodes["r2"].halt()
		settle(5 * time.Minute)
		f.expect("both are gone", nil)
		cable(false)
		f.expect("nobody can tell the other switch", nil)
		f.nodes["r1"].start()
		f.nodes["r2"].start()
		settle(3 * time.Minute)
		f.expect("both are back: what happened is told once", map[string][]string{"p": {t1 + linkDown}})
	})
}
