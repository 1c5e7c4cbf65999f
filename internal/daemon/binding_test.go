package daemon

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/snsd"
)

// bind has the reflector read its configuration again with tor2 bound to some prefixes.
func (f *testFabric) bind(force bool, prefixes ...string) error {
	f.t.Helper()
	n := f.nodes["spine"]
	next := *n.cfg
	next.Reflector.Clients = nil
	for _, dev := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		b := config.BoundClient{Device: netip.MustParseAddr(dev)}
		if dev == "10.0.0.2" {
			for _, p := range prefixes {
				b.Prefixes = append(b.Prefixes, netip.MustParsePrefix(p))
			}
		}
		next.Reflector.Clients = append(next.Reflector.Clients, b)
	}
	err := n.d.Reload(f.t.Context(), &next, force)
	if err == nil {
		n.cfg = &next
	}
	settle(time.Second)
	return err
}

// shown is what `show host ADDRESS` says of refusals.
func (f *testFabric) shown(dev, addr string) (why []string) {
	f.t.Helper()
	list, err := ask[[]api.Host](f.t.Context(), f.nodes[dev].d, "hosts", "addr", addr)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, h := range list {
		why = append(why, h.Refused...)
	}
	return why
}

// A switch that is bound to its hosts' prefixes says one of others: nobody hears of it, both
// sides show it and warn, and an operator can say that it is right.
func TestAHostThatItsSwitchMayNotHaveIsRefusedAndShownOnBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		if err := f.bind(false, t1+"/32", i2+"/32"); err != nil {
			t.Fatal(err)
		}
		f.hosts["i1"].heard()
		const rogue = "192.0.2.99"
		f.zones("spine", map[string][]string{"rogue": {rogue, i1, i2}})
		settle(time.Second)
		f.hosts["i1"].heard()
		f.hosts["i2"].heard()
		f.host("rogue", "tor2", "eth3", rogue, snsd.RoleTarget)
		settle(2 * time.Second)
		for _, name := range []string{"i1", "i2", "rogue"} { // i2 is at its own switch
			if got := f.hosts[name].heard(); len(got) != 0 {
				t.Errorf("%s, of its zone, was told %q", name, got)
			}
		}
		if why := f.shown("spine", rogue); len(why) != 1 || !strings.Contains(why[0], "prefixes") {
			t.Errorf("the reflector shows %q", why)
		}
		if why := f.shown("tor2", rogue); len(why) != 1 || !strings.Contains(why[0], reflectorID) {
			t.Errorf("the switch shows %q", why)
		}
		if !f.nodes["spine"].warned("1 host(s) of device 10.0.0.2 are outside of its binding and refused: "+rogue) || !f.nodes["tor2"].warned("reflector "+reflectorID+" refuses 1 host(s) of this device") {
			t.Error("one of them does not warn")
		}
		if f.told("spine", rogue, "refused") != 1 || f.told("tor2", rogue, "refuses") != 1 {
			t.Errorf("events: %d and %d", f.told("spine", rogue, "refused"), f.told("tor2", rogue, "refuses"))
		}
		if err := f.bind(false, t1+"/32", i2+"/32", rogue+"/32"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"i1", "i2"} {
			if got := f.hosts[name].heard(); !slices.Equal(got, []string{rogue + active}) {
				t.Errorf("when it is allowed %s was told %q", name, got)
			}
		}
		if got := f.hosts["rogue"].heard(); !slices.Equal(got, []string{i1 + active, i2 + active}) {
			t.Errorf("when it is allowed it was told %q", got)
		}
		if len(f.shown("spine", rogue)) != 0 || len(f.shown("tor2", rogue)) != 0 || f.nodes["tor2"].warned("refuses") {
			t.Error("it is still shown as refused")
		}
	})
}

