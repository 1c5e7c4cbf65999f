package daemon

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

// addresses of the hosts of threeSwitches.
const (
	i1 = "192.0.2.11"
	i2 = "192.0.2.12"
	t1 = "192.0.2.51"
	t2 = "192.0.2.52"
	t3 = "192.0.2.53"
)

// threeSwitches is a reflector and three switches: i1 and t1 share zone a, i2 and
// t2 share zone b, t3 is in both.
func threeSwitches(t *testing.T) *testFabric {
	f := newTestFabric(t)
	f.add("spine", reflectorID, "reflector")
	f.zones("spine", map[string][]string{"a": {i1, t1, t3}, "b": {i2, t2, t3}})
	f.add("tor1", "10.0.0.1", "client", "eth1", "eth2")
	f.add("tor2", "10.0.0.2", "client", "eth1", "eth2", "eth3")
	f.add("tor3", "10.0.0.3", "client", "eth1", "eth2")
	settle(20 * time.Second) // sessions begin after a back-off
	f.host("i1", "tor1", "eth1", i1, snsd.RoleInitiator)
	f.host("t1", "tor2", "eth1", t1, snsd.RoleTarget)
	f.host("i2", "tor2", "eth2", i2, snsd.RoleInitiator)
	f.host("t2", "tor3", "eth1", t2, snsd.RoleTarget)
	f.host("t3", "tor3", "eth2", t3, snsd.RoleTarget)
	settle(2 * time.Second)
	return f
}

const (
	active   = " active none"
	linkDown = " inactive link-down"
	agedOut  = " inactive aged-out"
	unzoned  = " inactive zone-changed"
)

func TestHostsHearOfTheirZonesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expect("registration", map[string][]string{
			"i1": {t1 + active, t3 + active},
			"t1": {i1 + active, t3 + active},
			"i2": {t2 + active, t3 + active},
			"t2": {i2 + active, t3 + active},
			"t3": {i1 + active, t1 + active, i2 + active, t2 + active},
		})
		settle(10 * time.Minute)
		f.expect("quiet", nil)
	})
}

func TestAPulledCableIsToldToTheSameZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		if err := f.nodes["tor3"].fake.SetCarrier("eth2", false); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		down := map[string][]string{"i1": {t3 + linkDown}, "t1": {t3 + linkDown}, "i2": {t3 + linkDown}, "t2": {t3 + linkDown}}
		f.expect("pulled", down)
		if err := f.nodes["tor3"].fake.SetCarrier("eth2", true); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		// The host asks for its zones when its link is up, and is told all of them again.
		f.expect("plugged", map[string][]string{"i1": {t3 + active}, "t1": {t3 + active}, "i2": {t3 + active}, "t2": {t3 + active},
			"t3": {i1 + active, t1 + active, i2 + active, t2 + active}})
	})
}

func TestALinkThatIsBackIsNoEvidenceOfTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", false)
		settle(time.Second)
		f.expectAnything()
		f.hosts["t3"].silent(true)
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", true)
		settle(30 * time.Second)
		for name := range f.hosts {
			if got := f.hosts[name].heard(); name != "t3" && len(got) > 0 {
				t.Errorf("link up, host silent: host %s was told %q", name, got)
			}
		}
		f.hosts["t3"].silent(false)
		settle(40 * time.Second)
		got := f.hosts["i1"].heard()
		if len(got) != 1 || got[0] != t3+active {
			t.Errorf("after the host speaks again i1 was told %q", got)
		}
	})
}

func TestAgeOutIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		f.hosts["t2"].silent(true)
		settle(121 * time.Second)
		f.expect("aged out", map[string][]string{"i2": {t2 + agedOut}, "t3": {t2 + agedOut}})
	})
}

func TestZoneChangesAreToldToBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		spine := f.nodes["spine"].d
		if err := spine.RemoveMembers(t.Context(), "a", []string{t1}); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		f.expect("member removed", map[string][]string{
			"i1": {t1 + unzoned}, "t3": {t1 + unzoned}, "t1": {i1 + unzoned, t3 + unzoned}})
		if err := spine.AddMembers(t.Context(), "b", []string{t1}); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		f.expect("member of another zone", map[string][]string{
			"i2": {t1 + active}, "t2": {t1 + active}, "t3": {t1 + active}, "t1": {i2 + active, t2 + active, t3 + active}})
		if err := spine.RemoveZone(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		// t2, i2 and t1 fall into the default zone together and stay visible to each other.
		f.expect("zone removed", map[string][]string{
			"i2": {t3 + unzoned}, "t2": {t3 + unzoned}, "t1": {t3 + unzoned}, "t3": {i2 + unzoned, t2 + unzoned, t1 + unzoned}})
	})
}

func TestARestartedClientCausesNoNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		for _, name := range []string{"tor1", "tor2", "tor3"} {
			n := f.nodes[name]
			n.halt()
			settle(3 * time.Second)
			n.start()
			settle(10 * time.Minute)
			f.expect("restart of "+name, nil)
		}
	})
}

func TestARestartedReflectorCausesNoNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["spine"]
		n.halt()
		settle(30 * time.Second)
		n.start()
		settle(10 * time.Minute)
		f.expect("restart of the reflector", nil)
	})
}

// What a reflector that was started anew does not say of a host whose zone it has no more,
// or has elsewhere now, is no word about the host: it left the zone, it did not age out.
func TestZonesChangedDuringAReflectorOutageAreNoAging(t *testing.T) {
	for name, change := range map[string]func(ctx context.Context, spine *Daemon) error{
		"zone removed, another one made": func(ctx context.Context, spine *Daemon) error {
			return errors.Join(spine.RemoveZone(ctx, "a"), spine.AddZone(ctx, "c", []string{t1, i2}))
		},
		"member moved": func(ctx context.Context, spine *Daemon) error {
			return errors.Join(spine.RemoveMembers(ctx, "a", []string{t1}), spine.AddZone(ctx, "c", []string{t1, i2}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := threeSwitches(t)
				f.expectAnything()
				n := f.nodes["spine"]
				n.halt()
				settle(time.Second)
				n.start()
				if err := change(t.Context(), n.d); err != nil { // before the sessions are back
					t.Fatal(err)
				}
				settle(time.Minute)
				var told []string
				for _, n := range f.hosts["i1"].heard() {
					if strings.HasPrefix(n, t1) {
						told = append(told, n)
					}
				}
				if !slices.Equal(told, []string{t1 + unzoned}) {
					t.Errorf("i1 was told %q", told)
				}
			})
		})
	}
}

func TestAFaultDuringAReflectorOutageIsToldAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		f.nodes["spine"].halt()
		settle(time.Second)
		_ = f.nodes["tor3"].fake.SetCarrier("eth2", false)
		settle(time.Second)
		f.expect("reflector is gone", map[string][]string{"t2": {t3 + linkDown}}) // on the same switch
		f.nodes["spine"].start()
		settle(10 * time.Second)
		f.expect("reflector is back", map[string][]string{"i1": {t3 + linkDown}, "t1": {t3 + linkDown}, "i2": {t3 + linkDown}})
	})
}

func TestCutSessionsComeBackWithoutANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		for range 5 {
			f.net.Cut()
			settle(20 * time.Second)
		}
		f.expect("cut", nil)
		peers, err := f.nodes["spine"].d.Peers(t.Context())
		if err != nil || len(peers) != 3 {
			t.Fatalf("peers %v, error %v", peers, err)
		}
		for _, p := range peers {
			if p.State != api.PeerEstablished {
				t.Errorf("peer %s is %s", p.Device, p.State)
			}
		}
	})
}

func TestTheEarlierClaimToAnAddressStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		f.host("thief", "tor1", "eth2", t3, snsd.RoleTarget)
		settle(5 * time.Second)
		f.hosts["t3"].heard() // the fake port lets no ARP through, so that it is asked by notices
		f.expect("second claim", map[string][]string{})
		hosts, err := ask[[]api.Host](t.Context(), f.nodes["tor1"].d, "hosts", "addr", t3)
		if err != nil || len(hosts) != 2 {
			t.Fatalf("hosts %v, error %v", hosts, err)
		}
		for _, h := range hosts {
			if h.Conflict != (h.Type == api.Local) {
				t.Errorf("attachment on %s port %s: conflict %v", h.Device, h.Port, h.Conflict)
			}
		}
		// The thief going away must not take the host with it.
		_ = f.nodes["tor1"].fake.SetCarrier("eth2", false)
		settle(5 * time.Minute)
		f.hosts["t3"].heard()
		f.expect("second claim gone", nil)
	})
}

