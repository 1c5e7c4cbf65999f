package inof

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// link is one session between a client and a reflector with what is on its way.
type link struct {
	up               bool
	toClient, toRefl []Message
}

// network is some reflectors and clients; messages take their time, are lost with
// their session, and the sessions resume.
type network struct {
	t       failer
	now     time.Time
	ids     []netip.Addr
	refls   map[netip.Addr]*Reflector
	clients map[netip.Addr]*Client
	links   map[[2]netip.Addr]*link
	resumed int
	full    int
	trimmed int // sessions that began with everything because the client's log was trimmed
	ownLog  int // records that are gone in a client's log
	agree   map[netip.Addr]Agreement
	decided bool // settle lets reflectors that name different holders do so until one decides
	// what a device would hold that does all that Applied says
	zones    map[netip.Addr]map[string][]zone.Member
	hosts    map[netip.Addr]map[zone.HostKey]zone.Host
	fault    map[netip.Addr]map[portKey]FaultRecord
	settings map[netip.Addr]*Settings
}

func newNetwork(t failer, nRefl, nDev int, agree Agreement, cfg ReflectorConfig) *network {
	n := &network{t: t, now: t0, ownLog: 8192, agree: map[netip.Addr]Agreement{}, settings: map[netip.Addr]*Settings{}, refls: map[netip.Addr]*Reflector{}, clients: map[netip.Addr]*Client{}, links: map[[2]netip.Addr]*link{},
		zones: map[netip.Addr]map[string][]zone.Member{}, hosts: map[netip.Addr]map[zone.HostKey]zone.Host{}, fault: map[netip.Addr]map[portKey]FaultRecord{}}
	for i := range nRefl {
		id := netip.AddrFrom4([4]byte{192, 0, 2, byte(250 + i)})
		n.ids = append(n.ids, id)
		r, err := NewReflector(id, 2, zone.Set{AutoJoin: true}, cfg, n.now)
		if err != nil {
			t.Fatal(err)
		}
		n.refls[id] = r
	}
	for i := range nDev {
		n.newClient(devID(i), 7, agree)
		for _, r := range n.ids {
			n.links[[2]netip.Addr{devID(i), r}] = &link{}
		}
	}
	return n
}

func (n *network) newClient(dev netip.Addr, epoch uint64, agree Agreement) {
	c := NewClient(dev, epoch)
	c.SetReflectors(len(n.ids), agree, 10*time.Second)
	c.RememberGone(n.ownLog)
	n.clients[dev], n.agree[dev], n.settings[dev] = c, agree, nil
	n.zones[dev], n.hosts[dev], n.fault[dev] = map[string][]zone.Member{}, map[zone.HostKey]zone.Host{}, map[portKey]FaultRecord{}
}

func (n *network) link(dev, r netip.Addr) *link { return n.links[[2]netip.Addr{dev, r}] }

func (n *network) fromRefl(r netip.Addr, ds []Delivery) {
	for _, d := range ds {
		for _, to := range d.To {
			l := n.link(to, r)
			if !l.up {
				n.t.Fatalf("%v for %v, which has no session", d.Msg.Type(), to)
			}
			if _, bad := d.Msg.(*Notification); bad {
				n.t.Fatalf("%v gets %+v", to, d.Msg)
			}
			l.toClient = append(l.toClient, through(n.t, d.Msg))
		}
	}
}

func (n *network) fromClient(dev netip.Addr, ds []Delivery) {
	for _, d := range ds {
		for _, to := range d.To {
			l := n.link(dev, to)
			if !l.up {
				n.t.Fatalf("%v for %v, which has no session", d.Msg.Type(), to)
			}
			l.toRefl = append(l.toRefl, through(n.t, d.Msg))
		}
	}
}

func (n *network) join(dev, r netip.Addr) {
	l := n.link(dev, r)
	if l.up {
		return
	}
	l.up = true
	seen, offered := n.clients[dev].ResumePoint(r), n.refls[r].ResumePoint(dev)
	n.fromClient(dev, n.clients[dev].Resume(r, offered, n.now))
	n.fromRefl(r, n.refls[r].Resume(dev, seen, offered, n.now))
	switch _, out := n.clients[dev].Sessions(r); {
	case out.Resumed:
		n.resumed++
	case out.Why == "too much has changed since":
		n.trimmed++
	default:
		n.full++
	}
}

