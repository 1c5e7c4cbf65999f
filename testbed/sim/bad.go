package sim

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/health"
	"github.com/openinof/inof/presence"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// With Config.Hostile there is one bad client, a device that authenticates, and one bad host,
// on a port of an honest switch of its own; the reflectors bind both devices to addresses of
// their own. They strike among the honest faults. The law is that no host of another device
// notices: the judge and the truth know nothing of them, and are as strict as without. What
// they claim of their own is nobody's concern unless hosts of no zone share the default one,
// they are told nothing but that, and the reflectors name them in a warning.

var (
	rogueID   = netip.MustParseAddr("10.66.0.2")
	badPrefix = netip.MustParsePrefix("203.0.113.0/24")
)

const (
	badNQN   = "nqn.2026-11.sim:bad"
	badHosts = 50 // that each of the two devices may have
	fillings = 300
)

// bad is what is hostile in a run.
type bad struct {
	rogue  *device // the honest switch of the bad host
	agents []*snsd.Agent
	deaf   *device // reflector that the bad client is connected with and does not read
}

// bindings are what the reflectors bind devices to.
func (w *world) bindings() map[netip.Addr]wire.Binding {
	if !w.cfg.Hostile {
		return nil
	}
	b := wire.Binding{Prefixes: []netip.Prefix{badPrefix}, NQNs: []string{badNQN}, MaxHosts: badHosts}
	return map[netip.Addr]wire.Binding{hostileID: b, rogueID: b}
}

// admitBad adds the switch of the bad host.
func (w *world) admitBad() {
	if !w.cfg.Hostile {
		return
	}
	d := &device{name: "rogue", id: rogueID}
	w.add(d)
	d.ports = []*cable{{w: w, dev: d, port: "eth1", index: 1, mac: fabric.MAC{2, 0xd0, 0xff, 0xff, 0, 1}, carrier: true}}
	w.bad = bad{rogue: d}
	w.strikes = append(slices.Clone(strikes), badStrikes...)
}

var badStrikes = []fault{
	{3, (*world).claimAll},
	{2, (*world).flood},
	{2, (*world).fill},
	{2, (*world).readNothing},
	{6, (*world).spoof},
	{2, (*world).spoofMany},
	{4, (*world).spoofSNSD},
	{3, (*world).clone},
}

// asBad connects the bad client to a reflector and lets it speak; what it said stays, and its
// session ends when stay is false.
func (w *world) asBad(what string, stay bool, speak func(say func(fill func(u *wire.Update)))) {
	r := pick(w, w.reflectors)
	if !r.running || w.bad.deaf != nil {
		return
	}
	w.tracef("the bad client %s at %s", what, r.name)
	now, seq := w.time(), uint64(0)
	r.core.ClientUp(hostileID, now)
	r.core.ClientMessage(hostileID, &wire.EndOfSync{Epoch: uint64(w.now)}, now)
	speak(func(fill func(u *wire.Update)) {
		seq++
		u := &wire.Update{Origin: hostileID, Epoch: uint64(w.now), Seq: seq, FaultAt: now, SentAt: now}
		fill(u)
		r.core.ClientMessage(hostileID, u, now)
	})
	if stay {
		w.bad.deaf = r
	} else {
		r.core.ClientDown(hostileID, nil, w.time())
	}
	r.settle()
}

// claimAll claims the hosts of others as its own, since always, and tells their failure.
func (w *world) claimAll() {
	w.asBad("claims the hosts of others", false, func(say func(func(u *wire.Update))) {
		var all []netip.Addr
		for _, h := range w.hosts {
			for _, a := range h.addrs {
				all = append(all, a)
				own := zone.Host{HostKey: zone.HostKey{Addr: a, Device: hostileID, Port: "p1"}, MAC: h.mac, Service: h.svc}
				if w.chance(0.5) {
					own.MAC = fabric.MAC{2, 6, 6, 6, 6, 6}
				}
				say(func(u *wire.Update) { u.Hosts = []wire.HostRecord{{Op: wire.Put, Host: own}} })
			}
		}
		say(func(u *wire.Update) {
			u.Downs = []wire.DownRecord{{Device: hostileID, Port: "p1", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: w.time()}, Addrs: all}}
		})
		if w.chance(0.5) {
			say(func(u *wire.Update) {
				u.Downs = []wire.DownRecord{{Device: hostileID, Port: "p1", Addrs: all}}
			})
		}
		w.mustName(hostileID)
	})
}

// badAddr is one of the addresses that the two devices are bound to.
func badAddr(n int) netip.Addr {
	b := badPrefix.Addr().As4()
	b[3] = byte(n)
	return netip.AddrFrom4(b)
}

