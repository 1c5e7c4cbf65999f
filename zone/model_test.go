package zone

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// naive is the Directory as one would write it without any thought of size: it
// keeps what it was told and scans everything for each answer.
type naive struct {
	hosts    map[HostKey]Host
	order    map[HostKey]int // of arrival
	arrived  int
	holder   map[netip.Addr]Host   // who had the address last
	moves    map[netip.Addr]uint32 // how often it passed on
	away     map[netip.Addr]bool   // devices
	multi    MultiPort
	zones    map[string][]Member
	devFault map[netip.Addr]snsd.Reason
	autoJoin bool
}

func newNaive() *naive {
	return &naive{hosts: map[HostKey]Host{}, order: map[HostKey]int{}, holder: map[netip.Addr]Host{}, moves: map[netip.Addr]uint32{}, away: map[netip.Addr]bool{}, zones: map[string][]Member{}, devFault: map[netip.Addr]snsd.Reason{}}
}

// one reports whether two attachments of one address are one claim.
func (n *naive) one(a, b Host) bool {
	if a.Doubt != b.Doubt {
		return false
	}
	switch n.multi {
	case MultiPortNever:
		return a.MAC == b.MAC && a.Device == b.Device && a.HostKey.Port == b.HostKey.Port
	case MultiPortFabric:
		return a.MAC == b.MAC && a.NQN == b.NQN
	}
	return a.MAC == b.MAC && a.Device == b.Device
}

// byArrival are the attachments of an address in the order of their arrival.
func (n *naive) byArrival(a netip.Addr) []Host {
	var out []Host
	for k, h := range n.hosts {
		if k.Addr == a {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b Host) int { return cmp.Compare(n.order[a.HostKey], n.order[b.HostKey]) })
	return out
}

// alive reports whether some attachment of the same claim is on a port without a fault of
// a device that is there.
func (n *naive) alive(h Host, all []Host) bool {
	return slices.ContainsFunc(all, func(o Host) bool {
		return n.one(h, o) && !n.away[o.Device] && !o.Down.Is()
	})
}

// vote works out who has each address now.
func (n *naive) vote() {
	for _, a := range modelAddrs {
		all := n.byArrival(a)
		had, known := n.holder[a]
		if len(all) == 0 {
			delete(n.holder, a)
			delete(n.moves, a)
			continue
		}
		rank := func(h Host) []int {
			claim := ClaimRival
			for _, o := range all {
				if n.one(h, o) {
					claim = min(claim, o.Claim)
				}
			}
			order := map[bool][]int{true: {0, 1, 3}, false: {2, 4, 5}} // holder, open, rival
			r := []int{0, order[n.alive(h, all)][claim], 0}
			if h.Doubt {
				r[0] = 1
			}
			if !known || !n.one(h, had) {
				r[2] = 1
			}
			return r
		}
		best := slices.MinFunc(all, func(x, y Host) int { return slices.Compare(rank(x), rank(y)) })
		if i := slices.IndexFunc(all, func(h Host) bool { return h.HostKey == had.HostKey && h.MAC == had.MAC }); known && i >= 0 && n.one(best, all[i]) {
			best = all[i]
		}
		up := func(h Host) bool { return n.one(best, h) && n.alive(h, []Host{h}) }
		if i := slices.IndexFunc(all, up); i >= 0 && !up(best) {
			best = all[i]
		}
		if known && !n.one(best, had) {
			n.moves[a]++
		}
		n.holder[a] = best
	}
}

func (n *naive) attachments(a netip.Addr) []Host {
	out := n.byArrival(a)
	if i := slices.IndexFunc(out, func(h Host) bool { return h.HostKey == n.holder[a].HostKey }); i > 0 {
		h := out[i]
		out = slices.Insert(slices.Delete(out, i, i+1), 0, h)
	}
	return out
}

func (n *naive) owned(a netip.Addr) []Host {
	all := n.attachments(a)
	return slices.DeleteFunc(all, func(h Host) bool { return !n.one(h, n.holder[a]) })
}

func (n *naive) zonesOf(a netip.Addr) []string {
	var out []string
	own := n.owned(a)
	if len(own) == 0 {
		return nil
	}
	for name, ms := range n.zones {
		if slices.ContainsFunc(ms, func(m Member) bool { return slices.ContainsFunc(own, func(h Host) bool { return matches(m, h) }) }) {
			out = append(out, name)
		}
	}
	if len(out) == 0 && n.autoJoin {
		return []string{DefaultName}
	}
	slices.Sort(out)
	return out
}

