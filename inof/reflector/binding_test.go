package reflector

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

var boundTo = wire.Binding{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, NQNs: []string{"nqn.2026-01.org.example:a-*"}}

func boundHost(dev netip.Addr, addr, nqn string) zone.Host {
	h := inoftest.HostAt(netip.MustParseAddr(addr), dev, "Ethernet0")
	h.NQN = nqn
	return h
}

// say lets a device say hosts.
func say(r *Reflector, dev netip.Addr, op wire.Op, hosts ...zone.Host) ([]wire.Delivery, error) {
	u := &wire.Update{Origin: dev, Epoch: 1, Seq: 1}
	for _, h := range hosts {
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: op, Host: h})
	}
	return r.Receive(dev, u, inoftest.T0)
}

// A device that is bound may claim nobody else's address and be nobody else by NQN: others
// hear nothing of such a host, the device is told which it is, and an operator sees why.
func TestAHostOutsideOfItsDevicesBindingIsRefused(t *testing.T) {
	bad, good, watcher := inoftest.ScaleDev(1), inoftest.ScaleDev(2), inoftest.ScaleDev(3)
	r := quotaReflector(t, Config{Bindings: map[netip.Addr]wire.Binding{bad: boundTo}}, 3)
	if _, err := say(r, watcher, wire.Put, inoftest.HostAt(inoftest.ScaleHost(9), watcher, "Ethernet1")); err != nil {
		t.Fatal(err)
	}
	inside, plain := boundHost(bad, "10.1.2.3", "nqn.2026-01.org.example:a-1"), boundHost(bad, "10.1.2.4", "")
	addr, nqn := boundHost(bad, "10.2.0.1", ""), boundHost(bad, "10.1.2.5", "nqn.2026-01.org.example:b-1")
	ds, err := say(r, bad, wire.Put, inside, plain, addr, nqn)
	var refused *wire.RefusedError
	if !errors.As(err, &refused) || refused.Refused != 2 || !strings.Contains(err.Error(), "10.2.0.1") {
		t.Errorf("the error is %v", err)
	}
	want := &wire.Refusal{Outside: 2, Named: []netip.Addr{nqn.Addr, addr.Addr}}
	if diff := cmp.Diff(want, toldRefusal(ds, bad), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("the device is told (-want +got):\n%s", diff)
	}
	for _, d := range ds {
		if u, ok := d.Msg.(*wire.Update); ok && slices.Contains(d.To, watcher) {
			for _, h := range u.Hosts {
				if a := h.Host.Addr; a == addr.Addr || a == nqn.Addr {
					t.Errorf("another device hears of %v", a)
				}
			}
		}
	}
	if hostsOf(r, bad) != 2 || r.dir.Known(addr.Addr) || r.dir.Known(nqn.Addr) || r.counters.Outside != 2 {
		t.Errorf("%d hosts are taken, counted %d", hostsOf(r, bad), r.counters.Outside)
	}
	out := r.Outside()
	if len(out) != 2 || !strings.Contains(out[0].Why, "NQN") || !strings.Contains(out[1].Why, "prefixes") {
		t.Errorf("an operator sees %+v", out)
	}
	// Another device is not bound.
	if _, err := say(r, good, wire.Put, boundHost(good, "10.2.0.1", "nqn.2026-01.org.example:b-1")); err != nil {
		t.Errorf("of another device: %v", err)
	}
	// The host leaves, and is no trouble any more.
	if ds, err = say(r, bad, wire.Withdraw, addr, nqn); err != nil || len(r.Outside()) != 0 {
		t.Errorf("after they left %+v, %v", r.Outside(), err)
	}
	if told := toldRefusal(ds, bad); told == nil || !told.Empty() || told.Again {
		t.Errorf("the device is told %+v", told)
	}
}

