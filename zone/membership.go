package zone

import (
	"cmp"
	"slices"
)

// This file puts hosts into zones and takes them out.

// rematch finds the zones of a host anew, from its address and the attachments
// of its owner.
func (d *Directory) rematch(id uint32) {
	h := &d.hosts[id]
	ids := d.matching(&d.match, d.scratch[:0], h)
	if !slices.IsSorted(ids) {
		slices.Sort(ids)
	}
	ids = slices.Compact(ids)
	d.scratch = ids
	if len(ids) == 0 && d.autoJoin && !d.barred(id) {
		ids = append(ids, defaultSlot)
	}
	d.setZones(id, ids)
}

// setZones moves a host from the zones it is in to the sorted list want.
func (d *Directory) setZones(id uint32, want []uint32) {
	if slices.Equal(d.hosts[id].zones, want) {
		return
	}
	gone, came := difference(d.hosts[id].zones, want, cmp.Compare[uint32])
	d.touchZones(id)
	h := &d.hosts[id]
	h.zones = append(make([]uint32, 0, len(want)), want...)
	for _, z := range gone {
		d.slots[z].hosts.remove(id, d.at)
	}
	for _, z := range came {
		d.slots[z].hosts.add(id, d.at)
	}
	for i := range h.atts {
		for _, z := range gone {
			d.count(z, h.atts[i].dev, -1)
		}
		for _, z := range came {
			d.count(z, h.atts[i].dev, 1)
		}
	}
}

// barred reports whether a host must stay out of the default zone although it is in
// no other.
func (d *Directory) barred(id uint32) bool {
	if len(d.reserved) == 0 {
		return false
	}
	ids := d.matching(&d.reserveMatch, d.reserveScratch[:0], &d.hosts[id])
	d.reserveScratch = ids
	return len(ids) > 0
}

// matching appends what a matcher has for an address and the attachments of its owner.
func (d *Directory) matching(m *matcher, ids []uint32, h *host) []uint32 {
	ids = m.addrs.appendTo(ids, h.addr)
	ids = m.spans.appendTo(ids, h.addr)
	for i := range h.atts {
		if !d.counts(h, i) {
			continue
		}
		a := &h.atts[i]
		ids = m.said(ids, a.service.NQN, h.addr, portKey{d.devs[a.dev].addr, a.port})
	}
	return ids
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