// ownService is what a host of the bad ones may say.
func ownService() snsd.Service {
	return snsd.Service{Role: snsd.RoleBoth, Protocol: snsd.ProtocolRoCE, Port: 4420, NQN: badNQN}
}

// ownHost is a host that the bad client may have.
func ownHost(n int, port string) zone.Host {
	return zone.Host{HostKey: zone.HostKey{Addr: badAddr(n), Device: hostileID, Port: port}, MAC: fabric.MAC{2, 6, 6, 6, 6, byte(n)}, Service: ownService()}
}

// flood sends many messages of hosts of its own that come, go and fail.
func (w *world) flood() {
	w.asBad("floods", false, func(say func(func(u *wire.Update))) {
		for n := range 100 + w.rng.IntN(400) {
			h := ownHost(n%20, "p2")
			say(func(u *wire.Update) {
				switch n % 3 {
				case 0:
					u.Hosts = []wire.HostRecord{{Op: wire.Put, Host: h}}
				case 1:
					u.Downs = []wire.DownRecord{{Device: hostileID, Port: "p2", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: w.time()}, Addrs: []netip.Addr{h.Addr}}}
				default:
					u.Hosts = []wire.HostRecord{{Op: wire.Withdraw, Host: zone.Host{HostKey: h.HostKey}, Why: snsd.ReasonAgedOut}}
				}
			})
		}
	})
}

// fill says more hosts than there is room for.
func (w *world) fill() {
	w.asBad("fills the table", false, func(say func(func(u *wire.Update))) {
		for n := range fillings {
			h := ownHost(n%256, fmt.Sprintf("p%d", n/256+3))
			say(func(u *wire.Update) { u.Hosts = []wire.HostRecord{{Op: wire.Put, Host: h}} })
		}
		w.mustName(hostileID)
	})
}

// readNothing connects, asks for everything and takes nothing of it, for a while.
func (w *world) readNothing() {
	w.asBad("reads nothing", true, func(func(func(u *wire.Update))) {})
	if r := w.bad.deaf; r != nil {
		life := r.life
		w.after(w.short(60*time.Second), func() {
			w.bad.deaf = nil
			if r.running && r.life == life {
				r.core.ClientDown(hostileID, nil, w.time())
				r.settle()
			}
		})
	}
}

// mustName checks that the reflector at which something was tried just now names who did.
func (w *world) mustName(id netip.Addr) {
	for _, r := range w.reflectors {
		if !r.running {
			continue
		}
		var f health.Facts
		r.core.Facts(&f, w.time())
		if slices.ContainsFunc(f.Refused, func(x health.Refused) bool { return x.Device == id && x.Outside+x.Hosts > 0 }) {
			return
		}
	}
	w.failf("no reflector names %s", id)
}

// spoof has the bad host register as other hosts: with their addresses, their names, and now
// and then their MAC; it asks for their zones, and answers for every address.
func (w *world) spoof() {
	victim := pick(w, w.hosts)
	mac := fabric.MAC{2, 6, 6, 6, 7, byte(w.rng.IntN(4))}
	if w.chance(0.5) {
		mac = victim.mac
	}
	addrs := victim.addrs
	if w.chance(0.3) { // with an address of its own, by the name of a member of zones
		addrs = []netip.Addr{badAddr(200 + w.rng.IntN(50))}
	}
	w.tracef("the bad host speaks as %s with %v", victim.name, addrs)
	w.inject(mac, addrs, victim.svc)
	w.after(time.Second, w.namesRogue)
}

// namesRogue checks that the switch of the bad host is named where a reflector has heard of
// hosts that it may not have.
func (w *world) namesRogue() {
	d := w.bad.rogue
	if !d.running {
		return
	}
	lies := len(d.core.AppendRefused(nil, netip.Addr{})) > 0
	for _, r := range w.reflectors {
		c := d.connOf(r.id)
		if lies && r.running && c != nil && !c.cut && c.takes.heard && w.now-c.dials.began > 5*time.Second && max(c.dials.last, c.takes.last)+100*time.Millisecond < w.now {
			w.mustName(rogueID)
			return
		}
	}
}

// spoofMany has it register more addresses than there is room for.
func (w *world) spoofMany() {
	w.tracef("the bad host registers a lot")
	for n := range 100 {
		w.inject(fabric.MAC{2, 6, 6, 6, 8, byte(n)}, []netip.Addr{badAddr(n)}, ownService())
	}
}

