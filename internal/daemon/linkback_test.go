package daemon

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/snsd"
)

// A host with the existing agent's habits says nothing when its link comes back.
func TestAHostWhoseCableBlinkedIsToldAtOnceAndItsAckBringsItBackToItsPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		f.add("spine", reflectorID, "reflector")
		f.zones("spine", map[string][]string{"a": {i1, t1}})
		f.add("tor1", "10.0.0.1", "client", "eth1")
		f.add("tor2", "10.0.0.2", "client", "eth1")
		settle(20 * time.Second)
		like, err := snsd.NewLikeAgent(snsd.LikeConfig{AgentConfig: snsd.AgentConfig{Interface: "eth0", MAC: hostMAC("i1"),
			Addrs: []netip.Addr{netip.MustParseAddr(i1)}, Subscribes: true, Service: snsd.Service{Role: snsd.RoleInitiator}}})
		if err != nil {
			t.Fatal(err)
		}
		f.hostOf("i1", "tor1", "eth1", like)
		f.host("t1", "tor2", "eth1", t1, snsd.RoleTarget)
		settle(2 * time.Second)
		f.expectAnything()
		blink(t, f, "tor1", "eth1")
		settle(100 * time.Millisecond)
		f.expect("i1's link is back", map[string][]string{"i1": {t1 + active}, "t1": {i1 + linkDown, i1 + active}})
		settle(time.Minute)
		f.expect("quiet", nil)

		// Another machine in its place ignores what is said to it.
		f.hosts["i1"].do <- func(now time.Time) snsd.AgentOutput {
			if err := like.SetAddrs([]netip.Addr{netip.MustParseAddr(i2)}, now); err != nil {
				t.Error(err)
			}
			return snsd.AgentOutput{}
		}
		blink(t, f, "tor1", "eth1")
		settle(10 * time.Second)
		f.expect("another machine", map[string][]string{"t1": {i1 + linkDown}})
	})
}

func blink(t *testing.T, f *testFabric, dev, port string) {
	t.Helper()
	for _, up := range []bool{false, true} {
		if err := f.nodes[dev].fake.SetCarrier(port, up); err != nil {
			t.Fatal(err)
		}
		settle(50 * time.Millisecond)
	}
}
