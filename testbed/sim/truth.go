package sim

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/truth"
	"github.com/openinof/inof/zone"
)

// table is what a naive device would know of its ports: every registration that
// arrived, until its time to live is over.
type table []claimant

// claimant is one registration on one port.
type claimant struct {
	link      *cable
	key       string
	mac       fabric.MAC
	addr      netip.Addr
	svc       snsd.Service
	since     time.Duration
	ttl       time.Duration
	expires   time.Duration
	confirmed bool // since the port was last down
}

func (t table) clone() table { return slices.Clone(t) }

// expire drops what was not heard in time, and notes which hosts were given up
// although they are there.
func (t *table) expire(now time.Duration, d *device) {
	over := func(c claimant) bool { return c.expires <= now }
	if !d.running || !slices.ContainsFunc(*t, over) {
		return
	}
	d.look(func() {
		*t = slices.DeleteFunc(*t, func(c claimant) bool {
			if !over(c) {
				return false
			}
			d.w.gaveUp(&c)
			return true
		})
	})
}

// heard takes a registration.
func (t *table) heard(l *cable, f *hostFrame, now time.Duration) {
	r := f.reg
	l.w.noted(*t, l, r)
	i := slices.IndexFunc(*t, func(c claimant) bool { return c.link == l && c.key == r.key })
	delete(l.parting, r.addr) // it is back in time, if it had gone
	switch {
	case r.ttl == 0 && i >= 0:
		l.part((*t)[i].addr)
		*t = slices.Delete(*t, i, i+1)
	case r.ttl == 0:
	case i < 0:
		l.w.movedTo(l.dev, r.addr) // who has the address elsewhere loses it, and is told no more
		*t = append(*t, claimant{l, r.key, r.mac, r.addr, r.svc, now, r.ttl, now + r.ttl, true})
	default:
		c := &(*t)[i]
		if c.addr != r.addr {
			l.w.dropped(l.dev, c.addr)
			c.addr, c.since = r.addr, now
		}
		c.svc, c.ttl, c.expires, c.confirmed = r.svc, r.ttl, now+r.ttl, true
	}
}

// noted marks the moment when a registration brings something new.
func (w *world) noted(t table, l *cable, r *registration) {
	if !slices.ContainsFunc(t, func(c claimant) bool {
		return c.link == l && c.key == r.key && c.addr == r.addr && c.svc == r.svc && c.confirmed && r.ttl > 0
	}) {
		w.changed = w.now
	}
}

func (t table) down(port string) {
	for i := range t {
		if t[i].link.port == port {
			t[i].confirmed = false
		}
	}
}

// present takes another sign than a registration that a host is there with an address.
func (t table) present(l *cable, h *host, addr netip.Addr) {
	for i := range t {
		if c := &t[i]; c.link == l && c.mac == h.mac && c.addr == addr && !c.confirmed {
			c.confirmed = true
			h.w.changed = h.w.now
		}
	}
}

// anothers reports whether only other machines than h have the address behind a port.
func (t table) anothers(l *cable, h *host, addr netip.Addr) (other bool) {
	for i := range t {
		if c := &t[i]; c.link == l && c.addr == addr {
			if other = c.mac != h.mac; !other {
				return false
			}
		}
	}
	return other
}

func (t table) known(port string, addr netip.Addr) bool {
	return slices.ContainsFunc(t, func(c claimant) bool { return c.link.port == port && c.addr == addr })
}

// restored is the table after a restart: nobody listened for a while, so everybody has
// the whole of its time again.
func (t table) restored(now time.Duration) table {
	out := t.clone()
	for i := range out {
		c := &out[i]
		c.expires = now + c.ttl
	}
	return out
}

// place is one attachment of an address.
type place struct {
	dev       *device
	link      *cable
	mac       fabric.MAC
	svc       snsd.Service
	since     time.Duration
	reachable bool
	here      bool // the machine is plugged in there and has the address
}

// facts are what is true of every address at one moment.
type facts struct {
	w      *world
	agreed truth.Zones
	claims map[netip.Addr][]place // all, also of hosts that have left
	places map[netip.Addr][]place // of the host that has the address
	rivals map[netip.Addr]bool    // claimed by more than one host
	zones  map[netip.Addr][]string
	addrs  []netip.Addr
}

func (w *world) truth() *facts {
	t := &facts{w: w, agreed: w.agreed(), claims: map[netip.Addr][]place{}, places: map[netip.Addr][]place{}, rivals: map[netip.Addr]bool{}, zones: map[netip.Addr][]string{}}
	for _, d := range w.devices {
		d.seen.expire(w.now, d)
		for _, l := range d.ports {
			t.look(d, l)
		}
	}
	for a := range t.claims {
		t.addrs = append(t.addrs, a)
	}
	slices.SortFunc(t.addrs, netip.Addr.Compare)
	for _, a := range t.addrs {
		holders := t.holders(a)
		t.rivals[a] = len(t.claims[a]) > len(holders[0])
		t.hold(a, holders[0])
	}
	return t
}

// hold says whose an address is.
func (t *facts) hold(a netip.Addr, places []place) {
	slices.SortStableFunc(places, func(x, y place) int {
		switch {
		case x.reachable == y.reachable:
			return cmp.Compare(x.since, y.since)
		case x.reachable:
			return -1
		}
		return 1
	})
	t.places[a] = places
	var nqns []string
	var ports []zone.Member
	for _, p := range places {
		nqns = append(nqns, p.svc.NQN)
		ports = append(ports, zone.Member{Device: p.dev.id, Port: p.link.port})
	}
	t.zones[a] = t.agreed.Of(truth.Known{Addr: a, NQNs: nqns, Ports: ports})
}

