package sim

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// table is what a naive device would know of its ports: every registration that
// arrived, until its time to live is over.
type table []claimant

// claimant is one registration on one port.
type claimant struct {
	link      *link
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
	if !d.running {
		return
	}
	d.look(func() {
		*t = slices.DeleteFunc(*t, func(c claimant) bool {
			if c.expires > now {
				return false
			}
			d.w.gaveUp(&c)
			return true
		})
	})
}

// heard takes a registration.
func (t *table) heard(l *link, f *hostFrame, now time.Duration) {
	r := f.reg
	l.w.noted(*t, l, r)
	i := slices.IndexFunc(*t, func(c claimant) bool { return c.link == l && c.key == r.key })
	switch {
	case r.ttl == 0 && i >= 0:
		l.w.dropped(l.dev, (*t)[i].addr)
		*t = slices.Delete(*t, i, i+1)
	case r.ttl == 0:
	case i < 0:
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
func (w *world) noted(t table, l *link, r *registration) {
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
func (t table) present(l *link, h *host, addr netip.Addr) {
	for i := range t {
		if c := &t[i]; c.link == l && c.mac == h.mac && c.addr == addr && !c.confirmed {
			c.confirmed = true
			h.w.changed = h.w.now
		}
	}
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
	link      *link
	mac       fabric.MAC
	svc       snsd.Service
	since     time.Duration
	reachable bool
}

// truth is what is true of every address at one moment.
type truth struct {
	w      *world
	set    zone.Set
	places map[netip.Addr][]place // winner first, then the others of the same host; no rivals
	rivals map[netip.Addr]bool    // claimed by more than one host
	zones  map[netip.Addr][]string
	addrs  []netip.Addr
}

func (w *world) truth() *truth {
	t := &truth{w: w, set: w.inForce(), places: map[netip.Addr][]place{}, rivals: map[netip.Addr]bool{}, zones: map[netip.Addr][]string{}}
	for _, d := range w.devices {
		d.seen.expire(w.now, d)
		for _, l := range d.ports {
			t.look(d, l)
		}
	}
	for a := range t.places {
		t.addrs = append(t.addrs, a)
	}
	slices.SortFunc(t.addrs, netip.Addr.Compare)
	for _, a := range t.addrs {
		ps := t.places[a]
		slices.SortFunc(ps, func(x, y place) int {
			return cmp.Or(cmp.Compare(x.since, y.since), x.dev.id.Compare(y.dev.id), strings.Compare(x.link.port, y.link.port))
		})
		mine := slices.DeleteFunc(slices.Clone(ps), func(p place) bool { return p.mac != ps[0].mac })
		t.rivals[a] = t.rivals[a] || len(mine) < len(ps)
		t.places[a] = mine
		var nqns []string
		var ports []zone.Member
		for _, p := range mine {
			nqns = append(nqns, p.svc.NQN)
			ports = append(ports, zone.Member{Device: p.dev.id, Port: p.link.port})
		}
		t.zones[a] = w.agreed(t.set, a, nqns, ports)
	}
	return t
}

// look adds what is behind one port. Of several hosts that claim one address there
// the first one heard describes it, and anyone's voice shows that it can be reached.
func (t *truth) look(d *device, l *link) {
	best := map[netip.Addr]*claimant{}
	alive := map[netip.Addr]bool{}
	var order []netip.Addr
	for i := range d.seen {
		c := &d.seen[i]
		if c.link != l {
			continue
		}
		b := best[c.addr]
		if b == nil {
			order = append(order, c.addr)
		} else if b.mac != c.mac {
			t.rivals[c.addr] = true
		}
		if b == nil || cmp.Or(cmp.Compare(c.since, b.since), strings.Compare(c.key, b.key)) < 0 {
			best[c.addr] = c
		}
		alive[c.addr] = alive[c.addr] || c.confirmed
	}
	for _, a := range order {
		b := best[a]
		t.places[a] = append(t.places[a], place{d, l, b.mac, b.svc, b.since, l.carrier && alive[a]})
	}
}

// subscriber gives the place at which h's address is told things, nil if it is not:
// it is not registered there, or another host holds the address.
func (t *truth) subscriber(h *host, addr netip.Addr) *place {
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

// active tells whether a host with this address must know the other one as active,
// and with which service.
func (t *truth) active(h *host, addr, subject netip.Addr) (snsd.Service, bool) {
	ps := t.places[subject]
	if len(ps) == 0 || addr == subject || addr.Is4() != subject.Is4() || ps[0].mac == h.mac || !t.share(addr, subject) ||
		!t.places[addr][0].svc.Role.Meets(ps[0].svc.Role) {
		return snsd.Service{}, false
	}
	return ps[0].svc, slices.ContainsFunc(ps, func(p place) bool { return p.reachable })
}

func (t *truth) share(a, b netip.Addr) bool {
	return slices.ContainsFunc(t.zones[a], func(z string) bool { return slices.Contains(t.zones[b], z) })
}
