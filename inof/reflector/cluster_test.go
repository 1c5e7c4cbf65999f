package reflector

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// clusterID is that of the reflectors of the tests.
const clusterID = 0xc1

// portZone is a zone that concerns a device without a host of its own.
func portZone(name string, dev netip.Addr, ports ...int) zone.Zone {
	z := zone.Zone{Name: name}
	for _, p := range ports {
		z.Members = append(z.Members, zone.Member{Kind: zone.MemberPort, Device: dev, Port: fmt.Sprintf("e%d", p)})
	}
	return z.Canonical()
}

// clustered is a network whose reflectors are members of one cluster; log is what
// the cluster has committed, from index 1.
type clustered struct {
	*network
	log []zone.Set
	at  map[netip.Addr]int // log index of each member
}

func newClustered(t inoftest.Failer, members, devices int) *clustered {
	n := &clustered{network: newNetwork(t, members, devices, client.AgreeIdentical, Config{}), log: []zone.Set{{AutoJoin: true}}, at: map[netip.Addr]int{}}
	for _, id := range n.ids {
		n.at[id] = 1
		n.refls[id].SetCluster(wire.ClusterStamp{ID: clusterID, Index: 1}, n.ids)
	}
	for _, dev := range n.devices() {
		n.clients[dev].SetReflectorAddresses(n.ids)
	}
	return n
}

// commit appends to the log; no member has it yet.
func (n *clustered) commit(s zone.Set) { n.log = append(n.log, s) }

// catchUp lets a member apply the log up to an index, entry by entry.
func (n *clustered) catchUp(id netip.Addr, index int) {
	for n.at[id] < index {
		n.at[id]++
		n.refls[id].SetCluster(wire.ClusterStamp{ID: clusterID, Index: uint64(n.at[id])}, n.ids)
		ds, err := n.refls[id].SetZones(n.log[n.at[id]-1], n.now)
		if err != nil {
			n.t.Fatal(err)
		}
		n.fromRefl(id, ds)
	}
}

// byName are the zones of a set.
func byName(s zone.Set) map[string][]zone.Member {
	out := map[string][]zone.Member{}
	for _, z := range s.Zones {
		out[z.Name] = z.Canonical().Members
	}
	return out
}

// holds checks that a client has the zones of the entry which its reflectors' tables
// reach furthest.
func (n *clustered) holds(dev netip.Addr) {
	furthest := uint64(0)
	for _, s := range n.clients[dev].Clusters() {
		furthest = max(furthest, s.Index)
	}
	if furthest == 0 || !n.clients[dev].Synced() && len(n.zones[dev]) == 0 {
		return
	}
	if d := cmp.Diff(byName(n.log[furthest-1]), n.zones[dev], inoftest.CmpOpts); d != "" {
		n.t.Fatalf("zones at %v, whose reflectors are at %v (-want +got):\n%s", dev, n.clients[dev].Clusters(), d)
	}
	if got := n.clients[dev].Differing(); len(got) > 0 {
		n.t.Fatalf("%v says that the members of one cluster differ: %v", dev, got)
	}
}

