package inof

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

func mustJoin(t *testing.T, b *testbench, devs ...int) {
	t.Helper()
	for _, i := range devs {
		b.join(devID(i))
	}
}

func TestRecordsThatAreRefused(t *testing.T) {
	b := newBench(t, threeZones, ReflectorConfig{MaxHosts: 2, MaxClients: 2}, 3)
	mustJoin(t, b, 0, 1)
	put := func(h zone.Host) HostRecord { return HostRecord{Op: Put, Host: h} }
	multicast := hostAt(netip.MustParseAddr("224.0.0.9"), devID(0), "p")
	u := &Update{Origin: devID(0), Epoch: 1, Seq: 1,
		Settings: &Settings{},
		Hosts: []HostRecord{
			put(hostAt(hostIP(0), devID(1), "p")), // of another device
			put(multicast),
			put(hostAt(hostIP(0), devID(0), "p")),
			put(hostAt(hostIP(1), devID(0), "p")),
			put(hostAt(hostIP(2), devID(0), "p")), // over the limit
		},
		Faults: []FaultRecord{{Op: Put, Device: devID(1), Port: "p"}},
	}
	_, err := b.refl.Receive(devID(0), u, t0)
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Refused != 5 || !strings.Contains(err.Error(), "zone configuration") {
		t.Errorf("%v", err)
	}
	if c := b.refl.Counters(); c.NotOwned != 3 || c.OverLimit != 1 || c.BadRecords != 1 {
		t.Errorf("%+v", c)
	}
	if n := b.refl.Directory().Len(); n != 2 {
		t.Errorf("%d hosts are known", n)
	}
	out := b.refl.Join(devID(2), t0)
	if n, ok := out[0].Msg.(*Notification); !ok || n.Code != CodeLimit {
		t.Errorf("a third client got %v", out)
	}
	if _, err := b.refl.Receive(devID(2), u, t0); err == nil {
		t.Error("an Update without a session was taken")
	}
}

func TestZoneLimits(t *testing.T) {
	cfg := ReflectorConfig{MaxZones: 2, MaxMemberships: 3}
	b := newBench(t, threeZones, cfg, 0)
	for name, z := range map[string]zone.Zone{
		"zones":       {Name: "third"},
		"memberships": {Name: "c", Members: []zone.Member{addrMember(hostIP(3)), addrMember(hostIP(4))}},
	} {
		_, err := b.refl.PutZone(z, t0)
		var limit *LimitError
		if !errors.As(err, &limit) || limit.What != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.refl.SetZones(zone.Set{Zones: []zone.Zone{{Name: "a"}, {Name: "b"}, {Name: "c"}}}, t0); !errors.Is(err, zone.ErrTooManyZones) {
		t.Errorf("%v", err)
	}
	if got := len(b.refl.Zones().Zones); got != 2 {
		t.Errorf("%d zones after refusals", got)
	}
}

// After a restart nobody is told End-of-Sync, which sweeps, before every known
// device is back, or the grace time is over.
func TestEndOfSyncWaitsForKnownDevices(t *testing.T) {
	cfg := ReflectorConfig{Grace: time.Minute, Known: []netip.Addr{devID(0), devID(1)}}
	t.Run("all back", func(t *testing.T) {
		b := newBench(t, threeZones, cfg, 3)
		mustJoin(t, b, 0, 2)
		if b.clients[devID(0)].Synced() || b.clients[devID(2)].Synced() {
			t.Fatal("told before device 1 is back")
		}
		mustJoin(t, b, 1)
		for d, c := range b.clients {
			if !c.Synced() {
				t.Errorf("%v is not told", d)
			}
		}
		if !b.refl.Next().IsZero() {
			t.Errorf("next is %v", b.refl.Next())
		}
	})
	t.Run("one stays away", func(t *testing.T) {
		b := newBench(t, threeZones, cfg, 3)
		mustJoin(t, b, 0, 2)
		if next := b.refl.Next(); !next.Equal(t0.Add(time.Minute)) {
			t.Fatalf("next is %v", next)
		}
		b.now = t0.Add(time.Minute)
		b.toClients(b.refl.Tick(b.now))
		if !b.clients[devID(0)].Synced() || !b.clients[devID(2)].Synced() {
			t.Error("not told after the grace time")
		}
		if got := b.refl.KnownDevices(); len(got) != 2 {
			t.Errorf("known are %v", got)
		}
	})
}

// Two reflectors: a record goes when the last one with a session takes it back,
// and losing one takes nothing.
func TestClientOfTwoReflectors(t *testing.T) {
	other := netip.MustParseAddr("192.0.2.251")
	c := NewClient(devID(0), 1)
	h := HostRecord{Op: Put, Host: hostAt(hostIP(1), devID(1), "p")}
	own := HostRecord{Op: Put, Host: hostAt(hostIP(0), devID(0), "p")}
	gone := HostRecord{Op: Withdraw, Host: h.Host, Why: snsd.ReasonIPChanged}
	say := func(from netip.Addr, m Message) Applied {
		t.Helper()
		a, err := c.Receive(from, m, t0)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	update := func(hs ...HostRecord) *Update { return &Update{Origin: devID(1), Hosts: hs} }
	c.Up(reflID, t0)
	c.Up(other, t0)
	if a := say(reflID, update(h, own)); len(a.Hosts) != 1 {
		t.Errorf("first word: %+v", a)
	}
	if a := say(other, update(h)); !a.Empty() {
		t.Errorf("the same from the other: %+v", a)
	}
	if a := say(reflID, update(gone)); !a.Empty() {
		t.Errorf("taken back by one: %+v", a)
	}
	c.Down(reflID, t0)
	c.Down(other, t0)
	c.Up(other, t0)
	say(other, update(h))
	if a := say(other, &EndOfSync{}); !a.Empty() || !a.Synced || !c.Synced() {
		t.Errorf("repeated in the sync: %+v", a)
	}
	if a := say(other, update(gone)); len(a.Hosts) != 1 || a.Hosts[0].Why != snsd.ReasonIPChanged {
		t.Errorf("taken back by both: %+v", a)
	}
	if _, err := c.Receive(reflID, update(h), t0); err == nil {
		t.Error("a reflector without a session was heard")
	}
	if n := c.Counters(); n.OwnIgnored != 1 || n.UnknownPeer != 1 {
		t.Errorf("%+v", n)
	}
}

// What changes several times before a Flush leaves once, as its latest state.
func TestFlushSendsTheLatestState(t *testing.T) {
	c := NewClient(devID(0), 1)
	c.Up(reflID, t0)
	h := hostAt(hostIP(0), devID(0), "p")
	c.PutHost(h)
	c.WithdrawHost(h.HostKey, snsd.ReasonAgedOut)
	c.PutHost(h)
	c.MarkFault(t0.Add(time.Second))
	c.MarkFault(t0)
	ds := c.Flush(t0.Add(time.Minute))
	if len(ds) != 1 {
		t.Fatalf("%d messages", len(ds))
	}
	u := ds[0].Msg.(*Update)
	if len(u.Hosts) != 1 || u.Hosts[0].Op != Put || !u.FaultAt.Equal(t0) || u.Seq != 1 {
		t.Errorf("%+v", u)
	}
	c.PutHost(h)
	if ds := c.Flush(t0); ds != nil {
		t.Errorf("the same host again: %v", ds)
	}
}