// spoofSNSD has it ack in the names of others what they were told, and tell its switch notices of
// its own, about everybody.
func (w *world) spoofSNSD() {
	w.tracef("the bad host acks and tells for others")
	for range 1 + w.rng.IntN(40) {
		host, subject := pick(w, w.hosts), pick(w, w.hosts)
		if len(host.addrs) == 0 || len(subject.addrs) == 0 {
			continue
		}
		h, s, seq := pick(w, host.addrs), pick(w, subject.addrs), uint32(w.rng.IntN(1000))
		if h == s || h.Is4() != s.Is4() { // no frame holds it
			continue
		}
		b, err := snsd.AppendAck(nil, snsd.Ack{Subject: s, Host: h, Seq: seq})
		if w.chance(0.5) {
			b, err = snsd.AppendNotify(nil, snsd.Notice{Subject: s, Host: h, State: snsd.Inactive, Reason: snsd.ReasonLinkDown, Seq: seq})
		}
		if err != nil {
			w.failf("bad host: %v", err)
			return
		}
		mac := fabric.MAC{2, 6, 6, 6, 7, byte(w.rng.IntN(4))}
		if w.chance(0.5) {
			mac = host.mac
		}
		w.fromRogue(append(fabric.AppendEthernet(nil, fabric.MACNTS, mac, fabric.EtherTypeNTS), b...))
	}
}

// inject sends what an agent with these addresses would.
func (w *world) inject(mac fabric.MAC, addrs []netip.Addr, svc snsd.Service) {
	a, err := snsd.NewAgent(snsd.AgentConfig{Interface: "eth0", MAC: mac, Addrs: addrs, Subscribes: true, Service: svc, TTL: uint16(1 + w.rng.IntN(65535))})
	if err != nil {
		w.failf("bad host: %v", err)
		return
	}
	w.bad.agents = append(w.bad.agents, a)
	for _, b := range a.LinkUp(w.time()).Frames {
		w.fromRogue(b)
	}
}

func (w *world) fromRogue(b []byte) {
	d := w.bad.rogue
	if !d.running {
		return
	}
	d.core.Frame(fabric.Frame{Port: "eth1", At: w.time(), Dst: fabric.MAC(b[0:6]), Src: fabric.MAC(b[6:12]),
		EtherType: uint16(b[12])<<8 | uint16(b[13]), Payload: slices.Clone(b[14:])}, w.time())
	d.settle()
}

// toRogue takes a frame for the bad host, which answers that it has every address.
func (w *world) toRogue(frame []byte) {
	if r := presence.Reply(frame, fabric.MAC{2, 6, 6, 6, 7, 0}, func(netip.Addr) bool { return true }); r != nil {
		w.after(w.short(time.Millisecond), func() { w.fromRogue(r) })
		return
	}
	if uint16(frame[12])<<8|uint16(frame[13]) != fabric.EtherTypeNTS {
		return
	}
	p, err := snsd.ParsePacket(frame[fabric.EthernetHeaderLen:])
	if err != nil {
		w.failf("the bad host is sent a frame that cannot be read: %v", err)
		return
	}
	for _, n := range p.Notices {
		switch {
		case n.State != snsd.Active:
		case !badPrefix.Contains(n.Host):
			w.failf("the bad host is told of %s as %s, which it is not", n.Subject, n.Host)
		case !badPrefix.Contains(n.Subject) && !w.everOpen():
			w.failf("the bad host is told of %s, which is in no zone with it", n.Subject)
		}
	}
}

// everOpen reports whether hosts of no zone ever were in the default zone.
func (w *world) everOpen() bool {
	return slices.ContainsFunc(w.zones, func(s zone.Set) bool { return s.AutoJoin })
}

// ofBad reports whether a notice is about a host that the bad ones may have: whoever is in no
// zone sees it in the default one, and nobody else does.
func (w *world) ofBad(n snsd.Notice) bool {
	if !w.cfg.Hostile || !badPrefix.Contains(n.Subject) {
		return false
	}
	if n.State == snsd.Active && !w.everOpen() {
		w.failf("%s is told of %s, which is in no zone with it", n.Host, n.Subject)
	}
	return true
}

// endBad has the bad ones leave, so that the fabric can be compared with the truth at rest.
func (w *world) endBad() {
	if !w.cfg.Hostile {
		return
	}
	w.tracef("the bad ones leave")
	for _, a := range w.bad.agents {
		for _, b := range a.Shutdown(w.time()).Frames {
			w.fromRogue(b)
		}
	}
	w.bad.agents = nil
	r := w.bad.deaf
	if w.bad.deaf = nil; r != nil && r.running {
		r.core.ClientDown(hostileID, nil, w.time())
		r.settle()
	}
}
