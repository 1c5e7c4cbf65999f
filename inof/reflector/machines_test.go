package reflector

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
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

// testbench is a reflector and clients in one place; messages are values and arrive at once.
type testbench struct {
	t       inoftest.Failer
	now     time.Time
	refl    *Reflector
	clients map[netip.Addr]*client.Client
	joined  map[netip.Addr]bool
	applied map[netip.Addr][]client.Applied
	held    map[netip.Addr]*held
	said    map[netip.Addr]*said
	wire    bool // pass every message through the codec
}

func newBench(t inoftest.Failer, set zone.Set, cfg Config, n int) *testbench {
	t.Helper()
	b := &testbench{t: t, now: inoftest.T0, clients: map[netip.Addr]*client.Client{}, joined: map[netip.Addr]bool{}, applied: map[netip.Addr][]client.Applied{}, held: map[netip.Addr]*held{}, said: map[netip.Addr]*said{}, wire: true}
	var err error
	if b.refl, err = New(inoftest.ReflID, 1, set, cfg, b.now); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		b.newClient(inoftest.DevID(i), 7)
	}
	return b
}

func (b *testbench) newClient(dev netip.Addr, epoch uint64) {
	b.clients[dev], b.held[dev] = client.New(dev, epoch), newHeld()
}

func (b *testbench) through(m wire.Message) wire.Message {
	if !b.wire {
		return m
	}
	return inoftest.Through(b.t, m)
}

// said is what a client was sent in a full sync.
type said struct {
	hosts  map[zone.HostKey]zone.Host
	staged map[string][]zone.Member // zones of which more follow
}

func (b *testbench) hear(dev netip.Addr, u *wire.Update) {
	x := b.said[dev]
	if x == nil || u.Anew {
		x = &said{map[zone.HostKey]zone.Host{}, map[string][]zone.Member{}}
		b.said[dev] = x
	}
	for _, z := range u.Zones {
		if z.Op == wire.Put {
			x.staged[z.Zone.Name] = z.Zone.Members
		} else {
			delete(x.staged, z.Zone.Name)
		}
	}
	if !u.More {
		clear(x.staged)
	}
	for _, h := range u.Hosts {
		if h.Op == wire.Put {
			x.hosts[h.Host.HostKey] = h.Host
		} else {
			delete(x.hosts, h.Host.HostKey)
		}
	}
	for i := range u.Downs {
		for _, addr := range u.Downs[i].Addrs {
			k := u.Downs[i].Key(addr)
			if h, there := x.hosts[k]; there {
				h.Down = u.Downs[i].Down
				x.hosts[k] = h
			}
		}
	}
}

func (b *testbench) toClients(ds []wire.Delivery) {
	b.t.Helper()
	for _, d := range ds {
		for _, to := range d.To {
			if !b.joined[to] {
				b.t.Fatalf("%v for %v, which has no session", d.Msg.Type(), to)
			}
			m := b.through(d.Msg)
			if u, ok := m.(*wire.Update); ok {
				b.hear(to, u)
			}
			a, err := b.clients[to].Receive(inoftest.ReflID, m, b.now)
			if err != nil {
				b.t.Fatal(err)
			}
			b.held[to].apply(b.t, to, a)
			b.applied[to] = append(b.applied[to], a)
		}
	}
}

func (b *testbench) toReflector(dev netip.Addr, ds []wire.Delivery) {
	b.t.Helper()
	for _, d := range ds {
		out, err := b.refl.Receive(dev, b.through(d.Msg), b.now)
		if err != nil {
			b.t.Fatal(err)
		}
		b.toClients(out)
	}
}

func (b *testbench) join(dev netip.Addr) {
	b.t.Helper()
	if b.joined[dev] {
		return
	}
	b.joined[dev], b.said[dev] = true, nil
	up := b.clients[dev].Up(inoftest.ReflID, b.now)
	b.toClients(b.refl.Join(dev, b.now))
	b.toReflector(dev, up)
}

func (b *testbench) leave(dev netip.Addr) {
	b.t.Helper()
	if !b.joined[dev] {
		return
	}
	b.joined[dev] = false
	b.held[dev].apply(b.t, dev, b.clients[dev].Down(inoftest.ReflID, b.now))
	b.toClients(b.refl.Leave(dev, b.now))
}

func (b *testbench) flush(dev netip.Addr) {
	b.t.Helper()
	b.toReflector(dev, b.clients[dev].Flush(b.now))
}

// pull gives what waits to the devices that are ready, nil: to all.
func (b *testbench) pull(ready func(netip.Addr) bool) {
	b.t.Helper()
	b.toClients(b.refl.Pull(ready, b.now))
	if b.refl.Owing() {
		b.toClients(b.refl.Step(ready, b.now))
	}
}

// finish pulls all there is.
func (b *testbench) finish() {
	b.t.Helper()
	for b.refl.Drained(); b.refl.Waiting() || b.refl.Owing(); {
		b.pull(nil)
	}
	for dev := range b.joined {
		if d := b.refl.devices[dev]; b.joined[dev] && d.synced && !d.told && len(b.refl.awaited) == 0 {
			b.t.Fatalf("device %v has not been told the end of its sync", dev)
		}
	}
}

