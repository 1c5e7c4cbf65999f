package daemon

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	list, err := f.nodes[dev].d.Hosts(f.t.Context(), api.HostQuery{Addr: netip.MustParseAddr(addr)})
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
		f.zones("spine", map[string][]string{"rogue": {rogue, i1}})
		f.host("rogue", "tor2", "eth3", rogue, snsd.RoleTarget)
		settle(2 * time.Second)
		if got := f.hosts["i1"].heard(); len(got) != 0 {
			t.Errorf("a host of its zone was told %q", got)
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
		if got := f.hosts["i1"].heard(); !slices.Equal(got, []string{rogue + active}) {
			t.Errorf("when it is allowed the host of its zone was told %q", got)
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
	})
}
