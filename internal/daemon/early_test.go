package daemon

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/snsd"
)

// likeHost is a host with the existing agent's habits, whose address can change.
func (f *testFabric) likeHost(name, dev, port, addr string, role snsd.Role) *snsd.LikeAgent {
	f.t.Helper()
	like, err := snsd.NewLikeAgent(snsd.LikeConfig{AgentConfig: snsd.AgentConfig{Interface: "eth0", MAC: hostMAC(name),
		Addrs: []netip.Addr{netip.MustParseAddr(addr)}, Subscribes: true, Service: snsd.Service{Role: role, NQN: "nqn.2026-11.test:" + name}}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.hostOf(name, dev, port, like)
	return like
}

// asks has a host give itself an address, if there is a like agent, and ask for its zones.
func (h *labHost) asks(like *snsd.LikeAgent, mac fabric.MAC, addrs ...string) {
	h.do <- func(now time.Time) (out snsd.AgentOutput) {
		for _, a := range addrs {
			list := []netip.Addr{netip.MustParseAddr(a)}
			if like != nil {
				if err := like.SetAddrs(list, now); err != nil {
					h.t.Error(err)
				}
			}
			payload, err := snsd.AppendQuery(nil, snsd.QueryPadding, list...)
			if err != nil {
				h.t.Error(err)
			}
			out.Frames = append(out.Frames, append(fabric.AppendEthernet(nil, fabric.MACNTS, mac, fabric.EtherTypeNTS), payload...))
		}
		return out
	}
}

func (n *node) counts() (foreign, early, held uint64) {
	_ = n.d.device.Do(n.t.Context(), func(c *device.Core, _ time.Time) {
		n := c.Counters()["core"].(device.Counters)
		foreign, early, held = n.QueriesForeign, n.QueriesEarly, n.QueriesHeld
	})
	return foreign, early, held
}

const movedTo = "192.0.2.61" // the new address of i1

func TestAHostWhoseAddressHasChangedIsToldBeforeItRegisters(t *testing.T) {
	for _, c := range []struct {
		name  string
		zones map[string][]string
		early []string            // it is told when it asks
		told  map[string][]string // when it has registered
	}{
		{"in a zone that is known there", map[string][]string{"a": {i1, movedTo, t1, t3}},
			[]string{t1 + active, t3 + active}, map[string][]string{"t1": {movedTo + active}, "t3": {movedTo + active, t1 + active}}},
		{"by its name", map[string][]string{"a": {"nqn.2026-11.test:i1", t1}},
			[]string{t1 + active}, map[string][]string{"t1": {movedTo + active}}},
		{"by its port", map[string][]string{"a": {"port:10.0.0.1/eth1", t1}},
			[]string{t1 + active}, map[string][]string{"t1": {movedTo + active}}},
		{"in no zone of its old address", map[string][]string{"a": {i1, t1}, "b": {movedTo, t3}},
			nil, map[string][]string{"i1": {t3 + active}, "t3": {movedTo + active}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newTestFabric(t)
				f.add("spine", reflectorID, "reflector")
				f.zones("spine", c.zones)
				n := f.add("tor1", "10.0.0.1", "client", "eth1")
				f.add("tor2", "10.0.0.2", "client", "eth1", "eth2")
				settle(20 * time.Second)
				like := f.likeHost("i1", "tor1", "eth1", i1, snsd.RoleInitiator)
				f.host("t1", "tor2", "eth1", t1, snsd.RoleTarget)
				f.host("t3", "tor2", "eth2", t3, snsd.RoleTarget)
				settle(10 * time.Second)
				f.expectAnything()
				f.hosts["i1"].asks(like, hostMAC("i1"), movedTo)
				settle(3 * time.Second)
				f.expect("asked", map[string][]string{"i1": c.early})
				if foreign, early, held := n.counts(); early != 1 || foreign+held != 0 {
					t.Errorf("%d early, %d foreign, %d held", early, foreign, held)
				}
				_ = f.nodes["tor2"].fake.SetCarrier("eth1", false)
				settle(time.Second)
				down, up := []string{}, []string{}
				for _, s := range c.early {
					if strings.HasPrefix(s, t1) {
						down, up = append(down, t1+linkDown), append(up, s)
					}
				}
				if got := f.hosts["i1"].heard(); strings.Join(got, ",") != strings.Join(down, ",") {
					t.Errorf("a fault of a peer: told %q, want %q", got, down)
				}
				_ = f.nodes["tor2"].fake.SetCarrier("eth1", true)
				settle(time.Second)
				if got := f.hosts["i1"].heard(); strings.Join(got, ",") != strings.Join(up, ",") {
					t.Errorf("its end: told %q, want %q", got, up)
				}
				settle(90 * time.Second)
				f.expectAnything()
				settle(20 * time.Second) // 113 s have passed: it registers
				for _, name := range []string{"i1", "t1", "t3"} {
					got, want := f.hosts[name].heard(), c.told[name]
					for _, w := range want {
						if w != t1+active && !strings.Contains(strings.Join(got, ","), w) {
							t.Errorf("registered: host %s was told %q, want %q", name, got, w)
						}
					}
					if name == "i1" && len(want) == 0 && len(got) != 0 {
						t.Errorf("registered: it is told again: %q", got)
					}
				}
				settle(time.Minute)
				if n.d.device.core.Early() != 0 {
					t.Error("it counts as not registered")
				}
			})
		})
	}
}