func (n *naive) state(a netip.Addr) (snsd.State, snsd.Reason) {
	least := snsd.ReasonNone
	for _, h := range n.owned(a) {
		var reasons []snsd.Reason
		if h.Down.Is() {
			reasons = append(reasons, h.Down.Why)
		}
		if w := n.devFault[h.Device]; w != 0 {
			reasons = append(reasons, w)
		}
		if len(reasons) == 0 {
			return snsd.Active, 0
		}
		if w := slices.Min(reasons); least == 0 || w < least {
			least = w
		}
	}
	return snsd.Inactive, least
}

func (n *naive) share(a, b netip.Addr) bool {
	return a != b && slices.ContainsFunc(n.zonesOf(a), func(z string) bool { return slices.Contains(n.zonesOf(b), z) })
}

func (n *naive) count(dev netip.Addr, zone string) (c int) {
	for k := range n.hosts {
		if k.Device == dev && slices.Contains(n.zonesOf(k.Addr), zone) {
			c++
		}
	}
	return c
}

// view is all that others may learn about an address.
type view struct {
	Known   bool
	State   snsd.State
	Reason  snsd.Reason
	Service snsd.Service
	MAC     fabric.MAC
	Moves   uint32
	Zones   []string
}

func (n *naive) view(a netip.Addr) view {
	v := view{Zones: n.zonesOf(a), Moves: n.moves[a]}
	v.State, v.Reason = n.state(a)
	if all := n.attachments(a); len(all) > 0 {
		v.Known, v.Service, v.MAC = true, all[0].Service, all[0].MAC
	}
	return v
}

// The small world of the model tests.
var (
	modelAddrs = addrs("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "2001:db8::1", "2001:db8::2", "2001:db8::3")
	modelDevs  = addrs("192.0.2.1", "192.0.2.2", "192.0.2.3")
	modelPorts = []string{"e1", "e2", "e3"}
	modelNQNs  = []string{"", "nqn.a", "nqn.b"}
	modelZones = []string{"a", "b", "c", "d", "e"}
	modelEpoch = time.Unix(1_800_000_000, 0).UTC()
)

func addrs(s ...string) []netip.Addr {
	out := make([]netip.Addr, len(s))
	for i := range s {
		out[i] = netip.MustParseAddr(s[i])
	}
	return out
}

func drawReason(t *rapid.T) snsd.Reason { return snsd.Reason(rapid.IntRange(1, 7).Draw(t, "why")) }

func drawKey(t *rapid.T) HostKey {
	return HostKey{
		Addr:   rapid.SampledFrom(modelAddrs).Draw(t, "addr"),
		Device: rapid.SampledFrom(modelDevs).Draw(t, "device"),
		Port:   rapid.SampledFrom(modelPorts).Draw(t, "port"),
	}
}

func drawHost(t *rapid.T) Host {
	return Host{
		HostKey:    drawKey(t),
		MAC:        fabric.MAC{5: byte(rapid.IntRange(1, 3).Draw(t, "mac"))},
		Subscribes: rapid.Bool().Draw(t, "subscribes"),
		Service:    snsd.Service{Role: snsd.Role(rapid.IntRange(0, 3).Draw(t, "role")), NQN: rapid.SampledFrom(modelNQNs).Draw(t, "nqn")},
		Since:      modelEpoch.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "since")) * time.Second),
		Claim:      Claim(rapid.IntRange(0, 2).Draw(t, "claim")),
		Doubt:      rapid.IntRange(0, 3).Draw(t, "doubt") == 0,
	}
}

func drawMember(t *rapid.T) Member {
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		return Member{Kind: MemberAddr, First: rapid.SampledFrom(modelAddrs).Draw(t, "member")}
	case 1:
		i := rapid.IntRange(0, 5).Draw(t, "first")
		return Member{Kind: MemberRange, First: modelAddrs[i], Last: modelAddrs[rapid.IntRange(i, 5).Draw(t, "last")]}
	case 2:
		return Member{Kind: MemberNQN, NQN: rapid.SampledFrom(modelNQNs[1:]).Draw(t, "member")}
	case 3:
		return Member{Kind: MemberPort, Device: rapid.SampledFrom(modelDevs).Draw(t, "device"), Port: rapid.SampledFrom(modelPorts).Draw(t, "port")}
	}
	nqn := rapid.SampledFrom(modelNQNs[1:]).Draw(t, "bound")
	if rapid.Bool().Draw(t, "at a prefix") {
		a := rapid.SampledFrom(modelAddrs).Draw(t, "of")
		p, _ := a.Prefix(a.BitLen() - rapid.IntRange(0, 3).Draw(t, "bits"))
		first, last := PrefixEnds(p)
		return Member{Kind: MemberBound, NQN: nqn, First: first, Last: last}
	}
	return Member{Kind: MemberBound, NQN: nqn, Device: rapid.SampledFrom(modelDevs).Draw(t, "device"), Port: rapid.SampledFrom(append([]string{""}, modelPorts...)).Draw(t, "port")}
}