func TestMemberThatLagsCountsForNothing(t *testing.T) {
	n := newClustered(t, 3, 1)
	dev, a, b, c := inoftest.DevID(0), n.ids[0], n.ids[1], n.ids[2]
	n.join(dev, a)
	n.join(dev, b)
	n.deliverAll()
	if !n.clients[dev].Synced() {
		t.Fatal("a member that was never heard is waited for, though others speak for it")
	}
	expect := func(what string, zones ...zone.Zone) {
		t.Helper()
		n.deliverAll()
		want := byName(zone.Set{Zones: zones})
		if d := cmp.Diff(want, n.zones[dev], inoftest.CmpOpts); d != "" {
			t.Fatalf("%s (-want +got):\n%s", what, d)
		}
	}
	blue, wide, red := portZone("blue", dev, 1), portZone("blue", dev, 1, 2), portZone("red", dev, 3)
	n.commit(zone.Set{Zones: []zone.Zone{blue}, AutoJoin: true}) // 2
	n.commit(zone.Set{Zones: []zone.Zone{wide, red}})            // 3
	n.commit(zone.Set{Zones: []zone.Zone{red}})                  // 4
	n.catchUp(a, 2)
	expect("one member is ahead", blue)
	n.catchUp(a, 3)
	expect("a wider zone", wide, red)
	if s := n.settings[dev]; s == nil || s.AutoJoin {
		t.Fatalf("the switches of the one that is ahead do not count: %+v", s)
	}
	n.cut(dev, a)
	expect("the one that is ahead is silent", wide, red)
	n.cut(dev, b)
	n.join(dev, b)
	expect("the one that lags syncs anew", wide, red)
	n.join(dev, c)
	expect("another one that lags is heard for the first time", wide, red)
	n.catchUp(c, 4)
	expect("another one is ahead", red)
	n.join(dev, a)
	expect("the first is back and lags", red)
	n.catchUp(a, 4)
	n.catchUp(b, 4)
	expect("all are equal", red)
	if got := n.clients[dev].Differing(); len(got) > 0 {
		t.Fatal(got)
	}
}

// A reflector outside of the cluster is a voice of its own, and must agree.
func TestAgreementIsBetweenVoices(t *testing.T) {
	for _, agree := range []client.Agreement{client.AgreeIdentical, client.AgreeUnion} {
		n := newNetwork(t, 3, 1, agree, Config{})
		dev, lone := inoftest.DevID(0), n.ids[2]
		for _, id := range n.ids[:2] {
			n.refls[id].SetCluster(wire.ClusterStamp{ID: clusterID, Index: 1}, n.ids[:2])
		}
		n.clients[dev].SetReflectorAddresses(n.ids)
		n.join(dev, n.ids[0])
		n.deliverAll()
		if n.clients[dev].Synced() {
			t.Fatal("the reflector outside of the cluster is not waited for")
		}
		n.join(dev, lone)
		n.deliverAll()
		z := portZone("blue", dev, 1)
		put := func(id netip.Addr) {
			ds, err := n.refls[id].PutZone(z, n.now)
			if err != nil {
				t.Fatal(err)
			}
			n.fromRefl(id, ds)
			n.deliverAll()
		}
		n.refls[n.ids[0]].SetCluster(wire.ClusterStamp{ID: clusterID, Index: 2}, n.ids[:2])
		put(n.ids[0])
		if got := len(n.zones[dev]); got != int(agree) {
			t.Errorf("%v: %d zones when only the cluster says it", agree, got)
		}
		if !n.clients[dev].Differs() {
			t.Errorf("%v: nobody is told that the voices differ", agree)
		}
		put(lone)
		if got := len(n.zones[dev]); got != 1 || n.clients[dev].Differs() {
			t.Errorf("%v: %d zones when both say it", agree, got)
		}
	}
}

// Whatever is cut, delayed and coalesced, and however far each member has come: a
// client has the zones of the entry that its furthest word is of, never a mixture.
func TestClusterIsOneVoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newClustered(t, rapid.IntRange(2, 3).Draw(t, "members"), 2)
		drawDev := rapid.SampledFrom(n.devices())
		drawRefl := rapid.SampledFrom(n.ids)
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				s := zone.Set{AutoJoin: rapid.Bool().Draw(t, "auto-join")}
				for i := range 3 {
					if ports := rapid.SliceOfNDistinct(rapid.IntRange(0, 4), 0, 3, rapid.ID).Draw(t, "ports"); len(ports) > 0 {
						s.Zones = append(s.Zones, portZone(fmt.Sprint("zone", i), drawDev.Draw(t, "device"), ports...))
					}
				}
				n.commit(s)
			},
			"catch-up": func(t *rapid.T) {
				id := drawRefl.Draw(t, "reflector")
				n.catchUp(id, rapid.IntRange(n.at[id], len(n.log)).Draw(t, "index"))
			},
			"join": func(t *rapid.T) { n.join(drawDev.Draw(t, "device"), drawRefl.Draw(t, "reflector")) },
			"cut": func(t *rapid.T) {
				dev, r := drawDev.Draw(t, "device"), drawRefl.Draw(t, "reflector")
				n.cut(dev, r)
			},
			"slow": func(t *rapid.T) {
				l := n.link(drawDev.Draw(t, "device"), drawRefl.Draw(t, "reflector"))
				l.toClient = coalesced(t, l.toClient)
			},
			"deliver": func(t *rapid.T) {
				dev, r := drawDev.Draw(t, "device"), drawRefl.Draw(t, "reflector")
				for range rapid.IntRange(1, 4).Draw(t, "messages") {
					n.deliverToRefl(dev, r)
					n.deliverToClient(dev, r)
				}
			},
			"": func(*rapid.T) {
				for _, dev := range n.devices() {
					n.holds(dev)
				}
			},
		})
		n.now = n.now.Add(time.Minute)
		for id := range maps.Keys(n.at) {
			n.catchUp(id, len(n.log))
		}
		n.settle()
		for _, dev := range n.devices() {
			n.holds(dev)
		}
	})
}