func TestAQueryThatNobodyKnownAsksIsCountedAndShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.zones("spine", map[string][]string{"c": {movedTo, i1, t1}})
		settle(time.Second)
		f.expectAnything()
		n, h := f.nodes["tor1"], f.hosts["i1"]
		h.asks(nil, hostMAC("another"), movedTo) // no such host on that port
		settle(time.Second)
		f.expect("an unknown MAC", nil)
		h.asks(nil, hostMAC("i1"), t1) // the target's, elsewhere
		settle(time.Second)
		f.expect("an address of another host", nil)
		if foreign, early, held := n.counts(); foreign != 1 || held != 1 || early != 0 {
			t.Errorf("%d foreign, %d held, %d early", foreign, held, early)
		}
		var texts []string
		for _, e := range n.d.Events(0).Events {
			if e.Fields["room"] == "query" {
				texts = append(texts, e.Text)
			}
		}
		if len(texts) != 2 || !strings.Contains(texts[0], "zone query for "+movedTo+" from "+hostMAC("another").String()+" on port eth1 is not answered: no host is registered there") ||
			!strings.Contains(texts[1], "on device 10.0.0.2 port eth1 has it") {
			t.Errorf("events %q", texts)
		}
	})
}

// What a machine may claim by asking is bounded, and ends by itself.
func TestAddressesThatAskAndDoNotRegisterAreFewAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.zones("spine", map[string][]string{"c": {"198.51.100.0/24", i1, t1}})
		settle(time.Second)
		f.expectAnything()
		n, h := f.nodes["tor1"], f.hosts["i1"]
		var many []string
		for a := netip.MustParseAddr("198.51.100.1"); len(many) < device.MaxEarly+4; a = a.Next() {
			many = append(many, a.String())
		}
		h.asks(nil, hostMAC("i1"), many...)
		settle(time.Second)
		if foreign, early, _ := n.counts(); foreign != 4 || early != device.MaxEarly {
			t.Errorf("%d foreign, %d early", foreign, early)
		}
		hosts := func() (asked int, told uint64) {
			_ = n.d.device.Do(t.Context(), func(c *device.Core, _ time.Time) {
				asked, told = c.Early(), c.Counters()["hostnotify"].(hostnotify.Counters).Hosts
			})
			return asked, told
		}
		if asked, told := hosts(); asked != device.MaxEarly || told != device.MaxEarly+1 {
			t.Errorf("%d hosts asked, %d are told", asked, told)
		}
		settle(device.EarlyLife)
		if asked, told := hosts(); asked != 0 || told != 1 {
			t.Errorf("later %d hosts asked, %d are told", asked, told)
		}
		f.expect("all the time", nil) // the host refuses what is for addresses that are not its own
	})
}

// Who has the address comes after all, and it is of another machine.
func TestARegisteredHolderEndsWhatAQueryBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.zones("spine", map[string][]string{"c": {movedTo, i1, t1}})
		settle(time.Second)
		f.expectAnything()
		n := f.nodes["tor1"]
		f.hosts["i1"].asks(nil, hostMAC("i1"), movedTo)
		settle(time.Second)
		f.host("late", "tor2", "eth3", movedTo, snsd.RoleInitiator)
		settle(2 * time.Second)
		if n.d.device.core.Early() != 0 {
			t.Error("the address is still that of the host that asked")
		}
		if told := n.d.device.core.Told(netip.MustParseAddr(movedTo), netip.MustParseAddr(t1)); told.Subscribes {
			t.Errorf("it is still told: %+v", told)
		}
		if k := f.nodes["tor2"].d.device.core.Directory().Attachments(netip.MustParseAddr(movedTo)); len(k) != 1 || k[0].MAC != hostMAC("late") {
			t.Errorf("the address is at %+v", k)
		}
	})
}

// A device that reflects knows all zones, and so that an address is in none.
func TestADeviceThatKnowsAllZonesTellsOfTheDefaultZoneToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		f.add("tor1", "10.0.0.1", "standalone", "eth1", "eth2")
		settle(5 * time.Second)
		like := f.likeHost("i1", "tor1", "eth1", i1, snsd.RoleInitiator)
		f.host("t1", "tor1", "eth2", t1, snsd.RoleTarget)
		settle(10 * time.Second)
		f.expectAnything()
		f.hosts["i1"].asks(like, hostMAC("i1"), movedTo)
		settle(3 * time.Second)
		f.expect("asked", map[string][]string{"i1": {t1 + active}})
		settle(2 * time.Minute)
		f.expect("registered", map[string][]string{"t1": {i1 + agedOut, movedTo + active}})
	})
}
