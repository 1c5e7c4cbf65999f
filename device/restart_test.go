package device

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// nowhere takes what a Core does.
type nowhere struct{}

func (nowhere) SendFrame(string, []byte)     {}
func (nowhere) ToReflectors([]wire.Delivery) {}
func (nowhere) ToClients([]wire.Delivery)    {}
func (nowhere) SetAdmin(string, bool)        {}
func (nowhere) WatchPaths([]bfd.Peer)        {}
func (nowhere) Event(api.Event)              {}

// bareCore is a Core without a device around it.
type bareCore struct {
	*Core
	t       *testing.T
	now     time.Time
	heard   fabric.Frame // last registration
	disk    *keep.Memory
	changes map[string]uint64 // of carrier, by port; the machine counts them
	hosts   HostsConfig
	actions Actions
}

var bareSelf, bareReflector = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr(reflectorID)

func newBareCore(t *testing.T, reflect bool) *bareCore {
	b := bareMachine(t, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	b.start(reflect, State{})
	return b
}

func bareMachine(t *testing.T, now time.Time) *bareCore {
	return &bareCore{t: t, now: now, disk: &keep.Memory{}, changes: map[string]uint64{}, actions: nowhere{}}
}

func (b *bareCore) start(reflect bool, st State) {
	b.t.Helper()
	cfg := Config{Self: bareSelf, Access: true, Reflect: reflect, Epoch: uint64(b.now.UnixNano()), Zones: zone.Set{AutoJoin: true},
		Notify: hostnotify.Config{AllRoles: true}, Keep: b.disk, Store: b.disk, Hosts: b.hosts}
	b.disk.Begin()
	c, err := New(cfg, b.actions, b.now)
	if err == nil {
		err = c.Restore(st, b.now)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.Core = c
}

// restart is the end of the process as it is told to, and the next one; the ports come back as
// given.
func (b *bareCore) restart(reflect bool, up ...string) {
	b.t.Helper()
	b.KeepRows(b.now)
	b.disk.Stop()
	st := keptIn(b.t, b.disk)
	b.now = b.now.Add(2 * time.Second)
	b.start(reflect, st)
	for _, p := range up {
		b.carrier(p, true, fabric.PortAdded)
	}
	b.Start(b.now)
	b.Tick(b.now)
}

func (b *bareCore) carrier(name string, up bool, kind fabric.EventKind) {
	if b.changes[name]++; kind != fabric.PortChanged {
		b.changes[name] = max(1, b.changes[name]-1) // it is as it was
	}
	b.Port(fabric.Event{Kind: kind, At: b.now, Changes: b.changes[name], Port: fabric.Port{Name: name, Index: 1, AdminUp: true, Carrier: up}}, b.now)
}

// registration is what a host says of itself.
func registration(name, port, addr string) (fabric.Frame, error) {
	pdu, err := snsd.AppendRegistrationPDU(nil, &snsd.RegistrationPDU{
		MAC: hostMAC(name), PortID: snsd.AgentPortID("eth0", 1), TTL: 120,
		Registration: snsd.Registration{Addr: netip.MustParseAddr(addr), Subscribes: true, ProtoVer: snsd.DefaultProtoVer,
			Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, NQN: "nqn.2026-11.test:" + name}},
	})
	return fabric.Frame{Port: port, Src: hostMAC(name), Dst: fabric.MACNearestBridge, EtherType: fabric.EtherTypeLLDP, Payload: pdu}, err
}

// register has a host heard on a port, a second later.
func (b *bareCore) register(name, port, addr string) {
	b.t.Helper()
	b.now = b.now.Add(time.Second)
	var err error
	if b.heard, err = registration(name, port, addr); err != nil {
		b.t.Fatal(err)
	}
	b.Frame(b.heard, b.now)
	b.Tick(b.now)
}

func (b *bareCore) state(addr string) string {
	s, why := b.Directory().State(netip.MustParseAddr(addr))
	return s.String() + " " + why.String()
}

func (b *bareCore) share(x, y string) bool {
	return b.Directory().Share(netip.MustParseAddr(x), netip.MustParseAddr(y))
}

func TestAHostNotHeardSinceItsPortWasDownStaysUnreachableOverARestart(t *testing.T) {
	b := newBareCore(t, true)
	b.carrier("eth1", true, fabric.PortAdded)
	b.Start(b.now)
	b.register("h1", "eth1", i1)
	b.carrier("eth1", false, fabric.PortChanged)
	b.carrier("eth1", true, fabric.PortChanged)
	for range 2 {
		if got := b.state(i1); got != "inactive link-down" {
			t.Fatalf("before the host is heard again: %s", got)
		}
		b.restart(true, "eth1")
	}
	b.register("h1", "eth1", i1)
	if got := b.state(i1); got != "active none" {
		t.Errorf("after the host was heard: %s", got)
	}
}

func TestAFrameOfBeforeTheLossOfCarrierIsNoEvidence(t *testing.T) {
	b := newBareCore(t, true)
	b.carrier("eth1", true, fabric.PortAdded)
	b.Start(b.now)
	b.register("h1", "eth1", i1)
	frame := b.heard
	frame.At = b.now
	b.now = b.now.Add(time.Millisecond)
	b.carrier("eth1", false, fabric.PortChanged)
	b.Frame(frame, b.now)
	b.carrier("eth1", true, fabric.PortChanged)
	b.Frame(frame, b.now)
	if got := b.state(i1); got != "inactive link-down" {
		t.Errorf("after frames of before: %s", got)
	}
	frame.At = b.now
	b.Frame(frame, b.now)
	if got := b.state(i1); got != "active none" {
		t.Errorf("after a frame of now: %s", got)
	}
	b.carrier("eth1", false, fabric.PortChanged)
	b.carrier("eth1", true, fabric.PortChanged)
	frame.At = b.now.Add(-time.Hour) // the clock was set back
	b.Frame(frame, b.now)
	if got := b.state(i1); got != "active none" {
		t.Errorf("after the clock was set back: %s", got)
	}
}

func TestAnAddressLeftToAnUnheardHostIsUnreachable(t *testing.T) {
	b := newBareCore(t, true)
	b.carrier("eth1", true, fabric.PortAdded)
	b.Start(b.now)
	b.register("gone", "eth1", i1)
	b.carrier("eth1", false, fabric.PortChanged)
	b.carrier("eth1", true, fabric.PortChanged)
	b.register("next", "eth1", i1) // whoever speaks for the address shows that it is there
	if got := b.state(i1); got != "active none" {
		t.Errorf("while another host has the address: %s", got)
	}
	b.register("next", "eth1", i2)
	if got := b.state(i1); got != "inactive link-down" {
		t.Errorf("after it has another one: %s", got)
	}
	b.register("gone", "eth1", i1)
	if got := b.state(i1); got != "active none" {
		t.Errorf("after the first one is back: %s", got)
	}
}

func TestARestartDoesNotHandAContestedAddressRound(t *testing.T) {
	b := newBareCore(t, true)
	for _, p := range []string{"eth1", "eth2", "eth3"} {
		b.carrier(p, true, fabric.PortAdded)
	}
	b.Start(b.now)
	b.register("other", "eth3", t1)
	b.register("first", "eth2", i1)
	b.register("thief", "eth1", i1)
	b.restart(true, "eth1", "eth2", "eth3")
	if n := b.Counters()["hostnotify"].(hostnotify.Counters); n.Sent != 0 || n.Pairs != 2 {
		t.Errorf("after a restart %d notices were told, %d pairs are known", n.Sent, n.Pairs)
	}
}

// What a reflector says anew of its zones and settings takes effect when all of it is there;
// hosts that it has not said again stand until its sync ends.
func TestZonesOfANewSessionTakeEffectAsAWhole(t *testing.T) {
	b := newBareCore(t, false)
	b.carrier("eth1", true, fabric.PortAdded)
	b.carrier("eth2", true, fabric.PortAdded)
	b.Start(b.now)
	b.register("h1", "eth1", i1)
	b.register("h2", "eth2", i2)
	remote := wire.HostRecord{Op: wire.Put, Host: zone.Host{
		HostKey: zone.HostKey{Addr: netip.MustParseAddr(t1), Device: netip.MustParseAddr("10.0.0.2"), Port: "eth1"}, MAC: hostMAC("t1"), Since: b.now}}
	named := func(name string, addrs ...string) wire.ZoneRecord {
		z := wire.ZoneRecord{Op: wire.Put, Zone: zone.Zone{Name: name}}
		for _, a := range addrs {
			z.Zone.Members = append(z.Zone.Members, zone.Member{Kind: zone.MemberAddr, First: netip.MustParseAddr(a)})
		}
		return z
	}
	say := func(u *wire.Update) {
		u.Origin = bareReflector
		b.ReflectorMessage(bareReflector, u, b.now)
	}
	expect := func(when string, first, second bool) {
		t.Helper()
		if b.share(i1, t1) != first || b.share(i2, t1) != second {
			t.Errorf("%s: %s shares a zone: %v, %s: %v; want %v and %v", when, i1, !first, i2, !second, first, second)
		}
	}
	b.ReflectorUp(bareReflector, b.now)
	say(&wire.Update{Anew: true, Settings: &wire.Settings{AutoJoin: false}, Zones: []wire.ZoneRecord{named("a", i1, t1)}, Hosts: []wire.HostRecord{remote}})
	b.ReflectorMessage(bareReflector, &wire.EndOfSync{}, b.now)
	expect("at first", true, false)
	b.ReflectorDown(bareReflector, nil, b.now)
	b.ReflectorUp(bareReflector, b.now)
	say(&wire.Update{Anew: true, More: true, Settings: &wire.Settings{AutoJoin: true}})
	expect("settings of a new session", true, false)
	say(&wire.Update{More: true, Zones: []wire.ZoneRecord{named("b", i1)}})
	expect("a part of its zones", true, false)
	say(&wire.Update{Zones: []wire.ZoneRecord{named("c", i2, t1)}})
	expect("all of its zones", false, true)
	say(&wire.Update{Hosts: []wire.HostRecord{remote}})
	b.ReflectorMessage(bareReflector, &wire.EndOfSync{}, b.now)
	expect("its sync", false, true)
	say(&wire.Update{More: true, Zones: []wire.ZoneRecord{{Op: wire.Withdraw, Zone: zone.Zone{Name: "c"}}}})
	expect("a part of a change", false, true)
	b.ReflectorDown(bareReflector, nil, b.now)
	b.ReflectorUp(bareReflector, b.now)
	expect("a session that resumes within a change", false, true)
	say(&wire.Update{More: true, Zones: []wire.ZoneRecord{{Op: wire.Withdraw, Zone: zone.Zone{Name: "c"}}}})
	say(&wire.Update{Zones: []wire.ZoneRecord{{Op: wire.Withdraw, Zone: zone.Zone{Name: "b"}}}})
	if !b.share(i1, t1) || !b.share(i2, t1) || !b.share(i1, i2) {
		t.Error("hosts of no zone are not in the default zone")
	}
}

// A machine that takes an address of another one on the same switch, and leaves it before its
// reflector has taken it in, ends nothing: the address stays in the default zone.
func TestARivalOnAnotherPortEndsNothing(t *testing.T) {
	b := newBareCore(t, false)
	own := func(port, addr string) wire.HostRecord {
		return wire.HostRecord{Op: wire.Put, Host: zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr(addr), Device: bareSelf, Port: port}}}
	}
	for _, p := range []string{"eth1", "eth2", "eth3"} {
		b.carrier(p, true, fabric.PortAdded)
	}
	b.Start(b.now)
	b.register("h1", "eth1", i1)
	b.register("h2", "eth2", i2)
	b.ReflectorUp(bareReflector, b.now)
	b.ReflectorMessage(bareReflector, &wire.Update{Origin: bareReflector, Settings: &wire.Settings{AutoJoin: true},
		Hosts: []wire.HostRecord{own("eth1", i1), own("eth2", i2)}}, b.now)
	b.ReflectorMessage(bareReflector, &wire.EndOfSync{}, b.now)
	check := func(when string) {
		t.Helper()
		if !b.share(i1, i2) {
			t.Errorf("%s: the addresses share no zone", when)
		}
	}
	check("placed")
	b.register("rival", "eth3", i1)
	check("claimed by another")
	b.register("rival", "eth3", t3)
	check("left to the first")
	b.ReflectorMessage(bareReflector, &wire.Update{Origin: bareReflector, Hosts: []wire.HostRecord{own("eth3", i1)}}, b.now)
	check("a word about the rival that comes late")
	if !b.share(i1, t3) {
		t.Error("the rival's new address is not in the default zone, though no zone names it")
	}
}

// twoHosts has i1 and i2 heard at ports of their own.
func (b *bareCore) twoHosts() {
	for _, p := range []string{"eth1", "eth2"} {
		b.carrier(p, true, fabric.PortAdded)
	}
	b.Start(b.now)
	b.register("h1", "eth1", i1)
	b.register("h2", "eth2", i2)
}
