package zone

import (
	"iter"
	"net/netip"
	"slices"
)

// This file is about hosts that are not known: what they would be in if they were.

// zonesFor gives the zones that a host would be in, sorted. The list is good until the
// Directory is asked or changed again.
func (d *Directory) zonesFor(h Host) []uint32 {
	ids := d.match.of(h, d.scratch[:0])
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 && d.autoJoin && (len(d.reserved) == 0 || len(d.reserveMatch.of(h, nil)) == 0) {
		ids = append(ids, defaultSlot)
	}
	d.scratch = ids
	return ids
}

// PeersFor is Peers of a host that is not known, as if it were.
func (d *Directory) PeersFor(h Host) iter.Seq[netip.Addr] {
	return slices.Values(d.union(d.zonesFor(h), noHost))
}

// ShareFor is Share of a host that is not known, as if it were.
func (d *Directory) ShareFor(h Host, b netip.Addr) bool {
	y, ok := d.lookup(b)
	return ok && intersect(d.zonesFor(h), y.zones)
}
