package reflector

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// bigBench is a reflector with many zones and hosts, at devices 0 and 1, that share the
// first zone; device 2 asks for everything and has no session yet.
func bigBench(t *testing.T, zones, hosts int) *testbench {
	var set zone.Set
	for i := range zones {
		set.Zones = append(set.Zones, zone.Zone{Name: fmt.Sprintf("z%05d", i), Members: []zone.Member{inoftest.AddrMember(inoftest.HostIP(i % hosts)), inoftest.AddrMember(inoftest.HostIP((i + 1) % hosts))}})
	}
	b := newBench(t, set, Config{Paced: true}, 3)
	for i := range hosts {
		dev := inoftest.DevID(i % 2)
		b.clients[dev].PutHost(inoftest.HostAt(inoftest.HostIP(i), dev, fmt.Sprint("p", i)))
	}
	for i := range 2 {
		b.join(inoftest.DevID(i))
		b.flush(inoftest.DevID(i))
	}
	b.finish()
	b.refl.SetInterest(inoftest.DevID(2), true)
	return b
}

// fault lets the port of a host fail, or no more.
func (b *testbench) fault(host int, on bool) {
	b.t.Helper()
	dev := inoftest.DevID(host % 2)
	if port := fmt.Sprint("p", host); on {
		setDown(b.clients[dev], port, zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0}, inoftest.HostIP(host))
	} else {
		setDown(b.clients[dev], port, zone.Down{})
	}
	b.flush(dev)
}

func records(ds []wire.Delivery) (n, bytes int) {
	for _, d := range ds {
		if u, ok := d.Msg.(*wire.Update); ok {
			n += len(u.Zones) + len(u.Hosts) + len(u.Downs)
			e, _ := wire.Encode(u)
			bytes += e.Len()
		}
	}
	return n, bytes
}

// What is long leaves in messages that are full, and not in a full one and one of the last record
// by turns.
func TestAStepOfAFullSyncIsOneMessage(t *testing.T) {
	b := bigBench(t, 5000, 4000)
	b.join(inoftest.DevID(2))
	steps := 0
	for ; b.refl.Owing(); steps++ {
		ds := b.refl.Step(nil, b.now)
		updates := 0
		for _, d := range ds {
			if _, ok := d.Msg.(*wire.Update); ok {
				updates++
			}
		}
		if _, bytes := records(ds); updates > 1 {
			t.Fatalf("step %d is %d messages, of %d bytes", steps, updates, bytes)
		}
		b.toClients(ds)
	}
	if steps < 10 {
		t.Fatalf("%d steps", steps)
	}
}

