package zone

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

func hostAt(a, device, port string) Host {
	return Host{HostKey: HostKey{Addr: addr(a), Device: addr(device), Port: port}, MAC: fabric.MAC{5: 1}, Since: modelEpoch}
}

func members(t testing.TB, texts ...string) []Member {
	var out []Member
	for _, s := range texts {
		m, err := ParseMember(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func wantChanges(t *testing.T, got Changes, want ...Change) {
	t.Helper()
	for i := range got {
		got[i].Peers = false // the model checks it
	}
	if diff := cmp.Diff(Changes(want), got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Fatalf("changes (-want +got):\n%s", diff)
	}
}

func TestDefaultZone(t *testing.T) {
	d := NewDirectory(addr("192.0.2.250"))
	a, b := hostAt("192.0.2.1", "192.0.2.251", "e1"), hostAt("192.0.2.2", "192.0.2.252", "e1")
	d.PutHost(a)
	d.PutHost(b)
	if d.Share(a.Addr, b.Addr) {
		t.Fatal("hosts see each other although auto-join is off")
	}
	wantChanges(t, d.SetAutoJoin(true), Change{Addr: a.Addr}, Change{Addr: b.Addr})
	if !d.Share(a.Addr, b.Addr) || !d.MayExchange(a.Addr, b.Addr) || !slices.Equal(d.ZonesOf(a.Addr), []string{DefaultName}) {
		t.Fatal("hosts of the default zone do not see each other")
	}
	wantChanges(t, d.PutZone(Zone{Name: "z", Members: members(t, "192.0.2.1")}), Change{Addr: a.Addr, Why: snsd.ReasonZoneChanged})
	if d.Share(a.Addr, b.Addr) || d.MayExchange(a.Addr, b.Addr) {
		t.Fatal("a configured host sees one of the default zone")
	}
	wantChanges(t, d.PutZone(Zone{Name: DefaultName, Members: members(t, "192.0.2.1")}))
	wantChanges(t, d.DeleteZone(DefaultName))
	if d.Counters().ZonesRejected != 1 || !slices.Equal(d.ZoneHosts(DefaultName), []netip.Addr{b.Addr}) {
		t.Fatalf("default zone %v, counters %+v", d.ZoneHosts(DefaultName), d.Counters())
	}
	wantChanges(t, d.DeleteZone("z"), Change{Addr: a.Addr, Why: snsd.ReasonZoneChanged})
	if !d.Share(a.Addr, b.Addr) {
		t.Fatal("the host did not come back to the default zone")
	}
}

func TestHardZoningNeedsOppositeRoles(t *testing.T) {
	roles := []snsd.Role{snsd.RoleUnknown, snsd.RoleTarget, snsd.RoleInitiator, snsd.RoleBoth}
	for _, ra := range roles {
		for _, rb := range roles {
			d := NewDirectory(addr("192.0.2.250"))
			d.SetZones(Set{Zones: []Zone{{Name: "z", Members: members(t, "192.0.2.0/28")}}})
			a, b := hostAt("192.0.2.1", "192.0.2.251", "e1"), hostAt("192.0.2.2", "192.0.2.252", "e1")
			a.Role, b.Role = ra, rb
			d.PutHost(a)
			d.PutHost(b)
			want := (ra != snsd.RoleTarget || rb != snsd.RoleTarget) && (ra != snsd.RoleInitiator || rb != snsd.RoleInitiator)
			if got := d.MayExchange(a.Addr, b.Addr); got != want {
				t.Errorf("%v and %v may exchange: %v, want %v", ra, rb, got, want)
			}
		}
	}
}

func TestBondSurvivesOnePortAndConflictIsIgnored(t *testing.T) {
	d := NewDirectory(addr("192.0.2.250"))
	d.SetAutoJoin(true)
	first, second := hostAt("192.0.2.1", "192.0.2.251", "e1"), hostAt("192.0.2.1", "192.0.2.251", "e2")
	thief := hostAt("192.0.2.1", "192.0.2.253", "e3")
	thief.MAC = fabric.MAC{5: 9}
	wantChanges(t, d.PutHost(first), Change{Addr: first.Addr})
	wantChanges(t, d.PutHost(second))
	wantChanges(t, d.PutHost(thief))
	wantChanges(t, setFault(d, thief.Device, "e3", []netip.Addr{first.Addr}, snsd.ReasonPacketError)) // a rival's fault is nobody's
	list := []netip.Addr{first.Addr}
	wantChanges(t, setFault(d, first.Device, "e1", list, snsd.ReasonLinkDown))
	wantChanges(t, setFault(d, second.Device, "e2", list, snsd.ReasonPFCStorm), Change{Addr: first.Addr, Why: snsd.ReasonLinkDown})
	if c := d.Conflicts(); len(c) != 1 || c[0].Winner.HostKey != second.HostKey || len(c[0].Losers) != 1 || c[0].Losers[0].HostKey != thief.HostKey || d.Counters().Conflicts != 1 {
		t.Fatalf("conflicts %+v", c)
	}
	wantChanges(t, setFault(d, first.Device, "e1", nil, 0), Change{Addr: first.Addr})
	wantChanges(t, d.RemoveHost(first.HostKey, snsd.ReasonAgedOut), Change{Addr: first.Addr, Why: snsd.ReasonPFCStorm})
	wantChanges(t, d.RemoveHost(second.HostKey, snsd.ReasonAgedOut), Change{Addr: first.Addr, Why: snsd.ReasonPacketError})
	wantChanges(t, d.RemoveHost(thief.HostKey, snsd.ReasonIPChanged), Change{Addr: first.Addr, Why: snsd.ReasonIPChanged})
	if d.Known(first.Addr) || d.Len() != 0 || d.CountOf(thief.Device, DefaultName) != 0 {
		t.Fatal("something of the host is left")
	}
}

// setFault has just these hosts at a port be down.
func setFault(d *Directory, device netip.Addr, port string, addrs []netip.Addr, why snsd.Reason) (cs Changes) {
	for _, f := range d.Faults() {
		if f.Device == device && f.Port == port {
			cs = append(cs, d.SetDown(device, port, slices.DeleteFunc(f.Addrs, func(a netip.Addr) bool { return why != 0 && slices.Contains(addrs, a) }), Down{})...)
		}
	}
	return append(cs, d.SetDown(device, port, addrs, Down{Why: why})...)
}

func TestAHostIsPutWithItsState(t *testing.T) {
	d := NewDirectory(addr("192.0.2.250"))
	h := hostAt("192.0.2.1", "192.0.2.251", "e1")
	wantChanges(t, d.SetDown(h.Device, "e1", []netip.Addr{h.Addr}, Down{Why: snsd.ReasonPacketError})) // of nobody
	h.Down.Why = snsd.ReasonPacketError
	wantChanges(t, d.PutHost(h), Change{Addr: h.Addr, Why: snsd.ReasonPacketError})
	want := []Fault{{Device: h.Device, Port: "e1", Why: snsd.ReasonPacketError, Addrs: []netip.Addr{h.Addr}}}
	if diff := cmp.Diff(want, d.Faults(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Fatal(diff)
	}
	h.Down = Down{}
	wantChanges(t, d.PutHost(h), Change{Addr: h.Addr})
	wantChanges(t, d.SetDown(h.Device, "e1", []netip.Addr{h.Addr, h.Addr}, Down{Why: snsd.ReasonLinkDown}), Change{Addr: h.Addr, Why: snsd.ReasonLinkDown})
	wantChanges(t, d.RemoveHost(h.HostKey, snsd.ReasonAgedOut), Change{Addr: h.Addr, Why: snsd.ReasonAgedOut})
	if f := d.Faults(); len(f) > 0 {
		t.Errorf("left: %v", f)
	}
}

func TestHostileInputIsCountedAndIgnored(t *testing.T) {
	d := NewDirectory(addr("192.0.2.250"))
	d.SetLimits(Limits{Attachments: 3, PerAddress: 2})
	good := hostAt("192.0.2.1", "192.0.2.251", "e1")
	for _, bad := range []func(*Host){
		func(h *Host) { h.Addr = netip.Addr{} },
		func(h *Host) { h.Addr = addr("224.0.0.1") },
		func(h *Host) { h.Addr = addr("fe80::1") },
		func(h *Host) { h.Addr = addr("::ffff:0.0.0.0") },
		func(h *Host) { h.Device = netip.Addr{} },
		func(h *Host) { h.HostKey.Port = "" },
		func(h *Host) { h.HostKey.Port = string(make([]byte, 64)) },
	} {
		h := good
		bad(&h)
		wantChanges(t, d.PutHost(h))
	}
	for i := range 5 {
		h := hostAt("192.0.2.1", "192.0.2.251", fmt.Sprintf("e%d", i))
		d.PutHost(h)
	}
	d.PutHost(hostAt("192.0.2.2", "192.0.2.251", "e1"))
	wantChanges(t, d.PutHost(hostAt("192.0.2.3", "192.0.2.251", "e1")))
	wantChanges(t, d.PutZone(Zone{Name: "a\n"}))
	wantChanges(t, d.PutZone(Zone{Name: "a", Members: []Member{{Kind: 9}, {Kind: MemberRange}}}))
	wantChanges(t, d.SetDeviceFault(netip.Addr{}, 7))
	wantChanges(t, d.RemoveHost(HostKey{Addr: addr("192.0.2.1"), Device: addr("192.0.2.9"), Port: "e1"}, 6))
	want := Counters{HostsRejected: 7, HostsOverLimit: 4, ZonesRejected: 1, MembersRejected: 2, FaultsRejected: 1}
	if got := d.Counters(); got != want {
		t.Fatalf("counters %+v, want %+v", got, want)
	}
}

func TestLongListsKeepTheirOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 5000
	table := make([]netip.Addr, n)
	for i := range table {
		table[i] = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	}
	at := func(id uint32) netip.Addr { return table[id] }
	var l idList
	have := map[uint32]bool{}
	check := func() {
		ids := slices.Collect(l.all())
		if len(ids) != len(have) || l.len() != len(have) || !slices.IsSorted(ids) {
			t.Fatalf("%d ids, length %d, want %d", len(ids), l.len(), len(have))
		}
		from := uint32(r.IntN(n))
		k := 0
		for id := range l.from(table[from], at) {
			if id < from || !have[id] {
				t.Fatalf("walk from %d met %d", from, id)
			}
			k++
		}
		if i, _ := slices.BinarySearch(ids, from); len(ids)-i != k {
			t.Fatalf("walk from %d met %d of %d", from, k, len(ids)-i)
		}
	}
	for round, p := range []int{90, 20, 95, 0} {
		for i := range 3 * n {
			id := uint32(r.IntN(n))
			if r.IntN(100) < p {
				l.add(id, at)
				have[id] = true
			} else {
				l.remove(id, at)
				delete(have, id)
			}
			if i%1000 == round {
				check()
			}
		}
	}
	for id := range uint32(n) {
		l.remove(id, at)
	}
	if l.len() != 0 || l.big != nil {
		t.Fatal("an emptied list keeps something")
	}
}

func TestSpanTreeAgreesWithScanning(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	point := func() netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(r.IntN(200))}) }
	tree := newSpanTree()
	type entry struct {
		span
		zone uint32
	}
	have := map[entry]bool{}
	for i := range 20_000 {
		a, b := point(), point()
		if b.Less(a) {
			a, b = b, a
		}
		e := entry{span{a, b}, uint32(r.IntN(4))}
		if i/2000%2 == 0 {
			tree.add(e.span, e.zone)
			have[e] = true
		} else {
			for e = range have {
				break
			}
			tree.remove(e.span, e.zone)
			delete(have, e)
		}
		if i%97 != 0 {
			continue
		}
		var want []uint32
		for e := range have {
			if e.first.Compare(a) <= 0 && a.Compare(e.last) <= 0 {
				want = append(want, e.zone)
			}
		}
		got := tree.appendTo(nil, a)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("step %d: %v is in %v, want %v", i, a, got, want)
		}
	}
}