// What a known host becomes counts: with another's NQN it is not there any more, neither as
// what it was.
func TestAKnownHostThatTakesAnNQNOutsideIsNotThere(t *testing.T) {
	dev := inoftest.ScaleDev(1)
	r := quotaReflector(t, Config{Bindings: map[netip.Addr]wire.Binding{dev: boundTo}}, 1)
	say(r, dev, wire.Put, boundHost(dev, "10.1.2.3", "nqn.2026-01.org.example:a-1"))
	if _, err := say(r, dev, wire.Put, boundHost(dev, "10.1.2.3", "nqn.2026-01.org.example:b")); err == nil || hostsOf(r, dev) != 0 {
		t.Errorf("%d hosts, %v", hostsOf(r, dev), err)
	}
	if _, err := say(r, dev, wire.Put, boundHost(dev, "10.1.2.3", "nqn.2026-01.org.example:a-2")); err != nil || hostsOf(r, dev) != 1 || len(r.Outside()) != 0 {
		t.Errorf("%d hosts, outside %v, %v", hostsOf(r, dev), r.Outside(), err)
	}
}

// The most hosts of a binding are a quota: what is beyond waits for room.
func TestABindingHasAQuotaOfHosts(t *testing.T) {
	r := quotaReflector(t, Config{MaxHosts: 1000, Bindings: map[netip.Addr]wire.Binding{inoftest.ScaleDev(1): {MaxHosts: 3}}}, 3)
	if ref := quotaSay(t, r, inoftest.ScaleDev(1), wire.Put, 1, 9); hostsOf(r, inoftest.ScaleDev(1)) != 3 || ref == nil || ref.Hosts != 6 || ref.Limit != 3 {
		t.Errorf("%d hosts were taken, told %+v", hostsOf(r, inoftest.ScaleDev(1)), ref)
	}
	if ref := quotaSay(t, r, inoftest.ScaleDev(2), wire.Put, 101, 9); hostsOf(r, inoftest.ScaleDev(2)) != 9 || ref != nil {
		t.Errorf("of another device %d hosts were taken, told %+v", hostsOf(r, inoftest.ScaleDev(2)), ref)
	}
}

// A binding that is narrowed takes hosts away at once, which others are told; one that is
// widened has the device say its hosts again.
func TestABindingThatChangesCountsAtOnce(t *testing.T) {
	dev, other := inoftest.ScaleDev(1), inoftest.ScaleDev(2)
	r := quotaReflector(t, Config{}, 2)
	say(r, other, wire.Put, inoftest.HostAt(inoftest.ScaleHost(1), other, "Ethernet1"))
	say(r, dev, wire.Put, boundHost(dev, "10.1.2.3", ""), boundHost(dev, "10.2.0.1", ""))
	next := map[netip.Addr]wire.Binding{dev: boundTo}
	if x := r.Excluded(next); len(x) != 1 || x[0].Addr != netip.MustParseAddr("10.2.0.1") {
		t.Fatalf("an operator is asked about %+v", x)
	}
	ds := r.SetBindings(next, inoftest.T0)
	gone := false
	for _, d := range ds {
		if u, ok := d.Msg.(*wire.Update); ok && slices.Contains(d.To, other) {
			for _, h := range u.Hosts {
				gone = gone || h.Op == wire.Withdraw && h.Host.Addr == netip.MustParseAddr("10.2.0.1") && h.Why == snsd.ReasonAgedOut
			}
		}
	}
	if told := toldRefusal(ds, dev); !gone || told == nil || told.Outside != 1 || told.Again {
		t.Errorf("others hear that it is gone: %t; the device is told %+v", gone, told)
	}
	if told := toldRefusal(r.SetBindings(nil, inoftest.T0), dev); told == nil || !told.Again || !told.Empty() {
		t.Errorf("when the binding ends the device is told %+v", told)
	}
	if ds := r.SetBindings(nil, inoftest.T0); len(ds) != 0 {
		t.Errorf("what changes nothing tells %+v", ds)
	}
}

