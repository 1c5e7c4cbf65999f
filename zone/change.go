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
