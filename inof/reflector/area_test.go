package reflector

import (
	"net/netip"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// listener is what one device was told, message by message.
type listener struct {
	of       netip.Addr
	messages []*wire.Update
	hosts    map[netip.Addr]bool // true: there, and not down
}

func (h *listener) take(ds []wire.Delivery) (n int) {
	for _, d := range ds {
		u, ok := d.Msg.(*wire.Update)
		if !ok || len(d.To) != 1 || d.To[0] != h.of {
			continue
		}
		n++
		h.messages = append(h.messages, u)
		for _, r := range u.Hosts {
			if r.Host.Device == h.of { // repeated to it
				continue
			}
			h.hosts[r.Host.Addr] = r.Op == wire.Put && !r.Host.Down.Is()
		}
		for _, r := range u.Downs {
			for _, a := range r.Addrs {
				h.hosts[a] = !r.Is()
			}
		}
	}
	return n
}

// comesToALargeZone gives a reflector with a zone of n hosts at one device, and another device whose
// first host has just come to the zone, with nothing told of it yet.
func comesToALargeZone(t *testing.T, n int) (*Reflector, *listener) {
	t.Helper()
	r, err := New(inoftest.ReflID, 1, zone.Set{AutoJoin: true}, Config{Paced: true}, inoftest.T0)
	if err != nil {
		t.Fatal(err)
	}
	all, comer := inoftest.ScaleDev(1), inoftest.ScaleDev(2)
	for _, dev := range []netip.Addr{all, comer} {
		r.Join(dev, inoftest.T0)
		u := &wire.Update{Origin: dev, Epoch: 1, Seq: 1}
		for i := 1; dev == all && i <= n; i++ {
			u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.ScaleHost(i), dev, "Ethernet1")})
		}
		if _, err := r.Receive(dev, u, inoftest.T0); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Receive(dev, &wire.EndOfSync{Epoch: 1, Seq: 1}, inoftest.T0); err != nil {
			t.Fatal(err)
		}
	}
	h := &listener{of: comer, hosts: map[netip.Addr]bool{}}
	sayRest(r, h)
	if len(h.hosts) > 0 {
		t.Fatalf("who is in no zone with anybody was told of %d hosts", len(h.hosts))
	}
	u := &wire.Update{Origin: comer, Epoch: 1, Seq: 2, Hosts: []wire.HostRecord{{Op: wire.Put, Host: inoftest.HostAt(inoftest.ScaleHost(n+1), comer, "Ethernet1")}}}
	if _, err := r.Receive(comer, u, inoftest.T0); err != nil {
		t.Fatal(err)
	}
	return r, h
}

// sayRest gives all that is still to be told.
func sayRest(r *Reflector, h *listener) {
	h.take(r.Pull(nil, inoftest.T0))
	for r.Owing() {
		h.take(r.Step(nil, inoftest.T0))
	}
}

func there(h *listener) (n int) {
	for _, up := range h.hosts {
		if up {
			n++
		}
	}
	return n
}

// Who comes to a large zone makes no work at once, and what happens meanwhile overtakes what it is
// told of the zone.
func TestWhoComesToALargeZoneIsToldOfItAFewAtATime(t *testing.T) {
	const n = 4 * syncVisits
	r, h := comesToALargeZone(t, n)
	h.take(r.Pull(nil, inoftest.T0))
	if got := len(h.hosts); got == 0 || got > syncVisits {
		t.Fatalf("told of %d hosts at once, want some and at most %d", got, syncVisits)
	}
	if u := h.messages[len(h.messages)-1]; !u.Partial || u.Pos.Known() {
		t.Errorf("a message in the middle of it says that nothing is missing: %+v", u.Pos)
	}
	all, down := inoftest.ScaleDev(1), inoftest.ScaleHost(1) // the first of the roll is told last
	if h.hosts[down] {
		t.Fatal("the host was told already")
	}
	fault := &wire.Update{Origin: all, Epoch: 1, Seq: 2, Downs: []wire.DownRecord{{Device: all, Port: "Ethernet1",
		Down: zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0}, Addrs: []netip.Addr{down}}}}
	if _, err := r.Receive(all, fault, inoftest.T0); err != nil {
		t.Fatal(err)
	}
	before := len(h.hosts)
	h.take(r.Pull(nil, inoftest.T0))
	if up, said := h.hosts[down]; !said || up || len(h.hosts) != before+1 {
		t.Errorf("the fault did not overtake the zone: told %v, up %v, %d other hosts came with it", said, up, len(h.hosts)-before-1)
	}
	sayRest(r, h)
	if got := there(h); got != n-1 || len(h.hosts) != n {
		t.Errorf("knows %d hosts, %d of them up; want %d and %d", len(h.hosts), got, n, n-1)
	}
	last := h.messages[len(h.messages)-1]
	if last.Partial {
		t.Error("the last message says that something is missing")
	}
}