// holders gives the hosts that may have an address, each with its places. A host that is
// reachable comes before one that is not. Of several, those that are there come before those
// that have left: these are asked and do not answer. Where several are there any of them
// may have it, the first one that claimed it, but who was first nobody here knows.
func (t *facts) holders(a netip.Addr) [][]place {
	var hosts [][]place
	for _, p := range t.claims[a] {
		i := slices.IndexFunc(hosts, func(ps []place) bool { return t.w.isOne(ps[0], p.mac, p.dev.id, p.svc.NQN) })
		if i < 0 {
			hosts = append(hosts, []place{p})
		} else {
			hosts[i] = append(hosts[i], p)
		}
	}
	for _, best := range []func(place) bool{func(p place) bool { return p.reachable }, func(p place) bool { return p.reachable && p.here }} {
		if some := slices.DeleteFunc(slices.Clone(hosts), func(ps []place) bool { return !slices.ContainsFunc(ps, best) }); len(some) > 0 {
			hosts = some
		}
	}
	return hosts
}

// isOne reports whether a place and another one of the same address are of one host.
func (w *world) isOne(p place, mac fabric.MAC, dev netip.Addr, nqn string) bool {
	if w.multiPort() == zone.MultiPortFabric {
		return p.mac == mac && p.svc.NQN == nqn
	}
	return p.mac == mac && p.dev.id == dev
}

// multiPort is hosts.multi-port: the default for every other seed.
func (w *world) multiPort() zone.MultiPort {
	if w.cfg.Seed%2 == 1 {
		return zone.MultiPortFabric
	}
	return zone.MultiPortDevice
}

// asSeenBy is the truth for one device: where several hosts may have an address, whom it
// takes for the holder, or a reflector if it does not know the address, is one of them.
func (t *facts) asSeenBy(d *device) *facts {
	own := *t
	own.places, own.zones = maps.Clone(t.places), maps.Clone(t.zones)
	for _, a := range t.addrs {
		holders := t.holders(a)
		if len(holders) < 2 {
			continue
		}
		is, known := d.core.Directory().Host(a)
		for i := 0; i < len(t.w.reflectors) && !known; i++ {
			is, known = t.w.reflectors[i].holder(a)
		}
		if !known {
			continue
		}
		i := slices.IndexFunc(holders, func(ps []place) bool { return t.w.isOne(ps[0], is.MAC, is.Device, is.NQN) })
		if i < 0 && t.w.haunted(a) {
			continue // HeldBack excuses its pairs
		}
		if i < 0 {
			t.w.failf("%s takes %s on %s port %s for the holder of %s, which is %s", d.name, is.MAC, is.Device, is.HostKey.Port, a, t.describe(a))
			continue
		}
		own.hold(a, holders[i])
	}
	return &own
}

// holder is whom a reflector takes for the holder of an address.
func (d *device) holder(a netip.Addr) (h zone.Host, known bool) {
	_ = d.core.ChangeZones(func(r *reflector.Reflector) ([]wire.Delivery, error) {
		h, known = r.Directory().Host(a)
		return nil, nil
	}, d.w.time())
	return h, known
}

// look adds what is behind one port. Anyone's voice shows that an address can be reached.
func (t *facts) look(d *device, l *cable) {
	first := map[netip.Addr]map[fabric.MAC]*claimant{}
	alive := map[netip.Addr]bool{}
	var order []*claimant
	for i := range d.seen {
		c := &d.seen[i]
		if c.link != l {
			continue
		}
		if first[c.addr] == nil {
			first[c.addr] = map[fabric.MAC]*claimant{}
		}
		b := first[c.addr][c.mac]
		if b == nil {
			order = append(order, c)
		}
		if b == nil || cmp.Or(cmp.Compare(c.since, b.since), strings.Compare(c.key, b.key)) < 0 {
			first[c.addr][c.mac] = c
		}
		alive[c.addr] = alive[c.addr] || c.confirmed
	}
	for _, c := range order {
		b := first[c.addr][c.mac]
		here := l.host != nil && l.host.mac == b.mac && l.carrier && slices.Contains(l.host.addrs, b.addr)
		t.claims[b.addr] = append(t.claims[b.addr], place{d, l, b.mac, b.svc, b.since, l.carrier && alive[b.addr], here})
	}
}

// subscriber gives the place at which h's address is told things, nil if it is not:
// it is not registered there, or another host holds the address.
func (t *facts) subscriber(h *host, addr netip.Addr) *place {
	if h.link == nil || !h.on || !h.link.carrier {
		return nil
	}
	for i, p := range t.places[addr] {
		if p.link != h.link || p.mac != h.mac {
			continue
		}
		for _, c := range p.dev.seen {
			if c.link == h.link && c.addr == addr && c.mac == h.mac {
				return &t.places[addr][i]
			}
		}
	}
	return nil
}

// active reports whether a host with this address must know the other one as active,
// and with which service.
func (t *facts) active(h *host, addr, subject netip.Addr) (snsd.Service, bool) {
	ps := t.places[subject]
	if len(ps) == 0 || addr == subject || addr.Is4() != subject.Is4() || ps[0].mac == h.mac || !t.share(addr, subject) ||
		!truth.Concern(t.places[addr][0].svc.Role, ps[0].svc.Role) {
		return snsd.Service{}, false
	}
	return ps[0].svc, slices.ContainsFunc(ps, func(p place) bool { return p.reachable })
}

func (t *facts) share(a, b netip.Addr) bool { return truth.Common(t.zones[a], t.zones[b]) }