// A binding that leaves out a host which is known is a loss: refused and named, and with
// force the host is gone at once.
func TestABindingThatLeavesOutAKnownHostIsRefusedUnlessForced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.hosts["i1"].heard()
		err := f.bind(false, i2+"/32")
		if !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "host "+t1+" of device 10.0.0.2") || strings.Contains(err.Error(), i2) {
			t.Errorf("error %v", err)
		}
		if got := f.hosts["i1"].heard(); len(got) != 0 {
			t.Errorf("a refused reload told %q", got)
		}
		if err := f.bind(true, i2+"/32"); err != nil {
			t.Fatal(err)
		}
		if got := f.hosts["i1"].heard(); !slices.Equal(got, []string{t1 + agedOut}) {
			t.Errorf("a forced one told %q", got)
		}
		// Its own switch tells it nothing more.
		f.hosts["t1"].heard()
		f.host("i9", "tor2", "eth3", "192.0.2.19", snsd.RoleInitiator)
		f.zones("spine", map[string][]string{"own": {t1, "192.0.2.19"}})
		settle(2 * time.Second)
		if got := f.hosts["t1"].heard(); len(got) != 0 {
			t.Errorf("the host that is gone was told %q", got)
		}
	})
}

// An NQN is a claim: a second host that says a member's is taken where the zone names the NQN
// alone, and an operator hears of it; where the zone binds it to a place it is nobody.
func TestAnNQNThatIsBoundLetsNobodyElseIn(t *testing.T) {
	const nqn, rogue = "nqn.2026-11.test:t1", "192.0.2.99"
	for _, member := range []string{nqn, nqn + " at 10.0.0.2", nqn + " at 10.0.0.2/eth1", nqn + " at 192.0.2.51/32"} {
		synctest.Test(t, func(t *testing.T) {
			f := threeSwitches(t)
			if err := f.nodes["spine"].d.RemoveZone(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			f.zones("spine", map[string][]string{"n": {i1, member}})
			settle(time.Second)
			f.hosts["i1"].heard()
			f.hostWith("rogue", "tor2", "eth3", snsd.AgentConfig{Interface: "eth0", MAC: hostMAC("rogue"), Addrs: []netip.Addr{netip.MustParseAddr(rogue)},
				Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, NQN: nqn}})
			settle(2 * time.Second)
			zones, err := ask[[]api.Zone](t.Context(), f.nodes["spine"].d, "zones", "name", "n")
			if err != nil || len(zones) != 1 {
				t.Fatalf("%v, %v", zones, err)
			}
			in := slices.Contains(zones[0].Hosts, netip.MustParseAddr(rogue))
			if open := member == nqn || strings.HasSuffix(member, "10.0.0.2"); in != open {
				t.Errorf("member %s: the rogue is in the zone: %t", member, in)
			}
			if !slices.Contains(zones[0].Hosts, netip.MustParseAddr(t1)) || zones[0].Members[1] != member {
				t.Errorf("member %s: zone %+v", member, zones[0])
			}
			words := "which zones bind to other places"
			if in {
				words = "as " + t1 + " on port eth1 of device 10.0.0.2 does"
			}
			if n := f.told("spine", "host "+rogue, nqn, words); n != 1 {
				t.Errorf("member %s: the event is told %d times", member, n)
			}
		})
	}
}

func TestWhereABindingOfNQNsIsRequiredOneAloneIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		n := f.nodes["spine"]
		next := *n.cfg
		next.Zones.BoundNQNs = true
		if err := n.d.Reload(t.Context(), &next, false); err != nil {
			t.Fatal(err)
		}
		if err := n.d.AddMembers(t.Context(), "a", []string{"nqn.2026-11.test:t9"}); !errors.Is(err, api.ErrInvalid) || !strings.Contains(err.Error(), "nqn.2026-11.test:t9 at DEVICE") {
			t.Errorf("error %v", err)
		}
		if err := n.d.AddMembers(t.Context(), "a", []string{"nqn.2026-11.test:t9 at 10.0.0.3"}); err != nil {
			t.Error(err)
		}
		next.Zones.BoundNQNs = false
		if err := n.d.Reload(t.Context(), &next, false); err != nil {
			t.Fatal(err)
		}
		if err := n.d.AddMembers(t.Context(), "a", []string{"nqn.2026-11.test:t9"}); err != nil {
			t.Fatal(err)
		}
		next.Zones.BoundNQNs = true
		if err := n.d.Reload(t.Context(), &next, false); err == nil || !strings.Contains(err.Error(), "zones stay as they were") {
			t.Errorf("a reload that would refuse the zones in force: %v", err)
		}
		if zs := f.nodes["spine"].d; zs == nil || len(f.shown("spine", t1)) != 0 {
			t.Error("hosts are refused")
		}
	})
}

// copycat registers what another host does, from its own MAC address.
type copycat struct {
	snsd.Machine
	src fabric.MAC
}

