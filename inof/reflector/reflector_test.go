package reflector

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

func mustJoin(t *testing.T, b *testbench, devs ...int) {
	t.Helper()
	for _, i := range devs {
		b.join(inoftest.DevID(i))
	}
}

func TestRecordsThatAreRefused(t *testing.T) {
	b := newBench(t, inoftest.ThreeZones, Config{MaxHosts: 2, MaxClients: 2}, 3)
	mustJoin(t, b, 0, 1)
	put := func(h zone.Host) wire.HostRecord { return wire.HostRecord{Op: wire.Put, Host: h} }
	multicast := inoftest.HostAt(netip.MustParseAddr("224.0.0.9"), inoftest.DevID(0), "p")
	u := &wire.Update{Origin: inoftest.DevID(0), Epoch: 1, Seq: 1,
		Settings: &wire.Settings{},
		Hosts: []wire.HostRecord{
			put(inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(1), "p")), // of another device
			put(multicast),
			put(inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p")),
			put(inoftest.HostAt(inoftest.HostIP(1), inoftest.DevID(0), "p")),
			put(inoftest.HostAt(inoftest.HostIP(2), inoftest.DevID(0), "p")), // over the limit
		},
		Downs: []wire.DownRecord{{Device: inoftest.DevID(1), Port: "p"}},
	}
	_, err := b.refl.Receive(inoftest.DevID(0), u, inoftest.T0)
	var refused *wire.RefusedError
	if !errors.As(err, &refused) || refused.Refused != 5 || !strings.Contains(err.Error(), "zone configuration") {
		t.Errorf("%v", err)
	}
	if c := b.refl.Counters(); c.NotOwned != 3 || c.OverLimit != 1 || c.BadRecords != 1 {
		t.Errorf("%+v", c)
	}
	if n := b.refl.Directory().Len(); n != 2 {
		t.Errorf("%d hosts are known", n)
	}
	out := b.refl.Join(inoftest.DevID(2), inoftest.T0)
	if n, ok := out[0].Msg.(*wire.Notification); !ok || n.Code != wire.CodeLimit {
		t.Errorf("a third client got %v", out)
	}
	if _, err := b.refl.Receive(inoftest.DevID(2), u, inoftest.T0); err == nil {
		t.Error("an Update without a session was taken")
	}
}