func drawMembers(t *rapid.T) []Member {
	return rapid.SliceOfN(rapid.Custom(drawMember), 0, 4).Draw(t, "members")
}

// step does one random operation on both and gives what the Directory returned.
func (n *naive) step(t *rapid.T, d *Directory) (changes Changes, gone map[netip.Addr]snsd.Reason) {
	switch rapid.SampledFrom([]string{"put", "put", "put", "remove", "fault", "device", "away", "multi", "zone", "delete", "zones", "autojoin", "again"}).Draw(t, "op") {
	case "put":
		h := drawHost(t)
		if rapid.IntRange(0, 3).Draw(t, "down") == 0 {
			h.Down.Why = drawReason(t)
		}
		if was, known := n.hosts[h.HostKey]; !known || was.MAC != h.MAC {
			n.arrived++
			n.order[h.HostKey] = n.arrived
		}
		n.hosts[h.HostKey] = h
		n.vote()
		return d.PutHost(h), nil
	case "remove":
		k, why := drawKey(t), drawReason(t)
		delete(n.hosts, k)
		n.vote()
		return d.RemoveHost(k, why), map[netip.Addr]snsd.Reason{k.Addr: why}
	case "fault":
		k, why := drawKey(t), drawReason(t)
		list := rapid.SliceOfN(rapid.SampledFrom(modelAddrs), 0, 3).Draw(t, "addrs")
		down := Down{Why: why, Since: modelEpoch.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "since")) * time.Second)}
		for _, a := range list {
			k.Addr = a
			if h, known := n.hosts[k]; known {
				h.Down = down
				n.hosts[k] = h
			}
		}
		n.vote()
		return d.SetDown(k.Device, k.Port, list, down), nil
	case "device":
		dev, why := rapid.SampledFrom(modelDevs).Draw(t, "device"), snsd.Reason(rapid.SampledFrom([]int{0, 7}).Draw(t, "why"))
		n.devFault[dev] = why
		return d.SetDeviceFault(dev, why), nil
	case "away":
		dev, away := rapid.SampledFrom(modelDevs).Draw(t, "device"), rapid.Bool().Draw(t, "away")
		n.away[dev] = away
		n.vote()
		return d.SetAway(dev, away), nil
	case "multi":
		n.multi = rapid.SampledFrom([]MultiPort{MultiPortDevice, MultiPortNever, MultiPortFabric}).Draw(t, "multi-port")
		n.vote()
		return d.SetMultiPort(n.multi), nil
	case "zone":
		z := Zone{Name: rapid.SampledFrom(modelZones).Draw(t, "zone"), Members: drawMembers(t)}
		n.zones[z.Name] = z.Members
		return d.PutZone(z), nil
	case "delete":
		name := rapid.SampledFrom(modelZones).Draw(t, "zone")
		delete(n.zones, name)
		return d.DeleteZone(name), nil
	case "zones":
		s := Set{AutoJoin: rapid.Bool().Draw(t, "autojoin")}
		n.zones, n.autoJoin = map[string][]Member{}, s.AutoJoin
		for _, name := range modelZones {
			if rapid.Bool().Draw(t, "has") {
				n.zones[name] = drawMembers(t)
				s.Zones = append(s.Zones, Zone{Name: name, Members: n.zones[name]})
			}
		}
		return d.SetZones(s), nil
	case "autojoin":
		n.autoJoin = rapid.Bool().Draw(t, "on")
		return d.SetAutoJoin(n.autoJoin), nil
	}
	// The present configuration once more, its members turned round and doubled.
	s := d.Zones()
	for i := range s.Zones {
		ms := s.Zones[i].Members
		slices.Reverse(ms)
		s.Zones[i].Members = slices.Concat(ms, ms)
	}
	slices.Reverse(s.Zones)
	return d.SetZones(s), nil
}

func TestDirectoryAgreesWithNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, n := NewDirectory(modelDevs[0]), newNaive()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			before := map[netip.Addr]view{}
			for _, a := range modelAddrs {
				before[a] = n.view(a)
			}
			changes, gone := n.step(t, d)
			checkChanges(t, n, before, changes, gone)
			checkAnswers(t, n, d)
		}
	})
}

// checkChanges wants in changes exactly the addresses that look different, each
// with its reason.
func checkChanges(t *rapid.T, n *naive, before map[netip.Addr]view, changes Changes, gone map[netip.Addr]snsd.Reason) {
	var want Changes
	for _, a := range modelAddrs { // they are sorted
		was, is := before[a], n.view(a)
		if gocmp.Equal(was, is) {
			continue
		}
		c := Change{Addr: a, Peers: is.Known && (!was.Known || !slices.Equal(was.Zones, is.Zones) || was.Service != is.Service || was.Moves != is.Moves)}
		switch {
		case !is.Known:
			c.Why = gone[a]
		case is.State == snsd.Inactive:
			c.Why = is.Reason
		case slices.ContainsFunc(was.Zones, func(z string) bool { return !slices.Contains(is.Zones, z) }):
			c.Why = snsd.ReasonZoneChanged
		}
		want = append(want, c)
	}
	if diff := gocmp.Diff(want, changes, gocmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Fatalf("changes (-want +got):\n%s", diff)
	}
}

func checkAnswers(t *rapid.T, n *naive, d *Directory) {
	for _, a := range modelAddrs {
		is := n.view(a)
		state, reason := d.State(a)
		h, known := d.Host(a)
		if got := (view{Known: known, State: state, Reason: reason, Service: h.Service, MAC: h.MAC, Moves: d.Moves(a), Zones: d.ZonesOf(a)}); !gocmp.Equal(got, is) {
			t.Fatalf("%v: directory says %+v, want %+v", a, got, is)
		}
		if got, want := d.Attachments(a), n.attachments(a); !slices.Equal(got, want) {
			t.Fatalf("%v: attachments %v, want %v", a, got, want)
		}
		var peers []netip.Addr
		for _, b := range modelAddrs {
			if d.Share(a, b) != n.share(a, b) {
				t.Fatalf("Share(%v, %v) = %v", a, b, d.Share(a, b))
			}
			if n.share(a, b) {
				peers = append(peers, b)
			}
		}
		if got := slices.Collect(d.Peers(a)); !slices.Equal(got, peers) {
			t.Fatalf("peers of %v are %v, want %v", a, got, peers)
		}
	}
	checkPartners(t, d, n)
	for _, z := range append([]string{DefaultName}, modelZones...) {
		var hosts []netip.Addr
		for _, a := range modelAddrs {
			if slices.Contains(n.zonesOf(a), z) {
				hosts = append(hosts, a)
			}
		}
		if got := d.ZoneHosts(z); !slices.Equal(got, hosts) {
			t.Fatalf("hosts of %s are %v, want %v", z, got, hosts)
		}
		for _, dev := range modelDevs {
			c := n.count(dev, z)
			if d.CountOf(dev, z) != c {
				t.Fatalf("count of %v in %s is %d, want %d", dev, z, d.CountOf(dev, z), c)
			}
		}
	}
	if got := len(slices.Collect(d.AllHosts())); got != len(n.hosts) || d.attached != got {
		t.Fatalf("%d hosts, %d attachments counted, want %d", got, d.attached, len(n.hosts))
	}
}

// checkPartners counts anew which devices share a zone with each device of the
// model: the Directory knows it of its own without counting.
func checkPartners(t *rapid.T, d *Directory, n *naive) {
	var near, all []netip.Addr
	for _, dev := range modelDevs {
		if dev == d.Self() {
			continue
		}
		if slices.ContainsFunc(append([]string{DefaultName}, modelZones...), func(z string) bool { return n.count(d.Self(), z) > 0 && n.count(dev, z) > 0 }) {
			near = append(near, dev)
		}
		if slices.ContainsFunc(slices.Collect(d.AllHosts()), func(h Host) bool { return h.Device == dev }) {
			all = append(all, dev)
		}
	}
	if got := d.Partners(false); !slices.Equal(got, near) {
		t.Fatalf("partners are %v, want %v", got, near)
	}
	if got := d.Partners(true); !slices.Equal(got, all) {
		t.Fatalf("known devices are %v, want %v", got, all)
	}
}
