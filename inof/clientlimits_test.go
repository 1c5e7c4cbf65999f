package inof

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/openinof/inof/zone"
)

// A client has so many reflectors, and takes from them so much; what is known can change.
func TestAClientTakesSoMuch(t *testing.T) {
	c := NewClient(devID(0), 7)
	c.learned.most = room{hosts: 2, zones: 2, members: 3, faults: 1}
	refl := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(200 + n)}) }
	for n := range MaxReflectors {
		for _, d := range c.Up(refl(n), t0) {
			if _, bad := d.Msg.(*Notification); bad {
				t.Fatalf("reflector %d: %+v", n, d.Msg)
			}
		}
	}
	out := c.Up(refl(MaxReflectors), t0)
	if n, ok := out[0].Msg.(*Notification); !ok || n.Code != CodeLimit || c.Counters().ReflectorsRefused != 1 {
		t.Errorf("one reflector more: %+v", out)
	}
	seq := uint64(0)
	say := func(u Update) (Applied, error) {
		seq++
		u.Origin, u.Epoch, u.Seq = refl(0), 3, seq
		return c.Receive(refl(0), &u, t0)
	}
	host := func(n int) HostRecord {
		return HostRecord{Op: Put, Host: hostAt(hostIP(n), devID(1), "Ethernet1")}
	}
	fault := func(port string) FaultRecord {
		return FaultRecord{Op: Put, Device: devID(1), Port: port, Why: 1, Since: t0, Addrs: []netip.Addr{hostIP(0)}}
	}
	z := func(name string, members ...int) ZoneRecord {
		r := ZoneRecord{Op: Put, Zone: zone.Zone{Name: name}}
		for _, m := range members {
			r.Zone.Members = append(r.Zone.Members, addrMember(hostIP(m)))
		}
		return r
	}
	if _, err := say(Update{Zones: []ZoneRecord{z("a", 1, 2), z("b", 3)}, Hosts: []HostRecord{host(0), host(1)}, Faults: []FaultRecord{fault("Ethernet1")}}); err != nil {
		t.Fatal(err)
	}
	for what, u := range map[string]Update{
		"hosts":       {Hosts: []HostRecord{host(2)}},
		"zones":       {Zones: []ZoneRecord{z("c")}},
		"memberships": {Zones: []ZoneRecord{z("b", 3, 4)}},
		"faults":      {Faults: []FaultRecord{fault("Ethernet2")}},
	} {
		_, err := say(u)
		l, ok := errors.AsType[*LimitError](err)
		if !ok || l.What != what {
			t.Errorf("%s: %v", what, err)
		}
	}
	if c.Counters().OverLimit != 4 {
		t.Errorf("%d counted", c.Counters().OverLimit)
	}
	changed := host(0)
	changed.Host.Service.Port = 9
	a, err := say(Update{Zones: []ZoneRecord{z("a", 1, 5)}, Hosts: []HostRecord{changed}})
	if err != nil || len(a.Hosts) != 1 || c.learned.list[0].zones.members != 3 {
		t.Errorf("what is known cannot change: %v, %+v, %d memberships", err, a.Hosts, c.learned.list[0].zones.members)
	}
}