// The same with hosts that come and go: when all is quiet every device has what any one member
// says, and that a member falls silent takes nothing away.
func TestClusterWithHostsSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newClustered(t, rapid.IntRange(2, 3).Draw(t, "members"), 3)
		drawDev := rapid.SampledFrom(n.devices())
		drawRefl := rapid.SampledFrom(n.ids)
		addr := func(t *rapid.T) netip.Addr { return inoftest.HostIP(rapid.IntRange(0, 4).Draw(t, "host")) }
		key := func(t *rapid.T) zone.HostKey {
			return zone.HostKey{Addr: addr(t), Port: fmt.Sprintf("p%d", rapid.IntRange(0, 1).Draw(t, "port"))}
		}
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				s := zone.Set{AutoJoin: rapid.Bool().Draw(t, "auto-join")}
				for i := range 3 {
					z := zone.Zone{Name: fmt.Sprint("zone", i)}
					for range rapid.IntRange(0, 3).Draw(t, "members") {
						z.Members = append(z.Members, zone.Member{Kind: zone.MemberAddr, First: addr(t)})
					}
					if len(z.Members) > 0 {
						s.Zones = append(s.Zones, z.Canonical())
					}
				}
				n.commit(s)
			},
			"catch-up": func(t *rapid.T) {
				id := drawRefl.Draw(t, "reflector")
				n.catchUp(id, rapid.IntRange(n.at[id], len(n.log)).Draw(t, "index"))
			},
			"host": func(t *rapid.T) {
				dev, k := drawDev.Draw(t, "device"), key(t)
				n.clients[dev].PutHost(inoftest.HostAt(k.Addr, dev, k.Port))
				n.fromClient(dev, n.clients[dev].Flush(n.now))
			},
			"gone": func(t *rapid.T) {
				dev := drawDev.Draw(t, "device")
				n.clients[dev].WithdrawHost(key(t), snsd.ReasonAgedOut)
				n.fromClient(dev, n.clients[dev].Flush(n.now))
			},
			"join": func(t *rapid.T) { n.join(drawDev.Draw(t, "device"), drawRefl.Draw(t, "reflector")) },
			"cut":  func(t *rapid.T) { n.cut(drawDev.Draw(t, "device"), drawRefl.Draw(t, "reflector")) },
			"slow": func(t *rapid.T) {
				l := n.link(drawDev.Draw(t, "device"), drawRefl.Draw(t, "reflector"))
				l.toClient = coalesced(t, l.toClient)
			},
			"deliver": func(t *rapid.T) {
				dev, r := drawDev.Draw(t, "device"), drawRefl.Draw(t, "reflector")
				for range rapid.IntRange(1, 4).Draw(t, "messages") {
					n.deliverToRefl(dev, r)
					n.deliverToClient(dev, r)
				}
			},
			"deliver all": func(*rapid.T) { n.deliverAll() },
		})
		for id := range maps.Keys(n.at) {
			n.catchUp(id, len(n.log))
		}
		n.settle()
	})
}
