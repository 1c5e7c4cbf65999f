package client

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// A client has so many reflectors, and takes from them so much; what is known can change.
func TestAClientTakesSoMuch(t *testing.T) {
	c := New(inoftest.DevID(0), 7)
	c.learned.most = room{hosts: 2, zones: 2, members: 3}
	refl := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(200 + n)}) }
	for n := range wire.MaxReflectors {
		for _, d := range c.Up(refl(n), inoftest.T0) {
			if _, bad := d.Msg.(*wire.Notification); bad {
				t.Fatalf("reflector %d: %+v", n, d.Msg)
			}
		}
	}
	out := c.Up(refl(wire.MaxReflectors), inoftest.T0)
	if n, ok := out[0].Msg.(*wire.Notification); !ok || n.Code != wire.CodeLimit || c.Counters().ReflectorsRefused != 1 {
		t.Errorf("one reflector more: %+v", out)
	}
	seq := uint64(0)
	say := func(u wire.Update) (Applied, error) {
		seq++
		u.Origin, u.Epoch, u.Seq = refl(0), 3, seq
		return c.Receive(refl(0), &u, inoftest.T0)
	}
	host := func(n int) wire.HostRecord {
		return wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(n), inoftest.DevID(1), "Ethernet1")}
	}
	z := func(name string, members ...int) wire.ZoneRecord {
		r := wire.ZoneRecord{Op: wire.Put, Zone: zone.Zone{Name: name}}
		for _, m := range members {
			r.Zone.Members = append(r.Zone.Members, inoftest.AddrMember(inoftest.HostIP(m)))
		}
		return r
	}
	if _, err := say(wire.Update{Zones: []wire.ZoneRecord{z("a", 1, 2), z("b", 3)}, Hosts: []wire.HostRecord{host(0), host(1)}}); err != nil {
		t.Fatal(err)
	}
	for what, u := range map[string]wire.Update{
		"hosts":       {Hosts: []wire.HostRecord{host(2)}},
		"zones":       {Zones: []wire.ZoneRecord{z("c")}},
		"memberships": {Zones: []wire.ZoneRecord{z("b", 3, 4)}},
	} {
		_, err := say(u)
		l, ok := errors.AsType[*wire.LimitError](err)
		if !ok || l.What != what {
			t.Errorf("%s: %v", what, err)
		}
	}
	if c.Counters().OverLimit != 3 {
		t.Errorf("%d counted", c.Counters().OverLimit)
	}
	changed := host(0)
	changed.Host.Service.Port = 9
	a, err := say(wire.Update{Zones: []wire.ZoneRecord{z("a", 1, 5)}, Hosts: []wire.HostRecord{changed}})
	if err != nil || len(a.Hosts) != 1 || c.learned.list[0].zones.members != 3 {
		t.Errorf("what is known cannot change: %v, %+v, %d memberships", err, a.Hosts, c.learned.list[0].zones.members)
	}
}

// Faults that list hosts which the reflector has not said take no room, and no host hears of them.
func TestFaultsOfUnknownHostsTakeNoRoom(t *testing.T) {
	c := New(inoftest.DevID(0), 7)
	c.Up(inoftest.ReflID, inoftest.T0)
	say := func(seq int, u wire.Update) Applied {
		u.Origin, u.Epoch, u.Seq = inoftest.ReflID, 3, uint64(seq)
		a, err := c.Receive(inoftest.ReflID, &u, inoftest.T0)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	known := inoftest.HostAt(inoftest.HostIP(1), inoftest.DevID(1), "Ethernet1")
	say(1, wire.Update{Hosts: []wire.HostRecord{{Op: wire.Put, Host: known}}})
	var list []netip.Addr
	for i := range wire.MaxDownAddrs {
		list = append(list, inoftest.ManyHost(i))
	}
	heap := inoftest.Heap()
	for i := range 400 {
		d := wire.DownRecord{Device: inoftest.DevID(1), Port: fmt.Sprintf("e%d", i), Down: zone.Down{Why: snsd.ReasonLinkDown}, Addrs: list}
		if a := say(2+i, wire.Update{Downs: []wire.DownRecord{d}}); len(a.Hosts)+len(a.Downs) > 0 {
			t.Fatalf("%+v", a)
		}
	}
	if s := &c.learned.list[0]; len(s.hosts) != 1 || len(s.ended) != 0 || inoftest.Heap() > heap+1<<20 {
		t.Errorf("%d hosts, %d ended, %d KiB of heap more", len(s.hosts), len(s.ended), (inoftest.Heap()-heap)>>10)
	}
	d := wire.DownRecord{Device: inoftest.DevID(1), Port: "Ethernet1", Down: zone.Down{Why: snsd.ReasonLinkDown}, Addrs: append(list, known.Addr)}
	if a := say(500, wire.Update{Downs: []wire.DownRecord{d}}); len(a.Downs) != 1 || len(a.Downs[0].Addrs) != 1 {
		t.Errorf("of the known one: %+v", a.Downs)
	}
}

// With two reflectors a client remembers which hosts were withdrawn, for a while and so many.
func TestWithdrawalsWithoutEndTakeNoRoom(t *testing.T) {
	c := New(inoftest.DevID(0), 7)
	c.SetReflectors(2, AgreeIdentical, 0)
	c.learned.most.hosts = 100
	c.Up(inoftest.ReflID, inoftest.T0)
	now := inoftest.T0
	say := func(n int, op wire.Op) {
		h := inoftest.HostAt(inoftest.ManyHost(n), inoftest.DevID(1), "Ethernet1")
		u := &wire.Update{Origin: inoftest.DevID(1), Epoch: 3, Seq: uint64(n + 1), Hosts: []wire.HostRecord{{Op: op, Host: h, Why: snsd.ReasonAgedOut}}}
		if _, err := c.Receive(inoftest.ReflID, u, now); err != nil {
			t.Fatal(err)
		}
	}
	remembered := func() (map[zone.HostKey]ending, int) {
		s := &c.learned.list[0]
		return s.ended, len(s.endings)
	}
	for n := range 1000 {
		now = now.Add(time.Second)
		say(n, wire.Put)
		say(n, wire.Withdraw)
	}
	last := inoftest.HostAt(inoftest.ManyHost(999), inoftest.DevID(1), "Ethernet1").HostKey
	if ended, n := remembered(); len(ended) != 100 || n != 100 || ended[last].stamp.Seq != 1000 {
		t.Errorf("%d are remembered, in a list of %d", len(ended), n)
	}
	now = now.Add(endingTime)
	say(5000, wire.Withdraw)
	if ended, n := remembered(); len(ended) != 2 || n != 2 { // the one of just now, and the last one
		t.Errorf("%d are remembered after a while, in a list of %d", len(ended), n)
	}
	say(999, wire.Put)
	say(5000, wire.Put)
	if ended, _ := remembered(); len(ended) != 0 {
		t.Errorf("%d are remembered that are there", len(ended))
	}
}