// restartClient gives a device a new life with the records it has.
func (n *network) restartClient(dev netip.Addr, epoch uint64, agree Agreement) {
	for _, r := range n.ids {
		n.cut(dev, r)
	}
	old := n.clients[dev]
	n.newClient(dev, epoch, agree)
	for _, h := range old.Hosts() {
		n.clients[dev].PutHost(h)
	}
	for _, f := range old.Faults() {
		n.clients[dev].PutFault(f)
	}
	n.clients[dev].Flush(n.now)
}

// cut ends a session; what is on its way is lost.
func (n *network) cut(dev, r netip.Addr) {
	l := n.link(dev, r)
	if !l.up {
		return
	}
	l.up, l.toClient, l.toRefl = false, nil, nil
	a := n.clients[dev].Down(r, n.now)
	gone := func(z ZoneRecord) bool { return z.Op == Withdraw }
	if len(a.Hosts)+len(a.Faults) > 0 || a.Settings != nil || slices.ContainsFunc(a.Zones, gone) {
		n.t.Fatalf("%v: that reflector %v is silent changes %+v", dev, r, a)
	}
	n.apply(dev, a)
	n.fromRefl(r, n.refls[r].Leave(dev, n.now))
}

func (n *network) apply(dev netip.Addr, a Applied) {
	n.t.Helper()
	h := held{n.zones[dev], n.hosts[dev], n.fault[dev], n.settings[dev]}
	h.apply(n.t, dev, a)
	n.settings[dev] = h.settings
}

// held is what a device holds that does all that Applied says.
type held struct {
	zones    map[string][]zone.Member
	hosts    map[zone.HostKey]zone.Host
	faults   map[portKey]FaultRecord
	settings *Settings
}

func newHeld() *held {
	return &held{map[string][]zone.Member{}, map[zone.HostKey]zone.Host{}, map[portKey]FaultRecord{}, nil}
}

func (x *held) apply(t failer, dev netip.Addr, a Applied) {
	t.Helper()
	if a.Settings != nil {
		x.settings = a.Settings
	}
	for _, z := range a.Zones {
		if z.Op == Put {
			x.zones[z.Zone.Name] = z.Zone.Members
		} else {
			delete(x.zones, z.Zone.Name)
		}
	}
	for _, h := range a.Hosts {
		_, had := x.hosts[h.Host.HostKey]
		if h.Op == Put {
			x.hosts[h.Host.HostKey] = h.Host
		} else if delete(x.hosts, h.Host.HostKey); !had {
			t.Fatalf("%v: a host that is not there is withdrawn: %+v", dev, h)
		}
	}
	for _, h := range a.Claims {
		if _, had := x.hosts[h.HostKey]; !had {
			t.Fatalf("%v: news of the claim of a host that is not there: %+v", dev, h)
		}
		x.hosts[h.HostKey] = h
	}
	for _, f := range a.Faults {
		if f.Op == Put {
			x.faults[portKey{f.Device, f.Port}] = f
		} else {
			delete(x.faults, portKey{f.Device, f.Port})
		}
	}
}

// coalesced makes one run of the Updates that wait, as a slow receiver's queue does.
func coalesced(t failer, ms []Message) []Message {
	var c Coalescer
	for _, m := range ms {
		c.Add(m)
	}
	var out []Message
	for _, m := range c.Take() {
		out = append(out, through(t, m))
	}
	return out
}

func (n *network) deliverToClient(dev, r netip.Addr) bool {
	l := n.link(dev, r)
	if len(l.toClient) == 0 {
		return false
	}
	m := l.toClient[0]
	l.toClient = l.toClient[1:]
	a, err := n.clients[dev].Receive(r, m, n.now)
	if err != nil {
		n.t.Fatal(err)
	}
	n.apply(dev, a)
	return true
}

func (n *network) deliverToRefl(dev, r netip.Addr) bool {
	l := n.link(dev, r)
	if len(l.toRefl) == 0 {
		return false
	}
	m := l.toRefl[0]
	l.toRefl = l.toRefl[1:]
	out, err := n.refls[r].Receive(dev, m, n.now)
	if err != nil {
		n.t.Fatal(err)
	}
	n.fromRefl(r, out)
	return true
}

// pull gives what waits to the devices that are ready, nil: to all.
func (n *network) pull(r netip.Addr, ready func(netip.Addr) bool) bool {
	x := n.refls[r]
	if ready == nil {
		x.Drained()
	}
	if !x.Waiting() && !x.Owing() {
		return false
	}
	n.fromRefl(r, x.Pull(ready, n.now))
	n.fromRefl(r, x.Step(ready, n.now))
	return true
}