// A full sync of much goes out a message at a time; a fault that comes meanwhile reaches
// everybody at once, the one in its sync too; the end comes last, and every zone and host once.
func TestFaultAmidSync(t *testing.T) {
	const zones, hosts = 5000, 4000
	b := bigBench(t, zones, hosts)
	late := inoftest.DevID(2)
	b.join(late)
	var got []wire.Delivery
	take := func(ds []wire.Delivery) {
		t.Helper()
		if n, bytes := records(ds); n > 2*syncVisits || bytes > 2*wire.SyncChunk {
			t.Fatalf("a step of %d records, %d bytes", n, bytes)
		}
		for _, d := range ds {
			if slices.Contains(d.To, late) {
				got = append(got, d)
			}
		}
		b.toClients(ds)
	}
	steps, faults := 0, 0
	for ; b.refl.Owing(); steps++ {
		if steps%3 == 2 {
			host := steps * 7
			b.fault(host, true)
			ds := b.refl.Pull(nil, b.now)
			for _, dev := range []netip.Addr{inoftest.DevID(1 - host%2), late} {
				if !slices.ContainsFunc(ds, func(d wire.Delivery) bool { return slices.Contains(d.To, dev) && d.Msg.(*wire.Update).TellsLoss() }) {
					t.Fatalf("a fault amid a sync is not told to %v: %v", dev, ds)
				}
			}
			take(ds)
			faults++
		}
		take(b.refl.Step(nil, b.now))
		if steps%3 == 0 {
			b.checkPrefix()
		}
	}
	if steps < 10 {
		t.Fatalf("%d steps", steps)
	}
	seenZones, seenHosts, seenFaults := map[string]int{}, map[netip.Addr]int{}, map[string]int{}
	for i, d := range got {
		switch m := d.Msg.(type) {
		case *wire.EndOfSync:
			if i != len(got)-1 {
				t.Error("End-of-Sync is not the last message")
			}
		case *wire.Update:
			if !m.Partial || m.Anew != (i == 0) {
				t.Errorf("message %d of the sync: partial %v, anew %v", i, m.Partial, m.Anew)
			}
			for _, z := range m.Zones {
				seenZones[z.Zone.Name]++
			}
			for _, h := range m.Hosts {
				seenHosts[h.Host.Addr]++
				if h.Host.Down.Is() {
					seenFaults[h.Host.HostKey.Port]++
				}
			}
			for _, d := range m.Downs {
				seenFaults[d.Port]++
			}
		}
	}
	if len(seenZones) != zones || len(seenHosts) != hosts || len(seenFaults) != faults {
		t.Errorf("%d zones, %d hosts, %d faults, want %d, %d, %d", len(seenZones), len(seenHosts), len(seenFaults), zones, hosts, faults)
	}
	for k, n := range seenZones {
		if n != 1 {
			t.Errorf("%s was told %d times", k, n)
		}
	}
	for a, n := range seenHosts {
		if n != 1 {
			t.Errorf("%v was told %d times", a, n)
		}
	}
	b.check()
	if p := b.clients[late].ResumePoint(inoftest.ReflID); p == nil || p.Seq != b.refl.feed.seq {
		t.Errorf("the client would resume after %+v, the reflector is at %d", p, b.refl.feed.seq)
	}
	// And it goes on from there.
	b.fault(1, true)
	b.finish()
	seen := b.clients[late].ResumePoint(inoftest.ReflID)
	b.leave(late)
	b.fault(3, true)
	b.joined[late] = true
	own := b.clients[late].Resume(inoftest.ReflID, nil, b.now)
	b.toClients(b.refl.Resume(late, seen, nil, b.now))
	b.toReflector(late, own)
	b.finish()
	if _, out := b.refl.Sessions(late); !out.Resumed {
		t.Errorf("the next session begins with %+v", out)
	}
	b.check()
}

// For a device that takes nothing no message is made. What changes meanwhile waits as keys,
// each once.
func TestNothingIsMadeForASlowDevice(t *testing.T) {
	b := bigBench(t, 3000, 2000)
	b.join(inoftest.DevID(2))
	slow := func(dev netip.Addr) bool { return dev != inoftest.DevID(2) }
	d := b.refl.devices[inoftest.DevID(2)]
	for range 3 {
		if b.refl.Drained(); len(b.refl.Step(slow, b.now)) > 0 || b.refl.Owing() {
			t.Fatal("a step before the last one was taken")
		}
		if got := b.refl.Owed(nil); !slices.Equal(got, []netip.Addr{inoftest.DevID(2)}) {
			t.Fatalf("owes %v", got)
		}
		b.refl.Drained()
		b.pull(nil)
	}
	for d.owed.dump.zones > 0 {
		b.pull(nil)
	}
	for i := range 20 {
		b.fault(4, i%2 == 0)
		b.pull(slow)
	}
	for i := range 20 {
		h := inoftest.HostAt(inoftest.HostIP(6), inoftest.DevID(0), "p6")
		h.Service.Port = uint16(i)
		b.clients[inoftest.DevID(0)].PutHost(h)
		b.flush(inoftest.DevID(0))
		b.pull(slow)
	}
	if n := len(d.owed.keys); n != 2 {
		t.Errorf("%d keys wait: %v, want the fault and the host", n, d.owed.keys)
	}
	b.refl.Drained()
	ds := b.refl.Step(nil, b.now)
	if u := ds[0].Msg.(*wire.Update); len(u.Downs) != 1 || u.Downs[0].Is() || !slices.ContainsFunc(u.Hosts, func(h wire.HostRecord) bool { return h.Host.Service.Port == 19 }) {
		t.Errorf("the next message has %d faults, %d hosts", len(u.Downs), len(u.Hosts))
	}
	b.toClients(ds)
	b.finish()
	b.check()
}

