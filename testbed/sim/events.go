package sim

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/internal/api"
)

// This file takes what a device tells its operators: complaints, and that it gives up a host.
// That it gives one up is believed where the truth bears it out.

// Event implements core.Actions.
func (d *device) Event(e api.Event) {
	if d == d.w.bad.rogue {
		return // of the bad host nothing is known to be true
	}
	switch e.Kind {
	case "conflict":
		d.lostTo(e.Addr)
		if e.Fields["change"] == "moved" {
			d.tookBack(&e)
		}
	case "host":
		if e.Fields["change"] == "not-registered" {
			d.neverRegistered(&e)
		}
	case "error":
		d.complains(&e)
	}
}

func (d *device) complains(e *api.Event) {
	d.w.tracef("%s event %s", d.name, e.Text)
	if e.Device == hostileID.String() || d.w.bad.rogue != nil && e.Device == rogueID.String() {
		d.w.named++
		return
	}
	if room := e.Fields["room"]; room == "peer" || room == "lldp" {
		d.w.failf("%s complains: %s", d.name, e.Text)
	}
}

// lostTo notes that a device takes another host for the holder of the address of one of
// its own: it tells that one nothing, and everything once more when it has the address again,
// since the same machine may have been told things by others meanwhile.
func (d *device) lostTo(addr string) {
	a, err := netip.ParseAddr(addr)
	if err != nil || d.core == nil {
		return
	}
	if h, known := d.core.Directory().Host(a); known && h.Device != d.id {
		for k, s := range d.w.wire {
			if k.dev == d.id && k.host == a {
				s.yielded = true
			}
		}
	}
}

// tookBack takes that a host did not answer for an address that another one claims: if the machine
// has left, has another address now or registers no more, its registration is over before its time to
// live is.
func (d *device) tookBack(e *api.Event) {
	i := slices.IndexFunc(d.seen, func(c claimant) bool {
		return c.link.port == e.Port && c.addr.String() == e.Addr && c.mac.String() == e.Fields["mac"]
	})
	if i < 0 {
		return
	}
	c := d.seen[i]
	if h := c.link.host; h != nil && h.mac == c.mac && slices.Contains(h.addrs, c.addr) && !h.silent {
		return // it comes back with its next registration
	}
	if !d.w.rivalled(&c) {
		return
	}
	d.w.gaveUp(&c)
	d.look(func() { d.seen = slices.Delete(d.seen, i, i+1) })
}

// rivalled reports whether some switch has heard of an address as another host's.
func (w *world) rivalled(c *claimant) bool {
	return slices.ContainsFunc(w.devices, func(d *device) bool {
		return slices.ContainsFunc(d.seen, func(o claimant) bool { return o.addr == c.addr && (o.link != c.link || o.mac != c.mac) })
	})
}

// neverRegistered takes that a host which asked for its zones was not heard to register: it is
// given up with what it was told then, as one that was registered and fell silent.
func (d *device) neverRegistered(e *api.Event) {
	a, err := netip.ParseAddr(e.Addr)
	if err != nil || d.seen.known(e.Port, a) {
		d.w.failf("%s gives up %s on port %s as never registered, which is", d.name, e.Addr, e.Port)
		return
	}
	i := slices.IndexFunc(d.ports, func(l *cable) bool { return l.port == e.Port })
	if h := d.ports[i].host; h != nil && h.mac.String() == e.Fields["mac"] {
		d.w.gaveUp(&claimant{link: d.ports[i], mac: h.mac, addr: a})
	}
}
