package inof

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// A host that one reflector has moved into a zone which does not concern a device, while
// the other one still says it as one of the default zone, is in no zone of that device:
// it is told so at once, whoever is first.
func TestAHostThatOneReflectorDeniesIsInNoDefaultZone(t *testing.T) {
	for first := range 2 {
		for _, agree := range []Agreement{AgreeIdentical, AgreeUnion} {
			n := newNetwork(t, 2, 2, agree, ReflectorConfig{})
			for i := range 2 {
				n.clients[devID(i)].PutHost(hostAt(hostIP(i), devID(i), "Ethernet1"))
			}
			n.settle()
			c, k := n.clients[devID(1)], zone.HostKey{Addr: hostIP(0), Device: devID(0), Port: "Ethernet1"}
			own := zone.Set{AutoJoin: true, Zones: []zone.Zone{{Name: "own", Members: []zone.Member{{Kind: zone.MemberAddr, First: hostIP(0)}}}}}
			change := func(r netip.Addr, set zone.Set) (denied bool) {
				out, err := n.refls[r].SetZones(set, n.now)
				if err != nil {
					t.Fatal(err)
				}
				n.fromRefl(r, out)
				for l := n.link(devID(1), r); len(l.toClient) > 0; {
					m := l.toClient[0]
					l.toClient = l.toClient[1:]
					a, err := c.Receive(r, m, n.now)
					if err != nil {
						t.Fatal(err)
					}
					denied = denied || slices.Contains(a.Denied, k)
					n.apply(devID(1), a)
				}
				return denied
			}
			a, b := n.ids[first], n.ids[1-first]
			if c.Stale(k) {
				t.Fatal("the host is stale from the start")
			}
			if !change(a, own) || !c.Stale(k) {
				t.Errorf("%v, %v first: not denied", agree, a)
			}
			if change(a, zone.Set{AutoJoin: true}); c.Stale(k) {
				t.Errorf("%v, %v first: denied for ever", agree, a)
			}
			change(a, own)
			n.cut(devID(1), a)
			if !c.Stale(k) {
				t.Errorf("%v: the last word of %v does not stand", agree, a)
			}
			if change(b, own); n.hosts[devID(1)][k] != (zone.Host{}) && !c.Stale(k) {
				t.Errorf("%v: both deny the host, and it is there", agree)
			}
			n.settle()
		}
	}
}

// Where the hosts of no zone do not join the default zone, that a reflector withdraws a
// host says nothing about it.
func TestAReflectorWithoutAutoJoinDeniesNothing(t *testing.T) {
	c := NewClient(devID(1), 7)
	c.SetReflectors(2, AgreeUnion, time.Second)
	k := zone.HostKey{Addr: hostIP(0), Device: devID(0), Port: "Ethernet1"}
	a, b := netip.MustParseAddr("192.0.2.250"), netip.MustParseAddr("192.0.2.251")
	say := func(r netip.Addr, u *Update) Applied {
		u.Origin, u.Epoch = r, 3
		out, err := c.Receive(r, u, t0)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	put := HostRecord{Op: Put, Host: hostAt(k.Addr, k.Device, k.Port)}
	gone := HostRecord{Op: Withdraw, Why: snsd.ReasonZoneChanged, Host: zone.Host{HostKey: k}}
	for _, r := range []netip.Addr{a, b} {
		c.Up(r, t0)
		say(r, &Update{Seq: 1, Settings: &Settings{AutoJoin: r == b}, Hosts: []HostRecord{put}})
	}
	if got := say(a, &Update{Seq: 2, Hosts: []HostRecord{gone}}); len(got.Denied) > 0 || c.Stale(k) {
		t.Errorf("denied: %v", got.Denied)
	}
	say(a, &Update{Seq: 3, Hosts: []HostRecord{put}})
	say(a, &Update{Seq: 4, Settings: &Settings{AutoJoin: true}})
	if got := say(a, &Update{Seq: 5, Hosts: []HostRecord{gone}}); !slices.Contains(got.Denied, k) {
		t.Error("not denied")
	}
	if got := say(a, &Update{Seq: 6, Settings: &Settings{}}); !slices.Contains(got.Placed, k) || c.Stale(k) {
		t.Errorf("denied although nobody joins any more; placed %v", got.Placed)
	}
}