func (m *copycat) sent(out snsd.AgentOutput) snsd.AgentOutput {
	for i := range out.Frames {
		copy(out.Frames[i][6:12], m.src[:])
	}
	return out
}

func (m *copycat) LinkUp(now time.Time) snsd.AgentOutput { return m.sent(m.Machine.LinkUp(now)) }
func (m *copycat) Tick(now time.Time) snsd.AgentOutput   { return m.sent(m.Machine.Tick(now)) }

// copyOf puts a host on a port that says it is another one: its chassis id, its address.
func (f *testFabric) copyOf(host, addr, dev, port string) {
	f.t.Helper()
	agent, err := snsd.NewAgent(snsd.AgentConfig{Interface: "eth0", MAC: hostMAC(host), Addrs: []netip.Addr{netip.MustParseAddr(addr)},
		Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.hostOf("copy", dev, port, &copycat{agent, hostMAC("copy")})
}

// The same address and MAC from another port of the same switch hid that the host's port was
// down, for it looked like a bond. Its frames tell: the port of the host alone decides.
func TestACopyOfAHostOnAnotherPortHidesNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.copyOf("t1", t1, "tor2", "eth3")
		settle(2 * time.Second)
		f.hosts["i1"].heard()
		if n := f.told("tor2", "address "+t1+" is in doubt"); n != 1 {
			t.Errorf("the doubt is told %d times", n)
		}
		if err := f.nodes["tor2"].fake.SetCarrier("eth1", false); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Second)
		if got := f.hosts["i1"].heard(); !slices.Equal(got, []string{t1 + linkDown}) {
			t.Errorf("a host of its zone was told %q", got)
		}
		if err := f.nodes["tor2"].fake.SetCarrier("eth1", true); err != nil {
			t.Fatal(err)
		}
		settle(2 * time.Second)
		if got := f.hosts["i1"].heard(); !slices.Equal(got, []string{t1 + active}) {
			t.Errorf("when it is back %q", got)
		}
	})
}

// Nor does one at another switch take the address while its holder's port is down.
func TestACopyOfAHostAtAnotherSwitchTakesNotItsAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.copyOf("t1", t1, "tor1", "eth2")
		settle(2 * time.Second)
		f.hosts["i1"].heard()
		if err := f.nodes["tor2"].fake.SetCarrier("eth1", false); err != nil {
			t.Fatal(err)
		}
		settle(5 * time.Second)
		if got := f.hosts["i1"].heard(); !slices.Equal(got, []string{t1 + linkDown}) {
			t.Errorf("a host of its zone was told %q", got)
		}
	})
}

// A host that is bound to a port is refused at others, with a reason and an event; a reload
// that would take known hosts away is refused and names them.
func TestAHostThatIsBoundToAPortIsRefusedAtOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		n := f.nodes["tor2"]
		bind := func(force bool, port string) error {
			next := *n.cfg
			next.Hosts.Bindings = []config.HostBinding{{Addrs: netip.MustParsePrefix(t1 + "/32"), Ports: []string{port}}}
			err := n.d.Reload(t.Context(), &next, force)
			settle(time.Second)
			return err
		}
		if err := bind(false, "eth1"); err != nil {
			t.Fatal(err)
		}
		f.hosts["i1"].heard()
		f.host("rogue", "tor2", "eth3", t1, snsd.RoleTarget)
		settle(2 * time.Second)
		if k := f.told("tor2", "host "+t1+" on port eth3 is refused", "bound to other ports"); k != 1 || len(f.hosts["i1"].heard()) != 0 {
			t.Errorf("told %d times", k)
		}
		var list []api.Neighbour
		err := n.d.device.Do(t.Context(), func(c *device.Core, now time.Time) { list = c.AppendNeighbours(nil, "eth3", now) })
		if err != nil || len(list) != 1 || len(list[0].Refused) != 1 {
			t.Errorf("show lldp has %+v, %v", list, err)
		}
		if err := bind(false, "eth2"); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "port eth1 with host "+t1) {
			t.Errorf("a reload that takes it away: %v", err)
		}
		if err := bind(true, "eth2"); err != nil {
			t.Fatal(err)
		}
		if got := f.hosts["i1"].heard(); !slices.Equal(got, []string{t1 + agedOut}) {
			t.Errorf("a forced one told %q", got)
		}
	})
}
