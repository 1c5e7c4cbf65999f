package client

import (
	"net/netip"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// What comes of what two reflectors say of a host: which of them is right about it.
func TestWhatReflectorsSayOfAHost(t *testing.T) {
	k := zone.HostKey{Addr: inoftest.HostIP(1), Device: inoftest.DevID(1), Port: "p"}
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
		l := newReplicas(inoftest.DevID(0))
		for i, s := range c.said {
			if err := l.begin(netip.AddrFrom4([4]byte{192, 0, 2, byte(250 + i)})); err != nil {
				t.Fatal(err)
			}
			stamp := func(seq uint64) (st wire.Stamp) {
				if seq > 0 {
					st = wire.Stamp{Epoch: 7, Seq: seq}
				}
				return st
			}
			if !s.nothing {
				h := inoftest.HostAt(k.Addr, k.Device, k.Port)
				l.list[i].hosts[k] = saidHost{host: &h, stamp: stamp(s.at), session: 1, overruled: s.overruled}
			}
			if s.ended > 0 {
				l.list[i].ended[k] = ending{stamp: stamp(s.ended), at: inoftest.T0}
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
	a, b := inoftest.ReflID, inoftest.ReflID.Next()
	c := New(inoftest.DevID(0), 1)
	c.SetReflectors(2, AgreeIdentical, 0)
	h := inoftest.HostAt(inoftest.HostIP(1), inoftest.DevID(1), "p")
	say := func(from netip.Addr, m wire.Message) Applied {
		t.Helper()
		out, err := c.Receive(from, m, inoftest.T0)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	of := []wire.DeviceStamp{{Device: inoftest.DevID(1), Stamp: wire.Stamp{Epoch: 7, Seq: 1}}}
	put := func(from netip.Addr) Applied {
		return say(from, &wire.Update{Origin: from, Epoch: 1, Seq: 1, Devices: of, Hosts: []wire.HostRecord{{Op: wire.Put, Host: h}}})
	}
	withdraw := func(from netip.Addr) Applied {
		return say(from, &wire.Update{Origin: from, Epoch: 1, Seq: 2, Devices: of, Hosts: []wire.HostRecord{{Op: wire.Withdraw, Host: h, Why: snsd.ReasonAgedOut}}})
	}
	there := func(when string, want bool) {
		t.Helper()
		if _, is := c.learned.hosts[h.HostKey]; is != want {
			t.Errorf("%s: the host is there: %v, want %v", when, is, want)
		}
	}
	for _, r := range []netip.Addr{a, b} {
		c.Up(r, inoftest.T0)
		say(r, &wire.Update{Origin: r, Epoch: 1, Seq: 1, Anew: true, Settings: &wire.Settings{}})
		put(r)
		say(r, &wire.EndOfSync{Epoch: 1, Seq: 1})
	}
	withdraw(a)
	there("one of two with a session withdraws it", true)
	c.Down(b, inoftest.T0)
	there("the other one falls silent then", true)
	c.Up(b, inoftest.T0)
	say(b, &wire.EndOfSync{Epoch: 1, Seq: 1, Resumed: true})
	put(a)
	c.Down(b, inoftest.T0)
	if got := withdraw(a); len(got.Hosts) != 1 || got.Hosts[0].Why != snsd.ReasonAgedOut {
		t.Errorf("a silent one holds it: %+v", got)
	}
	c.Down(a, inoftest.T0)
	there("all are silent", false)
	c.Up(b, inoftest.T0)
	there("the silent one is back, and has not said whether it resumes", false)
	if got := say(b, &wire.EndOfSync{Epoch: 1, Seq: 1, Resumed: true}); len(got.Hosts) != 1 || got.Hosts[0].Op != wire.Put {
		t.Errorf("it has resumed: %+v", got)
	}
}

// A change of zones that comes in parts takes effect with the last one. One that is cut with its
// session is forgotten, as a full sync is: the next session tells it again.
func TestAChangeOfZonesTakesEffectAsAWhole(t *testing.T) {
	c := New(inoftest.DevID(0), 1)
	zoneOf := func(name string) []wire.ZoneRecord {
		return []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: name, Members: []zone.Member{inoftest.AddrMember(inoftest.HostIP(1))}}}}
	}
	say := func(u *wire.Update) int {
		t.Helper()
		u.Origin, u.Epoch = inoftest.ReflID, 1
		out, err := c.Receive(inoftest.ReflID, u, inoftest.T0)
		if err != nil {
			t.Fatal(err)
		}
		return len(out.Zones)
	}
	c.Up(inoftest.ReflID, inoftest.T0)
	for i, step := range []struct {
		u    *wire.Update
		news int
	}{
		{&wire.Update{Anew: true, More: true, Settings: &wire.Settings{}, Zones: zoneOf("a")}, 0},
		{&wire.Update{More: true, Zones: zoneOf("b")}, 0},
		{&wire.Update{}, 2},
		{&wire.Update{More: true, Zones: zoneOf("c")}, 0},
		{nil, 0}, // the session is cut and resumed
		{&wire.Update{Zones: zoneOf("d")}, 1},
		{&wire.Update{Zones: zoneOf("c")}, 1},
		{&wire.Update{Zones: zoneOf("e")}, 1},
		{&wire.Update{Anew: true, More: true, Zones: zoneOf("x")}, 0},
		{nil, 0},
		{&wire.Update{Anew: true, Zones: zoneOf("a")}, 4}, // b to e are gone
	} {
		if step.u == nil {
			c.Down(inoftest.ReflID, inoftest.T0)
			c.Up(inoftest.ReflID, inoftest.T0)
		} else if n := say(step.u); n != step.news {
			t.Errorf("step %d: %d zones are new or gone, want %d", i, n, step.news)
		}
	}
}