// A device that comes back hears again what of it is refused, also if it need not say it again.
func TestADeviceThatResumesIsToldWhatIsRefused(t *testing.T) {
	dev := inoftest.ScaleDev(1)
	r := quotaReflector(t, Config{Bindings: map[netip.Addr]wire.Binding{dev: boundTo}}, 1)
	say(r, dev, wire.Put, boundHost(dev, "10.2.0.1", ""))
	point := r.ResumePoint(dev)
	r.Leave(dev, inoftest.T0)
	r.Resume(dev, nil, point, inoftest.T0)
	ds, err := r.Receive(dev, &wire.EndOfSync{Epoch: 1, Seq: 1, Resumed: true}, inoftest.T0)
	if told := toldRefusal(ds, dev); err != nil || told == nil || told.Outside != 1 {
		t.Errorf("it is told %+v, %v", told, err)
	}
}

// A client knows what each of its reflectors binds it to from the first message of a session on,
// and keeps it when the session ends: what all of them would refuse is outside.
func TestAClientKnowsWhatItIsBoundTo(t *testing.T) {
	dev, in, out := inoftest.ScaleDev(1), boundHost(inoftest.ScaleDev(1), "10.1.2.3", ""), boundHost(inoftest.ScaleDev(1), "10.2.0.1", "")
	c := client.New(dev, 1)
	c.SetReflectors(2, client.AgreeIdentical, 0)
	var refls []*Reflector
	ids := []netip.Addr{netip.MustParseAddr("10.255.0.1"), netip.MustParseAddr("10.255.0.2")}
	hear := func(i int, ds []wire.Delivery) {
		t.Helper()
		if len(ds) == 0 || ds[0].Msg.Type() != wire.TypeBound || !slices.Equal(ds[0].To, []netip.Addr{dev}) {
			t.Fatalf("reflector %d begins with %+v", i, ds)
		}
		if a, err := c.Receive(ids[i], ds[0].Msg, inoftest.T0); err != nil || !a.Bound {
			t.Fatalf("of reflector %d: %+v, %v", i, a, err)
		}
	}
	outside := func(want bool) {
		t.Helper()
		if got := c.Outside(&out) != ""; got != want || c.Outside(&in) != "" {
			t.Errorf("outside: %t, want %t; the other one: %q", got, want, c.Outside(&in))
		}
	}
	for i, id := range ids {
		r, err := New(id, 1, zone.Set{}, Config{Bindings: map[netip.Addr]wire.Binding{dev: boundTo}}, inoftest.T0)
		if err != nil {
			t.Fatal(err)
		}
		refls = append(refls, r)
		outside(i > 0)
		c.Up(id, inoftest.T0)
		hear(i, r.Join(dev, inoftest.T0))
		outside(true)
	}
	c.Down(ids[0], inoftest.T0)
	outside(true)
	hear(1, refls[1].SetBindings(nil, inoftest.T0))
	outside(false)
	hear(1, refls[1].SetBindings(map[netip.Addr]wire.Binding{dev: boundTo}, inoftest.T0))
	outside(true)
}

// A reflector declares hosts for all devices: each hears of it when its session begins, and of
// changes only.
func TestDeclaredHostsAreToldToAllDevices(t *testing.T) {
	list := []wire.DeclaredHost{{Addr: netip.MustParseAddr("192.0.2.51"), Ports: []string{"eth1"}}}
	r, err := New(netip.MustParseAddr("10.255.0.1"), 1, zone.Set{}, Config{Declared: list}, inoftest.T0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		ds := r.Join(inoftest.ScaleDev(i), inoftest.T0)
		if m := ds[0].Msg.(*wire.Bound); !slices.EqualFunc(m.Hosts, list, wire.DeclaredHost.Equal) {
			t.Errorf("it is told %+v", m)
		}
	}
	r.Leave(inoftest.ScaleDev(2), inoftest.T0)
	if ds := r.SetDeclared(slices.Clone(list)); len(ds) != 0 {
		t.Errorf("no change is told as %+v", ds)
	}
	ds := r.SetDeclared(nil)
	if len(ds) != 2 || ds[0].To[0] != inoftest.ScaleDev(0) || ds[1].To[0] != inoftest.ScaleDev(1) || len(ds[1].Msg.(*wire.Bound).Hosts) != 0 {
		t.Errorf("a change is told as %+v", ds)
	}
}
