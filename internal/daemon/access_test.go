package daemon

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
)

// accessTo has a device read its configuration again with other access ports.
func (n *node) accessTo(force bool, entries ...string) error {
	n.t.Helper()
	next := *n.cfg
	next.Ports.Access = entries
	err := n.d.Reload(n.t.Context(), &next, force)
	if err == nil {
		n.cfg = &next
	}
	synctest.Wait()
	return err
}

// initiators compares what both initiators were told since the last call.
func (f *testFabric) initiators(step string, want ...string) {
	f.t.Helper()
	for _, name := range []string{"i1", "i2"} {
		if got := f.hosts[name].heard(); !slices.Equal(got, want) {
			f.t.Errorf("%s: host %s was told %q, want %q", step, name, got, want)
		}
	}
}

func (n *node) removals() (list []string) {
	n.t.Helper()
	ports, err := n.d.Ports(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	for _, p := range ports {
		if p.Removal != nil {
			list = append(list, fmt.Sprintf("%s %s: %s in %v", p.Name, p.State, p.Removal.Why, time.Until(p.Removal.ToldAt).Round(time.Second)))
		}
	}
	return list
}

func (n *node) warned(text string) bool {
	n.t.Helper()
	st, err := n.d.Status(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	return strings.Contains(st.Warnings.String(), text)
}

// A port that is not configured any more is no port that is down.
func TestAReloadThatWouldTakeHostsAwayIsRefusedAndNamesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["tor3"]
		err := n.accessTo(false, "Ethrnet*")
		if !errors.Is(err, api.ErrRefused) {
			t.Fatalf("error %v, want refused", err)
		}
		for _, want := range []string{"port eth1 with host " + t2, "port eth2 with host " + t3, "inofctl reload --force"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q lacks %q", err, want)
			}
		}
		settle(10 * time.Minute)
		f.initiators("refused")
		if !n.warned("was refused: ports.access would leave out port eth1") {
			t.Error("the status does not warn")
		}
		st, _ := n.d.Status(t.Context())
		if c := st.Counters["config"].(map[string]uint64); c["reloads_refused"] != 1 || c["reloads"] != 0 {
			t.Errorf("counters %v", c)
		}
		if err := n.accessTo(false, "eth1-2"); err != nil {
			t.Fatal(err)
		}
		if n.warned("refused") {
			t.Error("the status warns although the configuration was corrected")
		}
	})
}

func TestHostsOfAPortThatIsNoLongerConfiguredLeaveQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["tor3"]
		if err := n.accessTo(true, "eth*", "!eth2"); err != nil {
			t.Fatal(err)
		}
		settle(90 * time.Second)
		f.initiators("while they are held")
		if got := n.removals(); len(got) != 1 || got[0] != "eth2 removed: removed from configuration in 30s" {
			t.Errorf("ports %q", got)
		}
		hosts, err := ask[[]api.Host](t.Context(), n.d, "hosts", "port", "eth2")
		if err != nil || len(hosts) == 0 {
			t.Fatal(hosts, err)
		}
		for _, h := range hosts {
			if is := h.Removal != nil; is != (h.Addr.String() == t3) {
				t.Errorf("host %s: removal %v", h.Addr, h.Removal)
			}
		}
		if !n.warned("port eth2 was removed from the configuration: its 1 host address(es)") {
			t.Error("the status does not warn")
		}
		settle(31 * time.Second)
		f.initiators("when the time is over", t3+agedOut)
		if got := n.removals(); len(got) != 0 {
			t.Errorf("ports %q", got)
		}
		// Configured again, the host registers as one that is new.
		if err := n.accessTo(false, "eth*"); err != nil {
			t.Fatal(err)
		}
		settle(31 * time.Second)
		f.initiators("configured again", t3+active)
	})
}

// Whoever corrects the mistake in time has changed nothing for the peers.
func TestAPortThatIsConfiguredAgainInTimeWasNeverAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["tor3"]
		if err := n.accessTo(true, "eth1"); err != nil {
			t.Fatal(err)
		}
		settle(119 * time.Second)
		if err := n.accessTo(false, "eth*"); err != nil {
			t.Fatal(err)
		}
		settle(10 * time.Minute)
		f.initiators("configured again")
		_ = n.fake.SetCarrier("eth2", false)
		settle(time.Second)
		f.initiators("a fault", t3+linkDown)
	})
}

// A port that lost its carrier while nobody looked is faulty when somebody does again.
func TestAPortThatIsDownWhenItIsConfiguredAgainIsAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["tor3"]
		if err := n.accessTo(true, "eth1"); err != nil {
			t.Fatal(err)
		}
		_ = f.hosts["t3"].fake.SetCarrier("eth0", false)
		settle(time.Minute)
		f.initiators("nobody looks")
		if err := n.accessTo(false, "eth*"); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		f.initiators("somebody looks", t3+linkDown)
	})
}

// The typing mistake may as well be found by a restart.
func TestARestartWithoutAPortOfItsHostsHoldsThemToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		n := f.nodes["tor3"]
		n.halt()
		next := *n.cfg
		next.Ports.Access = []string{"eth1", "Ethrnet2"}
		n.cfg = &next
		if err := n.fake.SetAccess(next.Ports.Access); err != nil {
			t.Fatal(err)
		}
		n.start()
		settle(100 * time.Second)
		f.initiators("held")
		if got := n.removals(); len(got) != 1 {
			t.Errorf("ports %q", got)
		}
		if !n.warned("ports.access: Ethrnet2: no such port here") {
			t.Error("the status does not name the entry without a port")
		}
		settle(30 * time.Second)
		f.initiators("over", t3+agedOut)
	})
}

func TestAReloadThatWouldShutOutADeviceWithHostsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		n := f.nodes["spine"]
		next := *n.cfg
		next.Reflector.Clients = []config.BoundClient{{Device: netip.MustParseAddr("10.0.0.1")}, {Device: netip.MustParseAddr("10.0.0.2")}}
		err := n.d.Reload(t.Context(), &next, false)
		if !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "device 10.0.0.3 with 2 hosts ("+t2+", "+t3+")") {
			t.Errorf("error %v", err)
		}
		if err := n.d.Reload(t.Context(), &next, true); err != nil {
			t.Error(err)
		}
	})
}
