package inof

import (
	"net/netip"
	"testing"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// What comes of what two reflectors say of a host: which of them is right about it.
func TestWhatReflectorsSayOfAHost(t *testing.T) {
	k := zone.HostKey{Addr: hostIP(1), Device: devID(1), Port: "p"}
	type said struct {
		at        uint64 // state of the device, 0: not known
		overruled bool
		ended     uint64 // the device has withdrawn it, as of that state
		nothing   bool
	}
	for _, c := range []struct {
		what  string
		said  [2]said
		right int // -1: the host is not there
	}{
		{"nobody says it", [2]said{{nothing: true}, {nothing: true}}, -1},
		{"the first alone", [2]said{{at: 1}, {nothing: true}}, 0},
		{"the second alone", [2]said{{nothing: true}, {at: 1}}, 1},
		{"both, the second of a later state", [2]said{{at: 1}, {at: 2}}, 1},
		{"both, the first of a later state", [2]said{{at: 3}, {at: 2}}, 0},
		{"both of the same state", [2]said{{at: 2}, {at: 2}}, 0},
		{"of one state nothing is known", [2]said{{}, {at: 1}}, 1},
		{"of no state anything is known", [2]said{{}, {}}, 0},
		{"withdrawn after what the other one knows", [2]said{{nothing: true, ended: 2}, {at: 1}}, -1},
		{"withdrawn, and there again", [2]said{{nothing: true, ended: 2}, {at: 3}}, 1},
		{"withdrawn in that state", [2]said{{nothing: true, ended: 2}, {at: 2}}, 1},
		{"a silent one is overruled", [2]said{{at: 1, overruled: true}, {nothing: true}}, -1},
		{"a silent one is overruled, the other one says it", [2]said{{at: 2, overruled: true}, {at: 1}}, 1},
	} {
		l := newReplicas(devID(0))
		for i, s := range c.said {
			if err := l.begin(netip.AddrFrom4([4]byte{192, 0, 2, byte(250 + i)})); err != nil {
				t.Fatal(err)
			}
			stamp := func(seq uint64) (st Stamp) {
				if seq > 0 {
					st = Stamp{Epoch: 7, Seq: seq}
				}
				return st
			}
			if !s.nothing {
				h := hostAt(k.Addr, k.Device, k.Port)
				l.list[i].hosts[k] = saidHost{host: &h, stamp: stamp(s.at), session: 1, overruled: s.overruled}
			}
			if s.ended > 0 {
				l.list[i].ended[k] = ending{stamp: stamp(s.ended), at: t0}
			}
		}
		if got := l.decideHost(k); got != c.right {
			t.Errorf("%s: reflector %d is right, want %d", c.what, got, c.right)
		}
	}
}

// A reflector that withdraws a host because it does not know it any more ends it only where no
// other one with a session says it; a silent one that says it counts again when it is back.
func TestWhoWithdrawsAHostDoesNotEndWhatOthersSay(t *testing.T) {
	a, b := reflID, reflID.Next()
	c := NewClient(devID(0), 1)
	c.SetReflectors(2, AgreeIdentical, 0)
	h := hostAt(hostIP(1), devID(1), "p")
	say := func(from netip.Addr, m Message) Applied {
		t.Helper()
		out, err := c.Receive(from, m, t0)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	of := []DeviceStamp{{Device: devID(1), Stamp: Stamp{Epoch: 7, Seq: 1}}}
	put := func(from netip.Addr) Applied {
		return say(from, &Update{Origin: from, Epoch: 1, Seq: 1, Devices: of, Hosts: []HostRecord{{Op: Put, Host: h}}})
	}
	withdraw := func(from netip.Addr) Applied {
		return say(from, &Update{Origin: from, Epoch: 1, Seq: 2, Devices: of, Hosts: []HostRecord{{Op: Withdraw, Host: h, Why: snsd.ReasonAgedOut}}})
	}
	there := func(when string, want bool) {
		t.Helper()
		if _, is := c.learned.hosts[h.HostKey]; is != want {
			t.Errorf("%s: the host is there: %v, want %v", when, is, want)
		}
	}
	for _, r := range []netip.Addr{a, b} {
		c.Up(r, t0)
		say(r, &Update{Origin: r, Epoch: 1, Seq: 1, Anew: true, Settings: &Settings{}})
		put(r)
		say(r, &EndOfSync{Epoch: 1, Seq: 1})
	}
	withdraw(a)
	there("one of two with a session withdraws it", true)
	c.Down(b, t0)
	there("the other one falls silent then", true)
	c.Up(b, t0)
	say(b, &EndOfSync{Epoch: 1, Seq: 1, Resumed: true})
	put(a)
	c.Down(b, t0)
	if got := withdraw(a); len(got.Hosts) != 1 || got.Hosts[0].Why != snsd.ReasonAgedOut {
		t.Errorf("a silent one holds it: %+v", got)
	}
	c.Down(a, t0)
	there("all are silent", false)
	c.Up(b, t0)
	there("the silent one is back, and has not said whether it resumes", false)
	if got := say(b, &EndOfSync{Epoch: 1, Seq: 1, Resumed: true}); len(got.Hosts) != 1 || got.Hosts[0].Op != Put {
		t.Errorf("it has resumed: %+v", got)
	}
}

// A change of zones that comes in parts takes effect with the last one, also when the session
// is cut and resumed in between; a full sync that is cut is forgotten.
func TestAChangeOfZonesTakesEffectAsAWhole(t *testing.T) {
	c := NewClient(devID(0), 1)
	zoneOf := func(name string) []ZoneRecord {
		return []ZoneRecord{{Op: Put, Zone: zone.Zone{Name: name, Members: []zone.Member{addrMember(hostIP(1))}}}}
	}
	say := func(u *Update) int {
		t.Helper()
		u.Origin, u.Epoch = reflID, 1
		out, err := c.Receive(reflID, u, t0)
		if err != nil {
			t.Fatal(err)
		}
		return len(out.Zones)
	}
	c.Up(reflID, t0)
	for i, step := range []struct {
		u    *Update
		news int
	}{
		{&Update{Anew: true, More: true, Settings: &Settings{}, Zones: zoneOf("a")}, 0},
		{&Update{More: true, Zones: zoneOf("b")}, 0},
		{&Update{}, 2},
		{&Update{More: true, Zones: zoneOf("c")}, 0},
		{nil, 0}, // the session is cut and resumed
		{&Update{Zones: zoneOf("d")}, 2},
		{&Update{Zones: zoneOf("e")}, 1},
		{&Update{Anew: true, More: true, Zones: zoneOf("x")}, 0},
		{nil, 0},
		{&Update{Anew: true, Zones: zoneOf("a")}, 4}, // b to e are gone
	} {
		if step.u == nil {
			c.Down(reflID, t0)
			c.Up(reflID, t0)
		} else if n := say(step.u); n != step.news {
			t.Errorf("step %d: %d zones are new or gone, want %d", i, n, step.news)
		}
	}
}