// A session that ends amid its sync leaves nothing behind; the next begins anew.
func TestSyncCutAndBegunAnew(t *testing.T) {
	b := bigBench(t, 3000, 2000)
	for i := range 3 {
		b.refl.SetInterest(inoftest.DevID(2), true) // each session says so
		b.join(inoftest.DevID(2))
		for range 4 {
			b.pull(nil)
		}
		b.leave(inoftest.DevID(2))
		b.refl.Drained() // comes late
		if b.pull(nil); len(b.refl.Owed(nil)) > 0 || b.refl.Owing() {
			t.Fatal("the sync goes on without a session")
		}
		if d := b.refl.devices[inoftest.DevID(2)]; d != nil && d.whole {
			t.Fatal("a sync that was cut could be resumed")
		}
		b.toClients(b.refl.DeleteZone(fmt.Sprintf("z%05d", i), b.now))
		b.finish()
	}
	b.refl.SetInterest(inoftest.DevID(2), true)
	b.join(inoftest.DevID(2))
	b.finish()
	b.check()
	b.now = b.now.Add(time.Hour)
	b.toClients(b.refl.Tick(b.now))
	b.finish()
	b.check()
}

// sharing is a reflector with some devices that have a host each in one zone, and all told.
func sharing(t *testing.T, n int) *testbench {
	z := zone.Zone{Name: "z", Members: []zone.Member{{Kind: zone.MemberRange, First: inoftest.HostIP(0), Last: inoftest.HostIP(190)}}}
	b := newBench(t, zone.Set{Zones: []zone.Zone{z}}, Config{Paced: true}, n)
	for i := range n {
		b.clients[inoftest.DevID(i)].PutHost(inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(i), "p0"))
		b.join(inoftest.DevID(i))
		b.flush(inoftest.DevID(i))
	}
	b.finish()
	b.check()
	return b
}

// put lets device 0 say a host that nobody else has.
func (b *testbench) put(host, service int) {
	b.t.Helper()
	h := inoftest.HostAt(inoftest.HostIP(host), inoftest.DevID(0), "p1")
	h.Service.Port = uint16(service)
	b.clients[inoftest.DevID(0)].PutHost(h)
	b.flush(inoftest.DevID(0))
}

// Those who are to hear of the same get one message, made once, however many changes it is
// of; who is alone with a part of it gets one of its own.
func TestManyChangesAreToldAsOneMessage(t *testing.T) {
	b := sharing(t, 12)
	for i := range 50 {
		b.put(20+i%10, i)
	}
	ds := b.refl.Pull(nil, b.now)
	if len(ds) != 2 {
		t.Fatalf("%d messages, want one to the origin and one to all others", len(ds))
	}
	for _, d := range ds {
		want, hosts := 11, 10
		if slices.Contains(d.To, inoftest.DevID(0)) { // its own hosts, taken in
			want = 1
		}
		if u := d.Msg.(*wire.Update); len(d.To) != want || len(u.Hosts) != hosts || u.Partial {
			t.Errorf("%d hosts to %v, partial %v", len(u.Hosts), d.To, u.Partial)
		}
	}
	b.toClients(ds)
	b.check()
}