// checkPrefix compares what clients hold of a full sync under way with the truth: what
// they were sent in this session is as it is now, and no host is there without its fault.
func (b *testbench) checkPrefix() {
	b.t.Helper()
	for _, d := range b.refl.owing {
		x := b.said[d.id]
		if d.owed == nil || !d.owed.full || x == nil {
			continue
		}
		if b.refl.Waiting() || len(d.owed.keys) > 0 {
			continue // its next step tells
		}
		for k, h := range x.hosts {
			was := b.refl.interest.at(k.Addr)
			j, there := findAtt(was.atts, k)
			if !there || !was.atts[j].Same(&h) {
				b.t.Fatalf("device %v holds %+v amid its sync, the truth is %+v", d.id, h, was.atts)
			}
		}
		for name, members := range x.staged {
			if z, there := b.refl.interest.zones[name]; !there || !slices.Equal(z.members.Unpack(), members) {
				b.t.Fatalf("device %v holds zone %s amid its sync as %v, the truth is %v", d.id, name, members, z)
			}
		}
	}
}

// check compares what each told client knows with the truth computed anew.
func (b *testbench) check() {
	b.t.Helper()
	dir := zone.NewDirectory(inoftest.ReflID)
	dir.SetZones(b.refl.Zones())
	var all []zone.Host
	for _, addr := range slices.SortedFunc(maps.Keys(b.refl.interest.addrs), netip.Addr.Compare) {
		for _, h := range b.refl.interest.at(addr).atts {
			dir.PutHost(h)
			all = append(all, h)
		}
	}
	for dev, c := range b.clients {
		d := b.refl.devices[dev]
		if !b.joined[dev] || !d.told || b.refl.Waiting() || d.owed != nil || d.handing != nil {
			continue
		}
		if len(d.hosts) != len(c.Hosts()) {
			b.t.Fatalf("device %v has %d hosts, the reflector knows %d", dev, len(c.Hosts()), len(d.hosts))
		}
		_, everything := b.refl.interest.all[dev]
		concerned, own := map[string]bool{}, map[netip.Addr]bool{}
		for _, h := range all {
			if h.Device == dev {
				own[h.Addr] = true
				for _, z := range dir.ZonesOf(h.Addr) {
					concerned[z] = true
				}
			}
		}
		zones := map[string][]zone.Member{}
		for _, z := range b.refl.Zones().Zones {
			for _, m := range z.Members {
				if m.Device == dev {
					concerned[z.Name] = true
				}
			}
			zones[z.Name] = z.Members
		}
		hosts := map[zone.HostKey]zone.Host{}
		for _, h := range all {
			if h.Device == dev || !own[h.Addr] && !slices.ContainsFunc(dir.ZonesOf(h.Addr), func(z string) bool { return everything || concerned[z] }) {
				continue
			}
			hosts[h.HostKey] = h
		}
		got := b.held[dev]
		if diff := cmp.Diff(zones, got.zones, inoftest.CmpOpts); diff != "" {
			b.t.Fatalf("zones at %v (-want +got):\n%s", dev, diff)
		}
		if diff := cmp.Diff(hosts, got.hosts, inoftest.CmpOpts); diff != "" {
			b.t.Fatalf("hosts at %v (-want +got):\n%s", dev, diff)
		}
		if s := got.settings; s == nil || *s != *b.refl.settings() {
			b.t.Fatalf("settings at %v: %+v", dev, s)
		}
	}
}

func drawMember(t *rapid.T, devs, hosts int) zone.Member {
	nqn := func() string {
		return "nqn.2026-01.org.example:" + inoftest.HostIP(rapid.IntRange(0, hosts-1).Draw(t, "nqn")).String()
	}
	port := func() string { return fmt.Sprintf("p%d", rapid.IntRange(0, 1).Draw(t, "port")) }
	switch rapid.IntRange(0, 4).Draw(t, "member kind") {
	case 0:
		a, b := rapid.IntRange(0, hosts-1).Draw(t, "first"), rapid.IntRange(0, hosts-1).Draw(t, "last")
		return zone.Member{Kind: zone.MemberRange, First: inoftest.HostIP(min(a, b)), Last: inoftest.HostIP(max(a, b))}.Canonical()
	case 1:
		return zone.Member{Kind: zone.MemberNQN, NQN: nqn()}
	case 2:
		return zone.Member{Kind: zone.MemberPort, Device: inoftest.DevID(rapid.IntRange(0, devs-1).Draw(t, "device")), Port: port()}
	case 3:
		return zone.Member{Kind: zone.MemberBound, NQN: nqn(), Device: inoftest.DevID(rapid.IntRange(0, devs-1).Draw(t, "device")), Port: rapid.SampledFrom([]string{"", port()}).Draw(t, "place")}
	}
	return inoftest.AddrMember(inoftest.HostIP(rapid.IntRange(0, hosts-1).Draw(t, "addr")))
}

