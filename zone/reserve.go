package zone

import "github.com/openinof/inof/snsd"

// reservation is one named list of members that keep hosts out of the default zone.
type reservation struct {
	id    uint32
	parts parts
}

// Reserve keeps every host that one of the members names out of the default zone,
// without putting it into any other: somebody says that it is in the zone of that
// name, but that is not in force. The list replaces the one of the same name; an
// empty one ends it.
func (d *Directory) Reserve(name string, members []Member) Changes {
	old, had := d.reserved[name]
	p, bad := d.split.split(members)
	d.counters.MembersRejected += bad
	switch {
	case !had && p.len() == 0, had && old.parts.equal(p):
		return nil
	case !had:
		if d.reserved == nil {
			d.reserved = make(map[string]reservation)
			d.reserveMatch = newMatcher()
		}
		d.lastReserve++
		old.id = d.lastReserve
	}
	gone, came := old.parts.subtract(p)
	d.reserveMatch.remove(old.id, gone)
	d.reserveMatch.add(old.id, came)
	candidates := d.candidates(gone, came)
	if p.len() == 0 {
		delete(d.reserved, name)
	} else {
		d.reserved[name] = reservation{id: old.id, parts: p.clone()}
	}
	for _, id := range candidates {
		d.settle(id)
	}
	return d.commit(snsd.ReasonNone)
}
