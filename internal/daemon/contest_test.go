package daemon

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/snsd"
)

// mute has a host hear nothing and answer nothing, with its link up: its address has moved.
func (h *labHost) mute() { h.muted.Store(true) }

// holder is where a device takes an address to be.
func holder(t *testing.T, n *node, addr string) string {
	t.Helper()
	hosts, err := ask[[]api.Host](t.Context(), n.d, "hosts", "addr", addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts {
		if !h.Conflict {
			return h.Device.String() + "/" + h.Port
		}
	}
	return "nowhere"
}

// conflicts are the texts of a device's events about an address that is claimed twice.
func conflicts(n *node) []string {
	var out []string
	for _, e := range n.d.Events(0).Events {
		if e.Kind == "conflict" {
			out = append(out, e.Text)
		}
	}
	return out
}

func (f *testFabric) expectHolder(addr, want string) {
	f.t.Helper()
	for name, n := range f.nodes {
		if got := holder(f.t, n, addr); got != want {
			f.t.Errorf("%s takes %s to be at %s, want %s", name, addr, got, want)
		}
	}
}

// The port where it was is well and says nothing of it: only asking shows that it has gone.
func TestAnAddressThatMovesIsTakenAtOnce(t *testing.T) {
	for _, to := range []struct{ dev, port, at string }{{"tor1", "eth2", "10.0.0.1/eth2"}, {"tor2", "eth3", "10.0.0.2/eth3"}} {
		synctest.Test(t, func(t *testing.T) {
			f := threeSwitches(t)
			f.expectHolder(t3, "10.0.0.3/eth2")
			f.hosts["t3"].mute()
			f.host("moved", to.dev, to.port, t3, snsd.RoleTarget)
			settle(220 * time.Millisecond)
			f.expectHolder(t3, to.at)
			st, err := f.nodes["tor3"].d.Status(t.Context())
			if c := st.Counters["core"].(device.Counters); err != nil || c.AddressesMoved != 1 {
				t.Errorf("%d addresses have moved at the switch that lost it, error %v", c.AddressesMoved, err)
			}
		})
	}
}

// Both switches tell of it, and the one that has it asks again while it lasts.
func TestAHolderThatAnswersKeepsItsAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		f.host("thief", "tor1", "eth2", t3, snsd.RoleTarget)
		settle(time.Minute)
		f.expectHolder(t3, "10.0.0.3/eth2")
		for _, name := range []string{"tor1", "tor3"} {
			if c := conflicts(f.nodes[name]); len(c) != 1 || !strings.Contains(c[0], "10.0.0.3 port eth2") || !strings.Contains(c[0], "10.0.0.1 port eth2") {
				t.Errorf("%s tells %q", name, c)
			}
			st, err := f.nodes[name].d.Status(t.Context())
			if err != nil || st.Counts.Conflicts != 1 {
				t.Errorf("%s counts %d conflicts, error %v", name, st.Counts.Conflicts, err)
			}
		}
		f.hosts["t3"].heard() // the fake port lets no ARP through, so that it was asked by notices
		f.expect("a thief", map[string][]string{})
		f.hosts["t3"].mute() // it leaves later
		settle(time.Minute + time.Second)
		f.expectHolder(t3, "10.0.0.1/eth2")
	})
}

func TestAClaimTakesTheAddressFromAPortWithAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", false)
		settle(time.Second)
		f.host("moved", "tor2", "eth3", t3, snsd.RoleTarget)
		settle(10 * time.Millisecond)
		f.expectHolder(t3, "10.0.0.2/eth3")
	})
}

func TestConflictFirstAndNewest(t *testing.T) {
	for policy, want := range map[config.Conflict]string{config.ConflictFirst: "10.0.0.3/eth2", config.ConflictNewest: "10.0.0.2/eth3"} {
		synctest.Test(t, func(t *testing.T) {
			f := threeSwitches(t)
			d := f.nodes["tor3"].d
			next := *d.cfg.Load()
			next.Hosts.Conflict = policy
			if err := d.Reload(t.Context(), &next, false); err != nil {
				t.Fatal(err)
			}
			if policy == config.ConflictFirst {
				f.hosts["t3"].mute()
			}
			f.host("other", "tor2", "eth3", t3, snsd.RoleTarget)
			settle(5 * time.Second)
			f.expectHolder(t3, want)
		})
	}
}

// An LLDPDU with the longest time to live must not hold an address for 18 hours.
func TestATimeToLiveIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		h := f.hostWith("long", "tor2", "eth3", snsd.AgentConfig{Addrs: []netip.Addr{netip.MustParseAddr("198.51.100.99")}, TTL: 65535,
			Service: snsd.Service{Role: snsd.RoleTarget, NQN: "nqn.2026-11.test:long"}})
		settle(time.Second)
		if at := holder(t, f.nodes["tor2"], "198.51.100.99"); at != "10.0.0.2/eth3" {
			t.Fatalf("it is at %s", at)
		}
		h.mute()
		settle(6 * time.Minute)
		f.expectHolder("198.51.100.99", "nowhere")
	})
}

func TestAnotherMachineOnThePortTakesTheAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		n := f.nodes["tor3"]
		f.hosts["t3"].mute()
		agent, err := snsd.NewAgent(snsd.AgentConfig{Interface: "eth9", MAC: hostMAC("new"), Addrs: []netip.Addr{netip.MustParseAddr(t3)}, Subscribes: true,
			Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, NQN: "nqn.2026-11.test:t3"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range agent.LinkUp(time.Now()).Frames {
			if err := n.fake.Inject("eth2", b); err != nil {
				t.Fatal(err)
			}
		}
		settle(time.Second)
		hosts, err := ask[[]api.Host](t.Context(), n.d, "hosts", "addr", t3)
		if err != nil || !slices.ContainsFunc(hosts, func(h api.Host) bool { return h.MAC == hostMAC("new") && !h.Conflict }) {
			t.Errorf("hosts %+v, error %v", hosts, err)
		}
	})
}
