package zone

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/snsd"
)

// SetZones makes s the whole zone configuration. Only zones whose members differ
// from before are worked on, and of the hosts only those that the difference
// names. What Validate refuses is left out and counted; zones of one name become one.
func (d *Directory) SetZones(s Set) Changes {
	d.hard = s.Hard
	keep := make(map[string]bool, len(s.Zones))
	zones := s.Zones
	if hasDuplicates(zones, keep) {
		zones = s.Canonical().Zones
	}
	for name := range d.byName {
		if !keep[name] {
			d.dropZone(name)
		}
	}
	for i := range zones {
		d.putZone(&zones[i])
	}
	d.switchAutoJoin(s.AutoJoin)
	d.settleTouched()
	return d.commit(snsd.ReasonNone)
}

// hasDuplicates fills names and reports whether one came twice.
func hasDuplicates(zones []Zone, names map[string]bool) bool {
	dup := false
	for i := range zones {
		dup = dup || names[zones[i].Name]
		names[zones[i].Name] = true
	}
	return dup
}

// PutZone adds a zone or replaces its members.
func (d *Directory) PutZone(z Zone) Changes {
	d.putZone(&z)
	d.settleTouched()
	return d.commit(snsd.ReasonNone)
}

// DeleteZone removes a zone; one that does not exist is no error.
func (d *Directory) DeleteZone(name string) Changes {
	d.dropZone(name)
	d.settleTouched()
	return d.commit(snsd.ReasonNone)
}

// SetAutoJoin says whether hosts of no configured zone are in the default zone.
func (d *Directory) SetAutoJoin(on bool) Changes {
	d.switchAutoJoin(on)
	return d.commit(snsd.ReasonNone)
}

func (d *Directory) switchAutoJoin(on bool) {
	if d.autoJoin == on {
		return
	}
	d.autoJoin = on
	for id := range d.order.all() {
		if z := d.hosts[id].zones; len(z) == 0 || z[0] == defaultSlot {
			d.settle(id)
		}
	}
}

func (d *Directory) dropZone(name string) {
	z, ok := d.byName[name]
	if !ok {
		return
	}
	s := &d.slots[z]
	for _, id := range slices.Collect(s.hosts.all()) {
		d.leave(id, z)
	}
	d.match.remove(z, s.parts)
	delete(d.byName, name)
	d.slots[z] = slot{}
	d.dropped = append(d.dropped, z)
}

func (d *Directory) putZone(z *Zone) {
	if z.Name == DefaultName || CheckName(z.Name) != nil {
		if z.Name != DefaultName || len(z.Members) > 0 {
			d.counters.ZonesRejected++
		}
		return
	}
	p, bad := d.split.split(z.Members)
	d.counters.MembersRejected += bad
	id, known := d.byName[z.Name]
	if known && d.slots[id].parts.equal(p) {
		return
	}
	if !known {
		id = d.newSlot(z.Name)
	}
	s := &d.slots[id]
	gone, came := s.parts.subtract(p)
	s.parts = p.clone()
	d.match.remove(id, gone)
	d.match.add(id, came)
	d.repopulate(id, gone, came)
}

func (d *Directory) newSlot(name string) uint32 {
	var id uint32
	if n := len(d.freeSlots); n > 0 {
		id = d.freeSlots[n-1]
		d.freeSlots = d.freeSlots[:n-1]
	} else {
		id = uint32(len(d.slots))
		d.slots = append(d.slots, slot{})
	}
	d.slots[id] = slot{name: name}
	d.byName[name] = id
	return id
}

// repopulate looks again at the hosts that the changed members name: each enters
// or leaves the zone, or is held by another member.
func (d *Directory) repopulate(zone uint32, gone, came parts) {
	p := d.slots[zone].parts
	spans := cover(p.rest().spans)
	for _, id := range d.candidates(gone, came) {
		_, in := slices.BinarySearch(d.hosts[id].zones, zone)
		switch want := d.belongs(id, p, spans); {
		case want && !in:
			d.enter(id, zone)
		case in && !want:
			d.leave(id, zone)
		}
	}
}

// candidates gives every host that one of the changed members names, once.
func (d *Directory) candidates(gone, came parts) []uint32 {
	var ids []uint32
	for _, p := range [...]parts{gone, came} {
		for _, a := range p.addrs {
			if id, ok := d.byAddr[a]; ok {
				ids = append(ids, id)
			}
		}
		for _, n := range p.rest().nqns {
			ids = d.byNQN.appendTo(ids, n)
		}
		for _, k := range p.rest().ports {
			ids = d.byPort.appendTo(ids, k)
		}
		for i := range p.rest().bound {
			ids = d.byNQN.appendTo(ids, p.rest().bound[i].NQN)
		}
	}
	for _, s := range cover(gone.rest().spans, came.rest().spans) {
		for id := range d.order.from(s.first, d.at) {
			if s.last.Less(d.at(id)) {
				break
			}
			ids = append(ids, id)
		}
	}
	d.newMark()
	return slices.DeleteFunc(ids, func(id uint32) bool {
		h := &d.hosts[id]
		seen := h.mark == d.marks
		h.mark = d.marks
		return seen
	})
}

// belongs reports whether a host is in a zone with these members; spans is the
// cover of its ranges.
func (d *Directory) belongs(id uint32, p parts, spans []span) bool {
	h := &d.hosts[id]
	if _, ok := slices.BinarySearchFunc(p.addrs, h.addr, netip.Addr.Compare); ok || inCover(spans, h.addr) {
		return true
	}
	m := p.rest()
	if len(m.nqns) == 0 && len(m.ports) == 0 && len(m.bound) == 0 {
		return false
	}
	for i := range h.atts {
		if d.counts(h, i) && d.named(m, h.addr, &h.atts[i]) {
			return true
		}
	}
	return false
}

// named reports whether one of the members names an attachment by its NQN, its port, or both.
func (d *Directory) named(m *moreParts, addr netip.Addr, a *attachment) bool {
	if _, ok := slices.BinarySearch(m.nqns, a.service.NQN); ok {
		return true
	}
	dev := d.devs[a.dev].addr
	if _, ok := slices.BinarySearchFunc(m.ports, portKey{dev, a.port}, comparePorts); ok {
		return true
	}
	nqn := a.service.NQN
	i, _ := slices.BinarySearchFunc(m.bound, nqn, func(m Member, nqn string) int { return strings.Compare(m.NQN, nqn) })
	for ; i < len(m.bound) && m.bound[i].NQN == nqn; i++ {
		if m.bound[i].holds(nqn, addr, dev, a.port) {
			return true
		}
	}
	return false
}