func TestMarksWrap(t *testing.T) {
	d := NewDirectory(addr("192.0.2.250"))
	d.SetZones(Set{Zones: []Zone{{Name: "y", Members: members(t, "192.0.2.0/28")}, {Name: "z", Members: members(t, "192.0.2.0/28")}}})
	a, b := hostAt("192.0.2.1", "192.0.2.251", "e1"), hostAt("192.0.2.2", "192.0.2.252", "e1")
	d.PutHost(a)
	d.PutHost(b)
	d.marks = 1<<32 - 2
	for range 4 {
		if got := slices.Collect(d.Peers(a.Addr)); !slices.Equal(got, []netip.Addr{b.Addr}) {
			t.Fatalf("at mark %d the peers are %v", d.marks, got)
		}
	}
}

// A zone that is deleted and one that is added by the same SetZones are two zones,
// whatever place the second takes in the table.
func TestReplacedZoneIsNotTheOldOne(t *testing.T) {
	d := NewDirectory(addr("192.0.2.250"))
	a, b := hostAt("192.0.2.1", "192.0.2.251", "e1"), hostAt("192.0.2.2", "192.0.2.252", "e1")
	d.PutHost(a)
	d.PutHost(b)
	d.SetZones(Set{Zones: []Zone{{Name: "old", Members: members(t, "192.0.2.1", "192.0.2.2")}}})
	wantChanges(t, d.SetZones(Set{Zones: []Zone{{Name: "new", Members: members(t, "192.0.2.1")}}}),
		Change{Addr: a.Addr, Why: snsd.ReasonZoneChanged}, Change{Addr: b.Addr, Why: snsd.ReasonZoneChanged})
	if d.Share(a.Addr, b.Addr) {
		t.Fatal("the pair of the old zone still shares one")
	}
}