// A session that breaks in the middle of it, and resumes, is told of the whole zone.
func TestWhoIsAwayWhileItComesToALargeZoneHearsOfItAll(t *testing.T) {
	const n = 2 * syncVisits
	r, h := comesToALargeZone(t, n)
	seen := wire.Resume{Epoch: 1, Seq: r.feed.handed} // of what it was told before
	h.take(r.Pull(nil, inoftest.T0))
	r.Leave(h.of, inoftest.T0)
	h.hosts = map[netip.Addr]bool{}
	r.Resume(h.of, &seen, &wire.Resume{Epoch: 1, Seq: 2}, inoftest.T0)
	if _, err := r.Receive(h.of, &wire.EndOfSync{Epoch: 1, Seq: 2, Resumed: true}, inoftest.T0); err != nil {
		t.Fatal(err)
	}
	sayRest(r, h)
	if r.counters.Resumed != 1 {
		t.Errorf("%d sessions were resumed, want 1", r.counters.Resumed)
	}
	if got := there(h); got != n {
		t.Errorf("knows %d hosts after it, want %d", got, n)
	}
}

func BenchmarkWhoComesToALargeZone(b *testing.B) {
	const n = 16_000
	r, err := New(inoftest.ReflID, 1, zone.Set{AutoJoin: true}, Config{Paced: true}, inoftest.T0)
	if err != nil {
		b.Fatal(err)
	}
	all, comer := inoftest.ScaleDev(1), inoftest.ScaleDev(2)
	r.Join(all, inoftest.T0)
	u := &wire.Update{Origin: all, Epoch: 1, Seq: 1}
	for i := 1; i <= n; i++ {
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.ScaleHost(i), all, "Ethernet1")})
	}
	if _, err := r.Receive(all, u, inoftest.T0); err != nil {
		b.Fatal(err)
	}
	h := &listener{of: comer, hosts: map[netip.Addr]bool{}}
	b.ReportAllocs()
	seq := uint64(0)
	for b.Loop() {
		b.StopTimer()
		r.Join(comer, inoftest.T0)
		sayRest(r, h)
		seq++
		b.StartTimer()
		if _, err := r.Receive(comer, &wire.Update{Origin: comer, Epoch: 1, Seq: seq, Hosts: []wire.HostRecord{{Op: wire.Put, Host: inoftest.HostAt(inoftest.ScaleHost(n+1), comer, "Ethernet1")}}}, inoftest.T0); err != nil {
			b.Fatal(err)
		}
		r.Pull(nil, inoftest.T0)
		b.StopTimer()
		seq++
		if _, err := r.Receive(comer, &wire.Update{Origin: comer, Epoch: 1, Seq: seq, Hosts: []wire.HostRecord{{Op: wire.Withdraw, Host: inoftest.HostAt(inoftest.ScaleHost(n+1), comer, "Ethernet1")}}}, inoftest.T0); err != nil {
			b.Fatal(err)
		}
		r.Leave(comer, inoftest.T0)
		b.StartTimer()
	}
}

// A host that leaves the zone for another one of the device, before its turn has come, is told: the
// tables say that the device knows it.
func TestAHostThatLeavesALargeZoneForAnotherOneOfTheDeviceIsTold(t *testing.T) {
	const n = 2 * syncVisits
	r, h := comesToALargeZone(t, n)
	h.take(r.Pull(nil, inoftest.T0))
	moved, own := inoftest.ScaleHost(1), inoftest.ScaleHost(n+2) // the first of the roll is told last
	if h.hosts[moved] {
		t.Fatal("the host was told already")
	}
	u := &wire.Update{Origin: h.of, Epoch: 1, Seq: 3, Hosts: []wire.HostRecord{{Op: wire.Put, Host: inoftest.HostAt(own, h.of, "Ethernet2")}}}
	if _, err := r.Receive(h.of, u, inoftest.T0); err != nil {
		t.Fatal(err)
	}
	other := zone.Zone{Name: "other", Members: []zone.Member{inoftest.AddrMember(moved), inoftest.AddrMember(own)}}
	if _, err := r.PutZone(other, inoftest.T0); err != nil {
		t.Fatal(err)
	}
	sayRest(r, h)
	if !h.hosts[moved] {
		t.Error("the host that has moved to another zone of the device was not told")
	}
	if got := there(h); got != n {
		t.Errorf("knows %d hosts, want %d", got, n)
	}
}
