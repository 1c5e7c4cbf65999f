package daemon

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A host that is withdrawn while the reflector is down: nobody behind another switch is told
// before the reflector is back, each of its peers there is told once when it is, and nothing else
// to anybody. Whoever else was down meanwhile.
func TestAHostWithdrawnWhileTheReflectorIsDownIsToldWhenItIsBack(t *testing.T) {
	lose := func(n *node) { // what it knew
		files, err := os.ReadDir(n.cfg.State)
		if err != nil {
			n.t.Fatal(err)
		}
		for _, e := range files {
			if e.Name() != "zones.yaml" {
				if err := os.RemoveAll(filepath.Join(n.cfg.State, e.Name())); err != nil {
					n.t.Fatal(err)
				}
			}
		}
	}
	restart := func(names ...string) func(f *testFabric) {
		return func(f *testFabric) {
			for _, name := range names {
				f.nodes[name].halt()
				f.nodes[name].start()
			}
		}
	}
	gone := map[string][]string{"t1": {i1 + agedOut}, "t3": {i1 + agedOut}}
	for _, c := range []struct {
		name   string
		before func(f *testFabric) // the reflector is down, the host is withdrawn
		back   func(f *testFabric) // and back; nil: nothing more
		within time.Duration       // of the reflector's start
	}{
		{name: "restart", within: 10 * time.Second},
		{name: "its switch restarts too", before: restart("tor1"), within: 10 * time.Second},
		{name: "a peer's switch restarts too", before: restart("tor2"), within: 10 * time.Second},
		{name: "all restart", before: restart("tor1", "tor2", "tor3"), within: 10 * time.Second},
		{name: "it has lost its state", before: func(f *testFabric) { lose(f.nodes["spine"]) }, within: 3 * time.Minute},
		{name: "its switch stays away", before: func(f *testFabric) { f.nodes["tor1"].halt() }, within: 3 * time.Minute},
		{name: "its switch comes back later", before: func(f *testFabric) { f.nodes["tor1"].halt() },
			back: func(f *testFabric) { settle(30 * time.Second); f.nodes["tor1"].start() }, within: time.Minute},
		{name: "its switch and the reflector have lost their state", before: func(f *testFabric) {
			f.nodes["tor1"].halt()
			lose(f.nodes["tor1"])
			f.nodes["tor1"].start()
			lose(f.nodes["spine"])
		}, within: 10 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := threeSwitches(t)
				f.expectAnything()
				settle(2 * time.Minute) // what is to be kept is
				f.nodes["spine"].halt()
				settle(time.Second)
				f.hosts["i1"].muted.Store(true)
				if _, err := f.nodes["tor1"].d.ClearHost(t.Context(), netip.MustParseAddr(i1)); err != nil {
					t.Fatal(err)
				}
				settle(time.Second)
				if c.before != nil {
					c.before(f)
				}
				settle(5 * time.Minute)
				f.expect("the reflector is down", nil)
				f.nodes["spine"].start()
				began := time.Now()
				if c.back != nil {
					c.back(f)
				}
				settle(c.within - time.Since(began))
				f.expect("the reflector is back", gone)
				settle(20 * time.Minute)
				f.expect("later", nil)
			})
		})
	}
}