// A claim that loses changes nothing; it is told and counted all the same.
func TestALosingClaimIsToldAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		d := f.nodes["tor2"].d
		f.host("thief", "tor2", "eth3", t3, snsd.RoleTarget)
		settle(5 * time.Second)
		told := 0
		for _, e := range d.Events(0).Events {
			if e.Kind == "conflict" && e.Addr == t3 && e.Port == "eth3" {
				told++
			}
		}
		st, err := d.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := st.Counters["core"].(device.Counters).Conflicts; n != 1 || told != 1 || st.Counts.Conflicts != 1 {
			t.Errorf("%d conflicts counted, %d told, %d stand, want 1 of each", n, told, st.Counts.Conflicts)
		}
	})
}

func TestAStandaloneDeviceServesItsHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		f.add("box", "10.0.0.9", "standalone", "eth1", "eth2", "eth3")
		f.zones("box", map[string][]string{"a": {i1, t1}})
		settle(time.Second)
		f.host("i1", "box", "eth1", i1, snsd.RoleInitiator)
		f.host("t1", "box", "eth2", t1, snsd.RoleTarget)
		f.host("t2", "box", "eth3", t2, snsd.RoleTarget)
		settle(time.Second)
		f.expect("registration", map[string][]string{"i1": {t1 + active}, "t1": {i1 + active}})
		_ = f.nodes["box"].fake.SetCarrier("eth2", false)
		settle(time.Second)
		f.expect("pulled", map[string][]string{"i1": {t1 + linkDown}})
		f.nodes["box"].halt()
		settle(time.Second)
		f.nodes["box"].start()
		settle(time.Minute)
		f.expect("restart", nil)
	})
}

// expectAnything forgets what was told so far.
func (f *testFabric) expectAnything() {
	for _, h := range f.hosts {
		h.heard()
	}
}

func TestHostsOfOneSwitchInDifferentZonesAreNeverTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		f.add("spine", reflectorID, "reflector")
		f.zones("spine", map[string][]string{"a": {i1}, "b": {i2}})
		f.add("tor1", "10.0.0.1", "client", "eth1", "eth2", "eth3", "eth4")
		settle(20 * time.Second)
		f.host("i1", "tor1", "eth1", i1, snsd.RoleInitiator)
		f.host("i2", "tor1", "eth2", i2, snsd.RoleInitiator)
		f.host("d1", "tor1", "eth3", t1, snsd.RoleTarget)
		f.host("d2", "tor1", "eth4", t2, snsd.RoleTarget)
		settle(time.Second)
		// Only those that no zone names are together, in the default zone.
		f.expect("registration", map[string][]string{"d1": {t2 + active}, "d2": {t1 + active}})
		n := f.nodes["tor1"]
		n.halt()
		settle(time.Second)
		n.start()
		settle(10 * time.Minute)
		f.expect("restart", nil)
	})
}

func TestAMemberThatWasAddedCanBeRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		d := f.add("spine", reflectorID, "reflector").d
		f.zones("spine", map[string][]string{"a": {i1}})
		settle(time.Second)
		for _, m := range []string{t1, "192.0.2.60-192.0.2.70", "192.0.2.128/25", "nqn.2026-11.test:x", "port:10.0.0.1/eth1"} {
			if err := d.AddMembers(t.Context(), "a", []string{m}); err != nil {
				t.Fatal(err)
			}
			if err := d.RemoveMembers(t.Context(), "a", []string{m}); err != nil {
				t.Errorf("member %s: %v", m, err)
			}
		}
		zones, err := ask[[]api.Zone](t.Context(), d, "zones", "name", "a")
		if err != nil || len(zones) != 1 || len(zones[0].Members) != 1 {
			t.Errorf("zones %v, error %v: want the one member it began with", zones, err)
		}
	})
}
