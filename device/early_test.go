package device

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// A host that asks at another port before it registers there is still known where it was: who
// shares a zone with it there hears of what becomes of it.
func TestAHostThatAsksElsewhereStillHasItsPeers(t *testing.T) {
	here, there := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	moved, peer, other := netip.MustParseAddr(t1), netip.MustParseAddr(i1), netip.MustParseAddr(i2)
	d := zone.NewDirectory(here)
	d.PutZone(zone.Zone{Name: "before", Members: []zone.Member{{Kind: zone.MemberPort, Device: there, Port: "eth3"}, {Kind: zone.MemberAddr, First: peer}}})
	d.PutZone(zone.Zone{Name: "after", Members: []zone.Member{{Kind: zone.MemberPort, Device: here, Port: "eth2"}, {Kind: zone.MemberAddr, First: other}}})
	put := func(addr, dev netip.Addr, port string) zone.Host {
		h := zone.Host{HostKey: zone.HostKey{Addr: addr, Device: dev, Port: port}, MAC: hostMAC(addr.String())}
		d.PutHost(h)
		return h
	}
	put(peer, here, "eth1")
	put(other, here, "eth4")
	h := put(moved, there, "eth3")
	h.HostKey = zone.HostKey{Addr: moved, Device: here, Port: "eth2"}
	e := &early{Directory: d, hosts: map[netip.Addr]earlyHost{moved: {Host: h}}}
	got := slices.SortedFunc(e.Peers(moved), netip.Addr.Compare)
	if !slices.Equal(got, []netip.Addr{peer, other}) {
		t.Errorf("its peers are %v, want %v", got, []netip.Addr{peer, other})
	}
	if !e.Share(peer, moved) || e.Share(moved, peer) || !e.Share(moved, other) {
		t.Errorf("who hears of whom: %t, %t, %t", e.Share(peer, moved), e.Share(moved, peer), e.Share(moved, other))
	}
}

// An address that asked here and is known elsewhere is reported to those who share a zone with it
// there, and to no others: whether it, or they, come last.
func TestAHostThatAsksElsewhereIsNoNewsToThoseItWillShareAZoneWith(t *testing.T) {
	here, there := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	moved, peer, other := netip.MustParseAddr(t1), netip.MustParseAddr(i1), netip.MustParseAddr(i2)
	for _, last := range []bool{false, true} { // those who hear of it register after it is known
		d := zone.NewDirectory(here)
		d.PutZone(zone.Zone{Name: "before", Members: []zone.Member{{Kind: zone.MemberPort, Device: there, Port: "eth3"}, {Kind: zone.MemberAddr, First: peer}}})
		d.PutZone(zone.Zone{Name: "after", Members: []zone.Member{{Kind: zone.MemberPort, Device: here, Port: "eth2"}, {Kind: zone.MemberAddr, First: other}}})
		asked := zone.Host{HostKey: zone.HostKey{Addr: moved, Device: here, Port: "eth2"}, MAC: hostMAC("moved")}
		e := &early{Directory: d, hosts: map[netip.Addr]earlyHost{moved: {Host: asked}}}
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		n := hostnotify.New(hostnotify.Config{AllRoles: true}, e)
		n.SetSynced(true)
		register := func() {
			for addr, port := range map[netip.Addr]string{peer: "eth1", other: "eth4"} {
				d.PutHost(zone.Host{HostKey: zone.HostKey{Addr: addr, Device: here, Port: port}, MAC: hostMAC(port), Subscribes: true})
				n.PortUp(port, fabric.MAC{2}, now)
				n.Subscribe(addr, port, hostMAC(port), now)
			}
		}
		if !last {
			register()
		}
		n.Changed(d.PutHost(zone.Host{HostKey: zone.HostKey{Addr: moved, Device: there, Port: "eth3"}, MAC: hostMAC("moved")}), now, now)
		if last {
			register()
		}
		n.Poll(now)
		var told []netip.Addr
		for _, x := range n.Notices() {
			if x.Subject == moved {
				told = append(told, x.Host)
			}
		}
		if !slices.Equal(told, []netip.Addr{peer}) {
			t.Errorf("registered last: %t: told of it: %v, want %v alone", last, told, peer)
		}
	}
}

// Up to two minutes pass until such a host registers: its switch may be restarted meanwhile, and
// the link of the host may fail while no process sees it.
func TestAHostThatHasAskedAndNotRegisteredIsStillToldAfterARestart(t *testing.T) {
	const h, peer = t2, t1
	for _, blinks := range []bool{false, true} {
		b := newBareCore(t, true)
		for _, p := range []string{"eth1", "eth2"} {
			b.carrier(p, true, fabric.PortAdded)
		}
		b.Start(b.now)
		b.register("h1", "eth1", i1)
		b.register("h2", "eth2", peer)
		query, err := snsd.AppendQuery(nil, 0, netip.MustParseAddr(h))
		if err != nil {
			t.Fatal(err)
		}
		b.Frame(fabric.Frame{Port: "eth1", Src: hostMAC("h1"), Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, Payload: query}, b.now)
		told := 0
		hears := func(want ...snsd.State) { // since it was asked last
			t.Helper()
			b.Tick(b.now)
			var got []snsd.State
			for _, n := range b.notify.Notices()[told:] {
				if n.Host.String() != h || n.Subject.String() != peer {
					continue
				}
				got = append(got, n.State)
				ack, err := snsd.AppendAck(nil, snsd.Ack{Subject: n.Subject, Host: n.Host, Seq: n.Seq})
				if err != nil {
					t.Fatal(err)
				}
				b.Frame(fabric.Frame{Port: "eth1", Src: hostMAC("h1"), Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, Payload: ack}, b.now)
			}
			if told = len(b.notify.Notices()); !slices.Equal(got, want) {
				t.Fatalf("link of the host fails: %v; it hears that its peer is %v, want %v", blinks, got, want)
			}
		}
		hears(snsd.Active)
		var again []snsd.State
		if blinks {
			b.changes["eth1"] += 2
			again = []snsd.State{snsd.Active}
		}
		told = 0
		b.restart(true, "eth1", "eth2")
		hears(again...)
		b.carrier("eth2", false, fabric.PortChanged)
		hears(snsd.Inactive)
		b.register("h1", "eth1", h)
		hears()
		b.carrier("eth2", true, fabric.PortChanged)
		b.register("h2", "eth2", peer)
		hears(snsd.Active)
		told = 0
		if b.restart(true, "eth1", "eth2"); b.Early() != 0 {
			t.Error("it counts as one that has not registered, after another restart")
		}
		hears()
	}
}

