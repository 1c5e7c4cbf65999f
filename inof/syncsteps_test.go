package inof

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// bigBench is a reflector with many zones and hosts, at devices 0 and 1, that share the
// first zone; device 2 asks for everything and has no session yet.
func bigBench(t *testing.T, cfg ReflectorConfig, zones, hosts int) *testbench {
	var set zone.Set
	for i := range zones {
		set.Zones = append(set.Zones, zone.Zone{Name: fmt.Sprintf("z%05d", i), Members: []zone.Member{addrMember(hostIP(i % hosts)), addrMember(hostIP((i + 1) % hosts))}})
	}
	b := newBench(t, set, cfg, 3)
	for i := range hosts {
		dev := devID(i % 2)
		b.clients[dev].PutHost(hostAt(hostIP(i), dev, fmt.Sprint("p", i)))
	}
	for i := range 2 {
		b.join(devID(i))
		b.flush(devID(i))
	}
	b.refl.SetInterest(devID(2), true)
	b.clients[devID(2)].SetInterestAll(true)
	return b
}

func (b *testbench) fault(host int, on bool) []Delivery {
	b.t.Helper()
	dev := devID(host % 2)
	if port := fmt.Sprint("p", host); on {
		b.clients[dev].PutFault(FaultRecord{Port: port, Why: snsd.ReasonLinkDown, Since: t0, Addrs: []netip.Addr{hostIP(host)}})
	} else {
		b.clients[dev].WithdrawFault(port)
	}
	var out []Delivery
	for _, d := range b.clients[dev].Flush(b.now) {
		ds, err := b.refl.Receive(dev, b.through(d.Msg), b.now)
		if err != nil {
			b.t.Fatal(err)
		}
		out = append(out, ds...)
	}
	b.toClients(out)
	return out
}

func records(ds []Delivery) (n, bytes int) {
	for _, d := range ds {
		if u, ok := d.Msg.(*Update); ok {
			n += len(u.Zones) + len(u.Hosts) + len(u.Faults)
			bytes += u.sizeHint()
		}
	}
	return n, bytes
}

// A full sync of much goes out a message at a time; a fault that comes meanwhile
// reaches others at once, and the one in its sync with its next step or with its host;
// the end comes last, and every record once.
func TestFaultAmidSync(t *testing.T) {
	const zones, hosts = 5000, 4000
	b := bigBench(t, ReflectorConfig{}, zones, hosts)
	late := devID(2)
	b.joined[late] = true
	up := b.clients[late].Up(reflID, b.now)
	var got []Delivery
	take := func(ds []Delivery) {
		t.Helper()
		if n, bytes := records(ds); n > 2*syncVisits || bytes > 2*SyncChunk {
			t.Fatalf("a step of %d records, %d bytes", n, bytes)
		}
		got = append(got, ds...)
		b.toClients(ds)
	}
	take(b.refl.Join(late, b.now))
	b.toReflector(late, up)
	steps, faults := 1, 0
	for ; b.refl.Syncing(); steps++ {
		if at := b.refl.Next(); at.IsZero() || at.After(b.now) {
			t.Fatalf("the next step is due at %v, now is %v", at, b.now)
		}
		if steps%3 == 0 {
			host := steps * 7
			ds := b.fault(host, true)
			if len(ds) != 1 || !slices.Contains(ds[0].To, devID(1-host%2)) {
				t.Fatalf("a fault amid a sync gives %v", ds)
			} else if slices.Contains(ds[0].To, late) {
				t.Fatal("the device in its sync is told out of turn")
			}
			faults++
		}
		take(b.refl.Tick(b.now))
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
		case *EndOfSync:
			if i != len(got)-1 {
				t.Error("End-of-Sync is not the last message")
			}
		case *Update:
			if !m.Partial {
				t.Error("a message of the sync that is not marked as part of it")
			}
			for _, z := range m.Zones {
				seenZones[z.Zone.Name]++
			}
			for _, h := range m.Hosts {
				seenHosts[h.Host.Addr]++
			}
			for _, f := range m.Faults {
				seenFaults[f.Port]++
			}
		}
	}
	if len(seenZones) != zones || len(seenHosts) != hosts || len(seenFaults) != faults {
		t.Errorf("%d zones, %d hosts, %d faults, want %d, %d, %d", len(seenZones), len(seenHosts), len(seenFaults), zones, hosts, faults)
	}
	for _, counts := range []map[string]int{seenZones, seenFaults} {
		for k, n := range counts {
			if n != 1 {
				t.Errorf("%s was told %d times", k, n)
			}
		}
	}
	for a, n := range seenHosts {
		if n != 1 {
			t.Errorf("%v was told %d times", a, n)
		}
	}
	b.check()
	if p := b.clients[late].ResumePoint(reflID); p == nil || p.Seq != b.refl.seq {
		t.Errorf("the client would resume after %+v, the reflector is at %d", p, b.refl.seq)
	}
	// And it goes on from there.
	b.fault(1, true)
	seen := b.clients[late].ResumePoint(reflID)
	b.leave(late)
	b.fault(3, true)
	b.joined[late] = true
	own := b.clients[late].Resume(reflID, nil, b.now)
	b.toClients(b.refl.Resume(late, seen, nil, b.now))
	b.toReflector(late, own)
	if _, out := b.refl.Sessions(late); !out.Resumed {
		t.Errorf("the next session begins with %+v", out)
	}
	b.check()
}

