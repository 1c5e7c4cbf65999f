package reflector

import (
	"net/netip"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// Much that is no loss is told to many devices a few at a time, so that a fault does not wait until
// it is sealed and written for all. The fault comes to all at once, behind what it would undo.
func TestMuchThatIsToldToManyLeavesRoomForAFault(t *testing.T) {
	f := newFlapping(t)
	states := map[netip.Addr]map[netip.Addr]bool{}
	take := func(ds []wire.Delivery) (bytes int) {
		for _, d := range ds {
			u, ok := d.Msg.(*wire.Update)
			if !ok {
				continue
			}
			e, err := wire.Encode(u)
			if err != nil {
				t.Fatal(err)
			}
			bytes += e.Len() * len(d.To)
			for _, to := range d.To {
				if states[to] == nil {
					states[to] = map[netip.Addr]bool{}
				}
				for _, h := range u.Hosts {
					states[to][h.Host.Addr] = h.Host.Down.Is()
				}
				for _, r := range u.Downs {
					for _, a := range r.Addrs {
						states[to][a] = r.Is()
					}
				}
			}
		}
		return bytes
	}
	const most = handBytes + wire.SyncChunk
	changed := func(name string) {
		u := &wire.Update{Origin: f.bad, Epoch: 1, Seq: 1}
		for i := range f.hosts {
			h := inoftest.HostAt(f.hosts[i], f.bad, "Ethernet0")
			h.NQN = name
			u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: h})
		}
		if _, err := f.r.Receive(f.bad, u, f.now); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 8 {
		changed("nqn.2026-11.org.example:" + string(rune('a'+round)))
		if n := take(f.r.Pull(nil, f.now)); n > most {
			t.Fatalf("%d bytes are told before a fault can be", n)
		}
		for step := 0; f.r.Owing(); step++ {
			if step == round {
				bytes := 0
				for _, d := range f.change(f.bad, true, f.hosts...) {
					bytes += take([]wire.Delivery{d})
				}
				for _, w := range f.watchers {
					for _, h := range f.hosts {
						if !states[w][h] {
							t.Fatalf("round %d: %v is not told that %v is down", round, w, h)
						}
					}
				}
			}
			if n := take(f.r.Step(nil, f.now)); n > most {
				t.Fatalf("a step of %d bytes", n)
			}
		}
		f.now = f.now.Add(2 * oftenTime)
		take(f.change(f.bad, false, f.hosts...))
		for f.r.Owing() {
			take(f.r.Step(nil, f.now))
		}
		f.now = f.now.Add(2 * oftenTime)
		for _, w := range f.watchers {
			for _, h := range f.hosts {
				if states[w][h] {
					t.Fatalf("round %d: %v is told at last that %v is down", round, w, h)
				}
			}
		}
	}
}

// A device whose session ends is owed nothing of what was on its way to it: it comes back anew.
func TestWhatWasOnItsWayToASessionThatEndedIsNotGivenToTheNext(t *testing.T) {
	f := newFlapping(t)
	u := &wire.Update{Origin: f.bad, Epoch: 1, Seq: 1}
	for i := range f.hosts {
		h := inoftest.HostAt(f.hosts[i], f.bad, "Ethernet0")
		h.NQN = "nqn.2026-11.org.example:other"
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: h})
	}
	if _, err := f.r.Receive(f.bad, u, f.now); err != nil {
		t.Fatal(err)
	}
	f.r.Pull(nil, f.now)
	if len(f.r.handing) == 0 {
		t.Fatal("all was told at once")
	}
	var last *device
	for _, h := range f.r.handing {
		last = h.to[len(h.to)-1]
	}
	f.r.Leave(last.id, f.now)
	f.r.Join(last.id, f.now)
	first := true
	for f.r.Owing() {
		for _, d := range f.r.Step(nil, f.now) {
			for _, to := range d.To {
				if u, ok := d.Msg.(*wire.Update); ok && to == last.id {
					if u.Anew != first {
						t.Fatalf("its first message is %+v", u)
					}
					first = false
				}
			}
		}
	}
	if first {
		t.Error("it was told nothing")
	}
}

// A long fault is taken in pieces, which are one change of its port.
func TestAFaultInPiecesIsOneChangeOfItsPort(t *testing.T) {
	f := newFlapping(t)
	fault := wire.DownRecord{Device: f.bad, Port: "Ethernet0", Addrs: f.hosts, Down: zone.Down{Why: 1, Since: f.now}}
	var rest *wire.Update
	told := map[netip.Addr]int{}
	for first := (&wire.Update{Origin: f.bad, Epoch: 1, Seq: 1, Downs: []wire.DownRecord{fault}}); first != nil; first = rest {
		first, rest = first.Cut(32)
		if _, err := f.r.Receive(f.bad, first, f.now); err != nil {
			t.Fatal(err)
		}
		for _, d := range f.count(f.r.Pull(nil, f.now)) {
			for _, r := range d.Msg.(*wire.Update).Downs {
				for _, to := range d.To {
					told[to] += len(r.Addrs)
				}
			}
		}
	}
	for _, w := range f.watchers {
		if told[w] != len(f.hosts) {
			t.Errorf("%v is told of %d hosts at once, want %d", w, told[w], len(f.hosts))
		}
	}
}

// What many are told alike, a few at a time, is encoded once for all of them.
func TestWhatIsHandedOnInStepsIsEncodedOnce(t *testing.T) {
	f := newFlapping(t)
	u := &wire.Update{Origin: f.bad, Epoch: 1, Seq: 1}
	for i := range f.hosts {
		h := inoftest.HostAt(f.hosts[i], f.bad, "Ethernet0")
		h.NQN = "nqn.2026-11.org.example:once"
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: h})
	}
	if _, err := f.r.Receive(f.bad, u, f.now); err != nil {
		t.Fatal(err)
	}
	forms, times := map[wire.Message]*wire.Encoded{}, map[wire.Message]int{}
	take := func(ds []wire.Delivery) {
		for _, d := range ds {
			e, err := d.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if was := forms[d.Msg]; was != nil && was != e {
				t.Fatalf("a message of %d bytes is encoded again for %v", e.Len(), d.To)
			}
			forms[d.Msg] = e
			times[d.Msg]++
		}
	}
	take(f.r.Pull(nil, f.now))
	for f.r.Owing() {
		take(f.r.Step(nil, f.now))
	}
	again := 0
	for _, n := range times {
		again = max(again, n)
	}
	if again < 2 {
		t.Fatalf("no message of %d was handed on in steps", len(times))
	}
}