// An address that asked before it registered is registered from the moment its port hears it say
// so, by whatever machine there and whoever has the address meanwhile.
func TestAnAddressThatAskedHasRegisteredWhenItsPortHearsIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		left    bool     // the machine that asks has left the address on another device
		machine string   // that registers it
		then    []string // what it is told
	}{
		{"nobody else has it", false, "h1", nil},
		{"its machine has left it elsewhere", true, "h1", nil},
		{"another machine registers", false, "h3", []string{"eth1: " + t1 + " active none"}},
		{"another machine registers what the first has elsewhere", true, "h3", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			const early = "192.0.2.13"
			m := begun(t)
			m.say(&wire.Update{Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: "c", Members: []zone.Member{
				{Kind: zone.MemberAddr, First: netip.MustParseAddr(early)}, {Kind: zone.MemberAddr, First: netip.MustParseAddr(t1)}}}}}})
			query, err := snsd.AppendQuery(nil, 0, netip.MustParseAddr(early))
			if err != nil {
				t.Fatal(err)
			}
			m.c.Frame(fabric.Frame{Port: "eth1", Src: hostMAC("h1"), Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, Payload: query}, m.now)
			m.pass(time.Second)
			m.expect("it asks", "eth1: "+t1+" active none")
			if c.left {
				r := m.host(far2, "eth7", early)
				r.Host.MAC, r.Host.Claim = hostMAC("h1"), zone.ClaimHolder
				m.say(&wire.Update{Hosts: []wire.HostRecord{r}})
			}
			m.pass(time.Second)
			registers := func() {
				for n, addr := range []string{i1, early} {
					who := []string{"h1", c.machine}[n]
					pdu, err := snsd.AppendRegistrationPDU(nil, &snsd.RegistrationPDU{
						MAC: hostMAC(who), PortID: snsd.AgentPortID("eth0", n+1), TTL: 120,
						Registration: snsd.Registration{Addr: netip.MustParseAddr(addr), Subscribes: true, ProtoVer: snsd.DefaultProtoVer,
							Service: snsd.Service{Role: snsd.RoleTarget, Protocol: snsd.ProtocolRoCE, NQN: "nqn.2026-11.test:" + who}},
					})
					if err != nil {
						t.Fatal(err)
					}
					m.c.Frame(fabric.Frame{Port: "eth1", Src: hostMAC(who), Dst: fabric.MACNearestBridge, EtherType: fabric.EtherTypeLLDP, Payload: pdu}, m.now)
				}
				m.pass(time.Second)
			}
			registers()
			m.expect("it registers", c.then...)
			for range 3 {
				m.pass(EarlyLife / 3)
				registers()
			}
			if slices.Contains(m.hostsChanged, early+" not-registered") {
				t.Error("it is given up as one that has not registered")
			}
		})
	}
}

// A machine whose agent was started with another role has not repeated all registrations yet.
func TestAMachineIsWhatItSaidLast(t *testing.T) {
	reg := func(role snsd.Role, nqn string) lldp.HostInfo {
		return lldp.HostInfo{Service: snsd.Service{Role: role, Protocol: snsd.ProtocolRoCE, NQN: nqn}}
	}
	for _, c := range []struct {
		name  string
		heard []lldp.HostInfo // the last first
		role  snsd.Role
		nqn   string
	}{
		{"one", []lldp.HostInfo{reg(snsd.RoleTarget, "a")}, snsd.RoleTarget, "a"},
		{"all agree", []lldp.HostInfo{reg(snsd.RoleTarget, "a"), reg(snsd.RoleTarget, "a")}, snsd.RoleTarget, "a"},
		{"its role has changed", []lldp.HostInfo{reg(snsd.RoleInitiator, "a"), reg(snsd.RoleTarget, "a")}, snsd.RoleInitiator, "a"},
		{"its name has changed, or it has two", []lldp.HostInfo{reg(snsd.RoleTarget, "b"), reg(snsd.RoleTarget, "a")}, snsd.RoleTarget, ""},
	} {
		if got := serviceNow(c.heard); got.Role != c.role || got.NQN != c.nqn {
			t.Errorf("%s: %s %q, want %s %q", c.name, got.Role, got.NQN, c.role, c.nqn)
		}
	}
}
