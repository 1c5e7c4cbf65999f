package daemon

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/snsd"
)

// A host restarts while its switch has no daemon: what it asks is heard by nobody, and what it
// says is what it said before. The kernel has counted that its cable moved.
func TestAHostThatRestartsWhileTheDaemonIsAwayIsToldItsPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1", "eth2")
		settle(5 * time.Second)
		i := f.host("i1", "tor1", "eth1", i1, snsd.RoleInitiator)
		f.host("t1", "tor1", "eth2", t1, snsd.RoleTarget)
		settle(20 * time.Second)
		f.expect("at the start", map[string][]string{"i1": {t1 + " active none"}, "t1": {i1 + " active none"}})
		n.halt()
		_ = i.fake.SetCarrier("eth0", false)
		settle(time.Second)
		_ = i.fake.SetCarrier("eth0", true)
		settle(time.Second) // its registration and its query are lost
		n.start()
		settle(time.Second)
		if got := i.heard(); !slices.Equal(got, []string{t1 + " active none"}) {
			t.Errorf("a second after the daemon is back: %q", got)
		}
		if moved := n.d.device.core.Counters()["core"].(device.Counters).PortsMoved; moved != 1 {
			t.Errorf("%d ports moved", moved)
		}
		n.halt()
		settle(time.Second)
		n.start()
		settle(time.Minute)
		f.expect("another restart, while which nothing happened", nil)
	})
}