func (n *network) devices() []netip.Addr {
	return slices.SortedFunc(maps.Keys(n.clients), netip.Addr.Compare)
}

func (n *network) deliverAll() {
	for again := true; again; {
		again = false
		for _, dev := range n.devices() {
			for _, r := range n.ids {
				for n.deliverToRefl(dev, r) || n.deliverToClient(dev, r) || n.pull(r, nil) {
					again = true
				}
			}
		}
	}
}

// settle brings every session up, delivers everything and compares with the truth.
func (n *network) settle() {
	for _, dev := range n.devices() {
		n.fromClient(dev, n.clients[dev].Flush(n.now))
		for _, r := range n.ids {
			n.join(dev, r)
		}
	}
	n.deliverAll()
	for _, r := range n.ids { // nobody is awaited any more
		n.fromRefl(r, n.refls[r].Tick(n.now))
	}
	n.deliverAll()
	if n.decided {
		n.now = n.now.Add(2 * time.Second)
	}
	for _, dev := range n.devices() {
		if n.decided {
			n.apply(dev, n.clients[dev].Tick(n.now))
		}
		n.check(dev)
	}
}

// view is what one reflector's tables say that a device is to hold, worked out anew.
type view struct {
	zones  map[string][]zone.Member
	hosts  map[zone.HostKey]zone.Host
	faults map[portKey]FaultRecord
}

func viewAt(r *Reflector, dev netip.Addr) view {
	v := view{map[string][]zone.Member{}, map[zone.HostKey]zone.Host{}, map[portKey]FaultRecord{}}
	for name, z := range r.interest.zones {
		v.zones[name] = z.Members
	}
	for addr, e := range r.interest.addrs {
		for _, h := range e.atts {
			if h.Device != dev && r.interest.knows(dev, addr) {
				v.hosts[h.HostKey] = h
			}
		}
	}
	for _, d := range r.devices {
		for port := range d.faults {
			if f := r.faultView(dev, portKey{d.id, port}); f != nil && d.id != dev {
				v.faults[portKey{d.id, port}] = *f
			}
		}
	}
	return v
}

func (n *network) check(dev netip.Addr) {
	n.t.Helper()
	c := n.clients[dev]
	hosts, faults, zones := map[zone.HostKey]zone.Host{}, map[portKey]FaultRecord{}, map[string][]zone.Member{}
	differ, claims := map[string]bool{}, map[zone.HostKey][]zone.Claim{}
	for i, id := range n.ids {
		r := n.refls[id]
		if len(r.devices[dev].hosts) != len(c.Hosts()) || len(r.devices[dev].faults) != len(c.Faults()) {
			n.t.Fatalf("device %v has %d hosts and %d faults, reflector %v knows %d and %d",
				dev, len(c.Hosts()), len(c.Faults()), id, len(r.devices[dev].hosts), len(r.devices[dev].faults))
		}
		for k := range r.devices[dev].hosts {
			at, _ := findAtt(r.interest.addrs[k.Addr].atts, k)
			if is := r.interest.addrs[k.Addr].atts[at]; !ptr(unclaimed(is)).Same(ptr(unclaimed(c.Hosts()[k]))) {
				n.t.Fatalf("reflector %v has an old %v", id, k)
			}
		}
		v := viewAt(r, dev)
		for k, h := range v.hosts {
			claims[k] = append(claims[k], h.Claim)
			hosts[k] = h
		}
		for k, f := range v.faults { // two views differ by the zones only
			if old, ok := faults[k]; !ok || len(f.Addrs) > len(old.Addrs) {
				faults[k] = f
			}
		}
		for name, ms := range v.zones {
			old, had := zones[name]
			switch {
			case i == 0:
				zones[name] = ms
			case !had:
				differ[name] = true
				if n.agree[dev] == AgreeUnion {
					zones[name] = ms
				}
			case !slices.Equal(old, ms):
				differ[name] = true
				if n.agree[dev] == AgreeUnion {
					zones[name] = zone.Zone{Members: slices.Concat(old, ms)}.Canonical().Members
				} else {
					zones[name] = slices.DeleteFunc(slices.Clone(old), func(m zone.Member) bool { return !slices.Contains(ms, m) })
				}
			}
		}
		if i > 0 {
			for name := range zones {
				if _, ok := v.zones[name]; !ok {
					differ[name] = true
					if n.agree[dev] == AgreeIdentical {
						delete(zones, name)
					}
				}
			}
		}
	}
	if diff := cmp.Diff(zones, n.zones[dev], cmpOpts); diff != "" {
		n.t.Fatalf("zones at %v (-want +got):\n%s", dev, diff)
	}
	for k, said := range claims { // one voice for all, or nothing is decided until it lasts
		h := hosts[k]
		switch {
		case slices.Max(said) != slices.Min(said) && n.decided:
			h.Claim = said[0]
		case slices.Max(said) != slices.Min(said), h.Claim == zone.ClaimHolder && len(said) < len(n.ids):
			h.Claim = zone.ClaimOpen
		}
		hosts[k] = h
	}
	if diff := cmp.Diff(hosts, n.hosts[dev], cmpOpts); diff != "" {
		n.t.Fatalf("hosts at %v (-want +got):\n%s", dev, diff)
	}
	if len(differ) == 0 {
		if diff := cmp.Diff(faults, n.fault[dev], cmpOpts); diff != "" {
			n.t.Fatalf("faults at %v (-want +got):\n%s", dev, diff)
		}
	}
	if got := c.Differing(); len(got) != len(differ) {
		n.t.Fatalf("%v finds differences in %v, want %v", dev, got, differ)
	}
	if !c.Synced() {
		n.t.Fatalf("%v is not synced", dev)
	}
}