// Whatever happens, each client ends up with exactly what concerns it.
func TestClientsHoldWhatConcernsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const devs, hosts = 4, 6
		cfg := Config{Grace: time.Minute, SyncStep: rapid.IntRange(0, 2).Draw(t, "step"), Paced: rapid.Bool().Draw(t, "paced")}
		b := newBench(t, zone.Set{AutoJoin: rapid.Bool().Draw(t, "auto-join")}, cfg, devs)
		everything := rapid.Bool().Draw(t, "one asks for everything")
		b.refl.SetInterest(inoftest.DevID(0), everything)
		step := func(t *rapid.T) {
			slow := rapid.SliceOfN(rapid.Bool(), devs, devs).Draw(t, "slow")
			b.refl.Drained()
			b.pull(func(dev netip.Addr) bool { return !slow[dev.As4()[3]-1] })
		}
		dev := rapid.Custom(func(t *rapid.T) netip.Addr { return inoftest.DevID(rapid.IntRange(0, devs-1).Draw(t, "device")) })
		port := rapid.SampledFrom([]string{"p0", "p1"})
		key := func(t *rapid.T) zone.HostKey {
			return zone.HostKey{Addr: inoftest.HostIP(rapid.IntRange(0, hosts-1).Draw(t, "host")), Device: dev.Draw(t, "at"), Port: port.Draw(t, "port")}
		}
		zoneName := rapid.SampledFrom([]string{"a", "b", "c"})
		members := func(t *rapid.T) []zone.Member {
			var ms []zone.Member
			for range rapid.IntRange(0, 3).Draw(t, "members") {
				ms = append(ms, drawMember(t, devs, hosts))
			}
			return ms
		}
		put := func(t *rapid.T) {
			k := key(t)
			h := inoftest.HostAt(k.Addr, k.Device, k.Port)
			h.Since = inoftest.T0.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "since")) * time.Second)
			h.MAC[5] = byte(rapid.IntRange(1, 2).Draw(t, "mac"))
			b.clients[k.Device].PutHost(h)
			b.flush(k.Device)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":          func(*rapid.T) { b.check(); b.checkPrefix() },
			"put host":  put,
			"put host2": put,
			"withdraw host": func(t *rapid.T) {
				k := key(t)
				b.clients[k.Device].WithdrawHost(k, snsd.ReasonAgedOut)
				b.flush(k.Device)
			},
			"fault": func(t *rapid.T) {
				k := key(t)
				setDown(b.clients[k.Device], k.Port, zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0}, k.Addr, inoftest.HostIP(0))
				b.flush(k.Device)
			},
			"clear": func(t *rapid.T) {
				d := dev.Draw(t, "at")
				setDown(b.clients[d], port.Draw(t, "port"), zone.Down{})
				b.flush(d)
			},
			"put zone": func(t *rapid.T) {
				out, err := b.refl.PutZone(zone.Zone{Name: zoneName.Draw(t, "zone"), Members: members(t)}, b.now)
				if err != nil {
					t.Fatal(err)
				}
				b.toClients(out)
			},
			"delete zone": func(t *rapid.T) { b.toClients(b.refl.DeleteZone(zoneName.Draw(t, "zone"), b.now)) },
			"set zones": func(t *rapid.T) {
				s := zone.Set{AutoJoin: rapid.Bool().Draw(t, "auto-join"), Hard: rapid.Bool().Draw(t, "hard")}
				for _, n := range []string{"a", "b", "c"} {
					if rapid.Bool().Draw(t, "zone "+n) {
						s.Zones = append(s.Zones, zone.Zone{Name: n, Members: members(t)})
					}
				}
				out, err := b.refl.SetZones(s, b.now)
				if err != nil {
					t.Fatal(err)
				}
				b.toClients(out)
			},
			"join":  func(t *rapid.T) { b.join(dev.Draw(t, "device")) },
			"join2": func(t *rapid.T) { b.join(dev.Draw(t, "device")) },
			"leave": func(t *rapid.T) { b.leave(dev.Draw(t, "device")) },
			"step":  step,
			"step2": step,
			"steps": func(t *rapid.T) { b.finish() },
			"restart client": func(t *rapid.T) {
				d := dev.Draw(t, "device")
				b.leave(d)
				old := b.clients[d]
				b.newClient(d, old.Epoch()+1)
				for _, h := range old.Hosts() {
					b.clients[d].PutHost(h)
				}
				b.clients[d].Flush(b.now)
			},
			"restart reflector": func(t *rapid.T) {
				for d := range b.clients {
					b.leave(d)
				}
				again := cfg
				again.Known = b.refl.KnownDevices()
				r, err := New(inoftest.ReflID, b.refl.epoch+1, b.refl.Zones(), again, b.now)
				if err != nil {
					t.Fatal(err)
				}
				b.refl = r
				b.refl.SetInterest(inoftest.DevID(0), everything)
			},
			"time": func(t *rapid.T) {
				b.now = b.now.Add(time.Duration(rapid.IntRange(1, 70).Draw(t, "seconds")) * time.Second)
				b.toClients(b.refl.Tick(b.now))
			},
		})
	})
}