func TestZoneLimits(t *testing.T) {
	cfg := Config{MaxZones: 2, MaxMemberships: 3}
	b := newBench(t, inoftest.ThreeZones, cfg, 0)
	for name, z := range map[string]zone.Zone{
		"zones":       {Name: "third"},
		"memberships": {Name: "c", Members: []zone.Member{inoftest.AddrMember(inoftest.HostIP(3)), inoftest.AddrMember(inoftest.HostIP(4))}},
	} {
		_, err := b.refl.PutZone(z, inoftest.T0)
		var limit *wire.LimitError
		if !errors.As(err, &limit) || limit.What != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.refl.SetZones(zone.Set{Zones: []zone.Zone{{Name: "a"}, {Name: "b"}, {Name: "c"}}}, inoftest.T0); !errors.Is(err, zone.ErrTooManyZones) {
		t.Errorf("%v", err)
	}
	if got := len(b.refl.Zones().Zones); got != 2 {
		t.Errorf("%d zones after refusals", got)
	}
}

// After a restart nobody is told End-of-Sync, which sweeps, before every known
// device is back, or the grace time is over.
func TestEndOfSyncWaitsForKnownDevices(t *testing.T) {
	cfg := Config{Grace: time.Minute, Known: []netip.Addr{inoftest.DevID(0), inoftest.DevID(1)}}
	t.Run("all back", func(t *testing.T) {
		b := newBench(t, inoftest.ThreeZones, cfg, 3)
		mustJoin(t, b, 0, 2)
		if b.clients[inoftest.DevID(0)].Synced() || b.clients[inoftest.DevID(2)].Synced() {
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
		b := newBench(t, inoftest.ThreeZones, cfg, 3)
		mustJoin(t, b, 0, 2)
		if next := b.refl.Next(); !next.Equal(inoftest.T0.Add(time.Minute)) {
			t.Fatalf("next is %v", next)
		}
		b.now = inoftest.T0.Add(time.Minute)
		b.toClients(b.refl.Tick(b.now))
		if !b.clients[inoftest.DevID(0)].Synced() || !b.clients[inoftest.DevID(2)].Synced() {
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
	c := client.New(inoftest.DevID(0), 1)
	h := wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(1), inoftest.DevID(1), "p")}
	own := wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p")}
	gone := wire.HostRecord{Op: wire.Withdraw, Host: h.Host, Why: snsd.ReasonIPChanged}
	say := func(from netip.Addr, m wire.Message) client.Applied {
		t.Helper()
		a, err := c.Receive(from, m, inoftest.T0)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	nothing := func(a client.Applied) bool {
		return a.Settings == nil && len(a.Zones)+len(a.Reserved)+len(a.Hosts)+len(a.Downs) == 0
	}
	update := func(hs ...wire.HostRecord) *wire.Update { return &wire.Update{Origin: inoftest.DevID(1), Hosts: hs} }
	c.Up(inoftest.ReflID, inoftest.T0)
	c.Up(other, inoftest.T0)
	if a := say(inoftest.ReflID, update(h, own)); len(a.Hosts) != 1 {
		t.Errorf("first word: %+v", a)
	}
	if a := say(other, update(h)); !nothing(a) {
		t.Errorf("the same from the other: %+v", a)
	}
	if a := say(inoftest.ReflID, update(gone)); !nothing(a) {
		t.Errorf("taken back by one: %+v", a)
	}
	c.Down(inoftest.ReflID, inoftest.T0)
	c.Down(other, inoftest.T0)
	c.Up(other, inoftest.T0)
	say(other, update(h))
	if a := say(other, &wire.EndOfSync{}); !nothing(a) || !a.Synced || !c.Synced() {
		t.Errorf("repeated in the sync: %+v", a)
	}
	if a := say(other, update(gone)); len(a.Hosts) != 1 || a.Hosts[0].Why != snsd.ReasonIPChanged {
		t.Errorf("taken back by both: %+v", a)
	}
	if _, err := c.Receive(inoftest.ReflID, update(h), inoftest.T0); err == nil {
		t.Error("a reflector without a session was heard")
	}
	if n := c.Counters(); n.OwnIgnored != 1 || n.UnknownPeer != 1 {
		t.Errorf("%+v", n)
	}
}

// What changes several times before a Flush leaves once, as its latest state.
func TestFlushSendsTheLatestState(t *testing.T) {
	c := client.New(inoftest.DevID(0), 1)
	c.Up(inoftest.ReflID, inoftest.T0)
	h := inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p")
	c.PutHost(h)
	c.WithdrawHost(h.HostKey, snsd.ReasonAgedOut)
	c.PutHost(h)
	c.MarkFault(inoftest.T0.Add(time.Second))
	c.MarkFault(inoftest.T0)
	ds := c.Flush(inoftest.T0.Add(time.Minute))
	if len(ds) != 1 {
		t.Fatalf("%d messages", len(ds))
	}
	u := ds[0].Msg.(*wire.Update)
	if len(u.Hosts) != 1 || u.Hosts[0].Op != wire.Put || !u.FaultAt.Equal(inoftest.T0) || u.Seq != 1 {
		t.Errorf("%+v", u)
	}
	c.PutHost(h)
	if ds := c.Flush(inoftest.T0); ds != nil {
		t.Errorf("the same host again: %v", ds)
	}
}

// A change is passed on without a look at those who have had their End-of-Sync: of 4,096 clients that
// would take longer than the change.
func TestOnlyThoseWithoutAnEndOfSyncAreAskedForIt(t *testing.T) {
	b := newBench(t, inoftest.ThreeZones, Config{Grace: time.Minute, Known: []netip.Addr{inoftest.DevID(2)}}, 3)
	asked := func(step string, want ...int) {
		t.Helper()
		if len(b.refl.unended) != len(want) {
			t.Errorf("%s: %d devices are asked, want %d", step, len(b.refl.unended), len(want))
		}
		for _, d := range want {
			if _, is := b.refl.unended[b.refl.devices[inoftest.DevID(d)]]; !is {
				t.Errorf("%s: device %d is not asked", step, d)
			}
		}
	}
	mustJoin(t, b, 0, 1)
	asked("one is missing", 0, 1)
	b.toClients(b.refl.Leave(inoftest.DevID(1), b.now))
	asked("one has left", 0)
	mustJoin(t, b, 2)
	asked("all are back")
	if !b.clients[inoftest.DevID(0)].Synced() || !b.clients[inoftest.DevID(2)].Synced() {
		t.Error("somebody was not told")
	}
}
