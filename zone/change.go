package zone

import (
	"slices"

	"github.com/openinof/inof/snsd"
)

// touched is a host as it was before the change under way.
type touched struct {
	id      uint32
	known   bool
	state   snsd.State
	reason  snsd.Reason
	service snsd.Service
	moves   uint32   // how often it had passed to another holder
	zones   []uint32 // valid when saved: the host's zones have been written to
	saved   bool
}

// touch remembers host id as it is now, once per change.
func (d *Directory) touch(id uint32) *touched {
	h := &d.hosts[id]
	if h.tx == 0 {
		t := touched{id: id, known: len(h.atts) > 0, state: h.state, reason: h.reason, moves: h.moves}
		if t.known {
			t.service = h.atts[0].service
		}
		d.tx = append(d.tx, t)
		h.tx = uint32(len(d.tx))
	}
	return &d.tx[h.tx-1]
}

// touchZones is touch for who is about to write to the host's zones.
func (d *Directory) touchZones(id uint32) {
	if t := d.touch(id); !t.saved {
		t.zones, t.saved = slices.Clone(d.hosts[id].zones), true
	}
}

// commit ends a change: it compares every touched host with what it was, gives
// the differences, and forgets the hosts that have no attachment left, for whose
// absence gone is the reason.
func (d *Directory) commit(gone snsd.Reason) Changes {
	var out Changes
	for i := range d.tx {
		t := &d.tx[i]
		h := &d.hosts[t.id]
		h.tx = 0
		if c := t.compare(h, gone); c.Addr.IsValid() {
			out = append(out, c)
		}
		if len(h.atts) == 0 {
			d.forget(t.id)
		}
	}
	d.freeSlots = append(d.freeSlots, d.dropped...)
	d.dropped = d.dropped[:0]
	clear(d.tx)
	d.tx = d.tx[:0]
	if cap(d.tx) > 1<<12 {
		d.tx = nil
	}
	slices.SortFunc(out, func(a, b Change) int { return a.Addr.Compare(b.Addr) })
	return out
}

// compare tells in what h is visibly other than t; the zero Change: in nothing.
func (t *touched) compare(h *host, gone snsd.Reason) (c Change) {
	if len(h.atts) == 0 {
		if t.known {
			c = Change{Addr: h.addr, Why: gone}
		}
		return c
	}
	rezoned := t.saved && !slices.Equal(t.zones, h.zones)
	peers := !t.known || rezoned || t.service != h.atts[0].service || t.moves != h.moves
	if !peers && t.state == h.state && t.reason == h.reason {
		return c
	}
	c = Change{Addr: h.addr, Peers: peers}
	switch {
	case h.state == snsd.Inactive:
		c.Why = h.reason
	case rezoned && leftOne(t.zones, h.zones):
		c.Why = snsd.ReasonZoneChanged
	}
	return c
}

// leftOne reports whether before has a zone that after lacks; both are sorted.
func leftOne(before, after []uint32) bool {
	for _, z := range before {
		if _, there := slices.BinarySearch(after, z); !there {
			return true
		}
	}
	return false
}

// enter puts a host into a zone it is not in.
func (d *Directory) enter(id, zone uint32) {
	d.touchZones(id)
	h, s := &d.hosts[id], &d.slots[zone]
	i, _ := slices.BinarySearch(h.zones, zone)
	h.zones = slices.Insert(h.zones, i, zone)
	s.hosts.add(id, d.at)
	for i := range h.atts {
		d.count(zone, h.atts[i].dev, 1)
	}
}

// leave takes a host out of a zone it is in.
func (d *Directory) leave(id, zone uint32) {
	d.touchZones(id)
	h, s := &d.hosts[id], &d.slots[zone]
	if i, there := slices.BinarySearch(h.zones, zone); there {
		h.zones = slices.Delete(h.zones, i, i+1)
	}
	s.hosts.remove(id, d.at)
	for i := range h.atts {
		d.count(zone, h.atts[i].dev, -1)
	}
}

// count adds n attachments of a device to the zone, or takes them away.
func (s *slot) count(dev uint32, n int) {
	i, there := slices.BinarySearchFunc(s.devs, dev, func(c devCount, dev uint32) int { return int(c.dev) - int(dev) })
	switch {
	case !there:
		s.devs = slices.Insert(s.devs, i, devCount{dev: dev, n: uint32(n)})
	case int(s.devs[i].n)+n == 0:
		s.devs = slices.Delete(s.devs, i, i+1)
	default:
		s.devs[i].n = uint32(int(s.devs[i].n) + n)
	}
}

// settle applies the rule of the default zone: a host is in it when it is in no
// configured zone and auto-join is on.
func (d *Directory) settle(id uint32) {
	h := &d.hosts[id]
	in := len(h.zones) > 0 && h.zones[0] == defaultSlot
	want := d.autoJoin && len(h.atts) > 0 && (len(h.zones) == 0 || in && len(h.zones) == 1) && !d.barred(id)
	switch {
	case want && !in:
		d.enter(id, defaultSlot)
	case in && !want:
		d.leave(id, defaultSlot)
	}
}

// settleTouched is settle for every host of the change under way.
func (d *Directory) settleTouched() {
	for i := range d.tx {
		d.settle(d.tx[i].id)
	}
}