func ptr[T any](v T) *T { return &v }

func unclaimed(h zone.Host) zone.Host {
	h.Claim = zone.ClaimHolder
	return h
}

// Whatever is cut, delayed, restarted or trimmed in between: in the end each client
// holds what its reflectors agree on, and no record is withdrawn that was not there.
func TestSessionsThatResume(t *testing.T) {
	resumed, trimmed, fulls := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		const devs, hosts = 3, 5
		nRefl := rapid.IntRange(1, 2).Draw(t, "reflectors")
		agree := Agreement(rapid.IntRange(0, 1).Draw(t, "agreement"))
		n := newNetwork(t, nRefl, devs, agree, ReflectorConfig{Grace: time.Minute, FeedPosts: rapid.SampledFrom([]int{2, 8, 1000}).Draw(t, "log"), SyncStep: rapid.IntRange(0, 2).Draw(t, "step"), Paced: rapid.Bool().Draw(t, "paced")})
		if rapid.Bool().Draw(t, "small client log") {
			for _, c := range n.clients {
				n.ownLog = 0
				c.RememberGone(0)
			}
		}
		n.decided = true
		epoch := uint64(1_000_000_000)
		dev := rapid.Custom(func(t *rapid.T) netip.Addr { return devID(rapid.IntRange(0, devs-1).Draw(t, "device")) })
		refl := rapid.Custom(func(t *rapid.T) netip.Addr { return n.ids[rapid.IntRange(0, nRefl-1).Draw(t, "reflector")] })
		port := rapid.SampledFrom([]string{"p0", "p1"})
		since := 0
		flush := func(d netip.Addr) { n.fromClient(d, n.clients[d].Flush(n.now)) }
		key := func(t *rapid.T) zone.HostKey {
			return zone.HostKey{Addr: hostIP(rapid.IntRange(0, hosts-1).Draw(t, "host")), Device: dev.Draw(t, "at"), Port: port.Draw(t, "port")}
		}
		put := func(t *rapid.T) {
			k := key(t)
			h := hostAt(k.Addr, k.Device, k.Port)
			if old, ok := n.clients[k.Device].Hosts()[k]; ok {
				h.Since = old.Since
				h.Service.Port = uint16(rapid.IntRange(0, 1).Draw(t, "service"))
			} else { // heard anew is known since another time
				since++
				h.Since = t0.Add(time.Duration(since) * time.Second)
			}
			n.clients[k.Device].PutHost(h)
			flush(k.Device)
		}
		setZones := func(t *rapid.T) {
			s := zone.Set{AutoJoin: rapid.Bool().Draw(t, "auto-join")}
			for _, name := range []string{"a", "b", "c"} {
				if rapid.Bool().Draw(t, "zone "+name) {
					z := zone.Zone{Name: name}
					for range rapid.IntRange(0, 3).Draw(t, "members") {
						z.Members = append(z.Members, drawMember(t, devs, hosts))
					}
					s.Zones = append(s.Zones, z)
				}
			}
			to := n.ids
			if rapid.Bool().Draw(t, "at one only") {
				to = []netip.Addr{refl.Draw(t, "at")}
			}
			for _, r := range to {
				out, err := n.refls[r].SetZones(s, n.now)
				if err != nil {
					t.Fatal(err)
				}
				n.fromRefl(r, out)
			}
		}
		some := func(t *rapid.T) {
			d, r := dev.Draw(t, "device"), refl.Draw(t, "reflector")
			for range rapid.IntRange(1, 4).Draw(t, "messages") {
				n.deliverToRefl(d, r)
				n.deliverToClient(d, r)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put":   put,
			"put2":  put,
			"some":  some,
			"some2": some,
			"all":   func(*rapid.T) { n.deliverAll() },
			"withdraw": func(t *rapid.T) {
				k := key(t)
				n.clients[k.Device].WithdrawHost(k, snsd.ReasonAgedOut)
				flush(k.Device)
			},
			"fault": func(t *rapid.T) {
				k := key(t)
				since++
				n.clients[k.Device].PutFault(FaultRecord{Port: k.Port, Why: snsd.ReasonLinkDown, Since: t0.Add(time.Duration(since) * time.Second), Addrs: []netip.Addr{k.Addr}})
				flush(k.Device)
			},
			"clear": func(t *rapid.T) {
				d := dev.Draw(t, "at")
				n.clients[d].WithdrawFault(port.Draw(t, "port"))
				flush(d)
			},
			"zones": setZones,
			"join":  func(t *rapid.T) { n.join(dev.Draw(t, "device"), refl.Draw(t, "reflector")) },
			"cut":   func(t *rapid.T) { n.cut(dev.Draw(t, "device"), refl.Draw(t, "reflector")) },
			"coalesce": func(t *rapid.T) {
				l := n.link(dev.Draw(t, "device"), refl.Draw(t, "reflector"))
				l.toClient, l.toRefl = coalesced(t, l.toClient), coalesced(t, l.toRefl)
			},
			"restart client": func(t *rapid.T) {
				epoch += 1000 // starts are never so close to each other that a raised epoch is that of another one
				n.restartClient(dev.Draw(t, "device"), epoch, agree)
			},
			"restart client with its clock set back": func(t *rapid.T) {
				d := dev.Draw(t, "device")
				epoch += 1000
				back := uint64(rapid.IntRange(1, 3).Draw(t, "back")) * 1_000_000
				for _, r := range n.ids {
					if p := n.refls[r].ResumePoint(d); p == nil || p.Epoch < n.clients[d].Epoch() || p.Epoch <= epoch/2 {
						continue
					}
					// Who knows the later start tells it so. When nobody does any more, other devices
					// that hold its later words may take the new ones for old.
					n.restartClient(d, n.clients[d].Epoch()/1_000_000*1_000_000-back+epoch%1_000_000, agree)
					n.join(d, refl.Draw(t, "first session"))
					n.join(d, r)
					return
				}
			},
			"restart reflector": func(t *rapid.T) {
				r := refl.Draw(t, "reflector")
				for _, d := range n.devices() {
					n.cut(d, r)
				}
				old := n.refls[r]
				epoch += 1000
				x, err := NewReflector(r, epoch, old.Zones(), ReflectorConfig{Grace: time.Minute, Known: old.KnownDevices(), FeedPosts: old.feed.most, SyncStep: old.cfg.SyncStep, Paced: old.cfg.Paced}, n.now)
				if err != nil {
					t.Fatal(err)
				}
				n.refls[r] = x
			},
			"time": func(t *rapid.T) {
				n.now = n.now.Add(time.Duration(rapid.IntRange(1, 70).Draw(t, "seconds")) * time.Second)
				for _, r := range n.ids {
					n.fromRefl(r, n.refls[r].Tick(n.now))
				}
				for _, d := range n.devices() {
					n.apply(d, n.clients[d].Tick(n.now))
				}
			},
			"step": func(t *rapid.T) {
				r := refl.Draw(t, "reflector")
				slow := rapid.SliceOfN(rapid.Bool(), devs, devs).Draw(t, "slow")
				n.refls[r].Drained()
				n.pull(r, func(dev netip.Addr) bool { return !slow[dev.As4()[3]-1] })
			},
			"settle": func(*rapid.T) { n.settle() },
		})
		n.settle()
		resumed, trimmed, fulls = resumed+n.resumed, trimmed+n.trimmed, fulls+n.full
	})
	t.Logf("%d sessions resumed, %d began with everything, %d more because the client's log was trimmed", resumed, fulls, trimmed)
}