// Devices whose sessions are slow in the same way are owed the same, kept once; one that
// can take it goes on alone, and all end with the same.
func TestSlowDevicesShareABacklog(t *testing.T) {
	b := sharing(t, 6)
	ready := map[netip.Addr]bool{inoftest.DevID(0): true, inoftest.DevID(1): true}
	can := func(dev netip.Addr) bool { return ready[dev] }
	owed := func(i int) *backlog { return b.refl.devices[inoftest.DevID(i)].owed }
	b.put(20, 1)
	b.pull(can)
	b.put(21, 1)
	b.pull(can)
	if owed(0) != nil || owed(1) != nil || owed(2) == nil || owed(2) != owed(5) || owed(2).users != 4 || len(owed(2).keys) != 2 {
		t.Fatalf("owed %+v", owed(2))
	}
	ready[inoftest.DevID(3)] = true
	b.refl.Drained()
	b.toClients(b.refl.Step(can, b.now))
	if owed(3) != nil || owed(2).users != 3 || len(owed(2).keys) != 2 {
		t.Fatalf("after one has pulled: %+v", owed(2))
	}
	b.leave(inoftest.DevID(5))
	if owed(2).users != 2 {
		t.Fatalf("after one has left: %+v", owed(2))
	}
	b.put(20, 2)
	b.pull(can)
	if owed(2) != owed(4) || len(owed(2).keys) != 2 {
		t.Fatalf("a key that changed again: %+v", owed(2))
	}
	b.finish()
	b.check()
}

// What a full sync ends with is told before its end: changes that were not handed out yet hold
// the End-of-Sync back.
func TestTheEndOfSyncWaitsForWhatHasChanged(t *testing.T) {
	b := newBench(t, inoftest.ThreeZones, Config{Paced: true}, 1)
	b.clients[inoftest.DevID(0)].PutHost(inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p"))
	b.join(inoftest.DevID(0)) // says its host, and that this is all
	for _, d := range b.refl.Step(nil, b.now) {
		if d.Msg.Type() == wire.TypeEndOfSync {
			t.Fatal("the end is told while the host waits")
		}
		b.toClients([]wire.Delivery{d})
	}
	b.finish()
	b.check()
}

// A host that is down goes, and then the fault of its port ends, before a device pulls.
func TestAFaultEndsForWhoHadNotPulled(t *testing.T) {
	b := sharing(t, 3)
	c := b.clients[inoftest.DevID(0)]
	setDown(c, "p0", zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0}, inoftest.HostIP(0))
	b.flush(inoftest.DevID(0))
	b.finish()
	b.check()
	c.WithdrawHost(zone.HostKey{Addr: inoftest.HostIP(0), Device: inoftest.DevID(0), Port: "p0"}, snsd.ReasonAgedOut)
	b.flush(inoftest.DevID(0))
	setDown(c, "p0", zone.Down{})
	b.flush(inoftest.DevID(0))
	b.finish()
	b.check()
}

// A loss overtakes what a device is owed already, and leaves it in its place.
func TestALossOvertakesABacklog(t *testing.T) {
	b := sharing(t, 3)
	slow := func(dev netip.Addr) bool { return dev != inoftest.DevID(2) }
	for i := range 150 {
		b.clients[inoftest.DevID(0)].MarkFault(inoftest.T0) // long ago
		b.put(20+i, 1)
	}
	b.pull(slow)
	d := b.refl.devices[inoftest.DevID(2)]
	if len(d.owed.keys) != 150 {
		t.Fatalf("%d keys wait", len(d.owed.keys))
	}
	at := inoftest.T0.Add(5 * time.Second)
	b.clients[inoftest.DevID(1)].MarkFault(at)
	setDown(b.clients[inoftest.DevID(1)], "p0", zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0}, inoftest.HostIP(1))
	b.flush(inoftest.DevID(1))
	ds := b.refl.Pull(nil, b.now)
	told := 0
	for _, x := range ds {
		if u := x.Msg.(*wire.Update); slices.Contains(x.To, inoftest.DevID(2)) {
			told++
			if len(u.Downs) != 1 || len(u.Hosts) != 0 || !u.Partial {
				t.Errorf("it is told %d faults, %d hosts, partial %v", len(u.Downs), len(u.Hosts), u.Partial)
			}
			if !u.FaultAt.Equal(at) {
				t.Errorf("its fault happened at %v, want %v, whatever waits besides", u.FaultAt, at)
			}
		}
	}
	if told != 1 || len(d.owed.keys) != 150 {
		t.Errorf("%d messages, %d keys still wait", told, len(d.owed.keys))
	}
	b.toClients(ds)
	b.finish()
	b.check()
}