// A peer that takes nothing is made nothing for; what changes meanwhile waits as the
// latest state of what it was sent.
func TestSyncWaitsForSlowPeer(t *testing.T) {
	b := bigBench(t, ReflectorConfig{Paced: true}, 3000, 2000)
	b.join(devID(2))
	d := b.refl.devices[devID(2)]
	for range 3 {
		if b.refl.Syncing() || !b.refl.Next().IsZero() || len(b.refl.Tick(b.now)) > 0 {
			t.Fatal("a step before the last one was taken")
		}
		if got := b.refl.Undrained(nil); !slices.Equal(got, []netip.Addr{devID(2)}) {
			t.Fatalf("waits for %v", got)
		}
		b.refl.Drained(devID(2), b.now)
		b.toClients(b.refl.Tick(b.now))
	}
	for d.sync.hosts == math.MaxInt {
		b.refl.Drained(devID(2), b.now)
		b.toClients(b.refl.Tick(b.now))
	}
	for i := range 20 {
		b.fault(4, i%2 == 0)
	}
	if n := len(d.sync.wait.faults); n != 1 {
		t.Errorf("%d faults wait, want the latest state of one", n)
	}
	for _, h := range []int{0, 1999} { // one of them was sent
		b.clients[devID(h%2)].PutHost(hostAt(hostIP(h), devID(h%2), fmt.Sprint("q", h)))
		b.flush(devID(h % 2))
	}
	if n := len(d.sync.wait.hosts); n != 1 {
		t.Errorf("%d hosts wait, want the one that was sent", n)
	}
	b.finish()
	b.check()
}

// A session that ends amid its sync leaves nothing behind; the next begins anew.
func TestSyncCutAndBegunAnew(t *testing.T) {
	b := bigBench(t, ReflectorConfig{Paced: true}, 3000, 2000)
	for range 3 {
		b.refl.SetInterest(devID(2), true) // each session says so
		b.join(devID(2))
		for range 4 {
			b.refl.Drained(devID(2), b.now)
			b.toClients(b.refl.Tick(b.now))
		}
		b.leave(devID(2))
		if len(b.refl.syncs) > 0 || b.refl.Syncing() {
			t.Fatal("the sync goes on without a session")
		}
		b.refl.Drained(devID(2), b.now) // comes late
		if d := b.refl.devices[devID(2)]; d != nil && d.whole {
			t.Fatal("a sync that was cut could be resumed")
		}
		b.toClients(b.refl.DeleteZone(fmt.Sprintf("z%05d", b.refl.counters.SyncSteps), b.now))
	}
	b.refl.SetInterest(devID(2), true)
	b.join(devID(2))
	b.finish()
	b.check()
	b.now = b.now.Add(time.Hour)
	b.toClients(b.refl.Tick(b.now))
	b.check()
}

// A walk visits each key once that is there from its beginning to its end, and none
// that is gone; ahead tells what it will visit.
func TestKeyListWalks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newKeyList[int]()
		key := func() int { return rapid.IntRange(1, 12).Draw(t, "key") }
		for range rapid.IntRange(0, 12).Draw(t, "keys") {
			l.add(key())
		}
		throughout, visited := map[int]bool{}, map[int]int{}
		for k := range l.at {
			throughout[k] = true
		}
		for at := len(l.list); at > 0; {
			at--
			if k := l.list[at]; k != 0 {
				visited[k]++
			}
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				k := key()
				if rapid.Bool().Draw(t, "add") {
					l.add(k)
				} else {
					l.remove(k, true)
					delete(throughout, k)
				}
			}
			for k := range throughout {
				if l.ahead(k, at) == (visited[k] > 0) {
					t.Fatalf("key %d: visited %d times, ahead %v", k, visited[k], l.ahead(k, at))
				}
			}
		}
		for k := range throughout {
			if visited[k] != 1 {
				t.Fatalf("key %d was visited %d times", k, visited[k])
			}
		}
		l.tidy()
		l.remove(key(), false)
		if len(l.list) != len(l.at) {
			t.Fatalf("%d places for %d keys", len(l.list), len(l.at))
		}
		for i, k := range l.list {
			if int(l.at[k]) != i {
				t.Fatalf("key %d at %d is looked for at %d", k, i, l.at[k])
			}
		}
	})
}
