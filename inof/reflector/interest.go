package reflector

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// interest says which device is concerned with which zone, and therefore knows
// which hosts. It is kept incrementally beside the Directory.
type interest struct {
	zones   map[string]*zoneRow     // configured ones
	members int                     // of all of them
	digest  wire.ZoneDigest         // of zones
	all     map[netip.Addr]struct{} // devices that ask for everything
	areas   map[string]*area        // by zone, the default zone too
	addrs   map[netip.Addr]*addrRow

	zoneRows roll[*zoneRow] // of zones
	addrRows roll[*addrRow] // of addrs
}

// zoneRow is a zone as it is told: every client is told all of them.
type zoneRow struct {
	place
	name    string
	members wire.PackedMembers // canonical
}

func (z *zoneRow) record() wire.ZoneRecord {
	return wire.ZoneRecord{Op: wire.Put, Zone: zone.Zone{Name: z.name}, Packed: z.members}
}

// area is a zone with who is in it.
type area struct {
	hosts map[netip.Addr]struct{}
	devs  map[netip.Addr]int // attachments of hosts, and one for a configured port
	list  []*device          // of devs, sorted

	told    []*device   // of list, those that follow changes; nil: to be worked out
	toldAt  uint64      // Reflector.moves
	without [][]*device // those of list that were left out last, oldest first
}

// entry is one host address. Its slices are replaced, never changed, so that a
// copy of it is the state before a change.
type entry struct {
	atts  []zone.Host // every claim to the address, sorted by key
	zones []string    // sorted
}

// addrRow is an address with what is known of it.
type addrRow struct {
	place
	addr netip.Addr
	entry
}

func newInterest() interest {
	return interest{all: map[netip.Addr]struct{}{}, zones: map[string]*zoneRow{}, areas: map[string]*area{}, addrs: map[netip.Addr]*addrRow{}}
}

// at is what is known of an address.
func (in *interest) at(addr netip.Addr) entry {
	if row := in.addrs[addr]; row != nil {
		return row.entry
	}
	return entry{}
}

// put replaces what is known of an address.
func (in *interest) put(addr netip.Addr, e entry) {
	row := in.addrs[addr]
	if row == nil {
		row = &addrRow{addr: addr}
		in.addrs[addr] = row
		in.addrRows.add(row)
	}
	row.entry = e
}

func (in *interest) area(name string) *area {
	a := in.areas[name]
	if a == nil {
		a = &area{hosts: map[netip.Addr]struct{}{}, devs: map[netip.Addr]int{}}
		in.areas[name] = a
	}
	return a
}

func (in *interest) tidy(name string) {
	if a := in.areas[name]; a != nil && len(a.hosts) == 0 && len(a.devs) == 0 {
		delete(in.areas, name)
	}
}

// concerned tells whether a device has a member, or a configured port, in a zone.
func (in *interest) concerned(dev netip.Addr, name string) bool {
	if _, ok := in.all[dev]; ok {
		return true
	}
	a := in.areas[name]
	return a != nil && a.devs[dev] > 0
}

// knows tells whether a device is concerned with a host address: by a zone, or
// because the address is attached to itself too and it must know whose it is.
func (in *interest) knows(dev, addr netip.Addr) bool {
	e := in.at(addr)
	if e.attachedTo(dev) {
		return true
	}
	for _, z := range e.zones {
		if in.concerned(dev, z) {
			return true
		}
	}
	return false
}

func findAtt(atts []zone.Host, k zone.HostKey) (int, bool) {
	return slices.BinarySearchFunc(atts, k, func(h zone.Host, k zone.HostKey) int { return zone.CompareKeys(h.HostKey, k) })
}

// attachedTo tells whether the address has an attachment at a device.
func (e *entry) attachedTo(dev netip.Addr) bool {
	return slices.ContainsFunc(e.atts, func(h zone.Host) bool { return h.Device == dev })
}

// bump counts one more or one less reason for dev to be concerned with a zone.
func (r *Reflector) bump(t *change, dev netip.Addr, name string, by int) {
	a := r.interest.area(name)
	k := devZone{dev, name}
	if _, ok := t.interest[k]; !ok {
		t.interest[k] = r.interest.concerned(dev, name)
	}
	d := r.device(dev)
	if n := a.devs[dev] + by; n > 0 {
		a.devs[dev], d.zones[name] = n, n
		a.enlist(d, true)
	} else {
		delete(a.devs, dev)
		delete(d.zones, name)
		a.enlist(d, false)
	}
}

// settle brings areas in step with an address that was touched and tells whether
// anything about it has changed.
func (r *Reflector) settle(t *change, addr netip.Addr, before entry) bool {
	e := r.interest.at(addr)
	e.atts = r.named(e.atts)
	row := r.interest.addrs[addr]
	if row != nil {
		row.entry = e
		if len(e.atts) == 0 {
			delete(r.interest.addrs, addr)
			t.emptied = append(t.emptied, row)
		}
	}
	zones := r.dir.ZonesOf(addr)
	if slices.Equal(zones, before.zones) && sameAtts(e.atts, before.atts) {
		return false
	}
	if slices.Equal(zones, before.zones) && slices.EqualFunc(e.atts, before.atts, func(x, y zone.Host) bool { return x.Device == y.Device }) {
		return true // in the same zones by the same devices
	}
	r.work += len(before.zones)*len(before.atts) + len(zones)*len(e.atts)
	for _, z := range before.zones {
		for i := range before.atts {
			r.bump(t, before.atts[i].Device, z, -1)
		}
		delete(r.interest.area(z).hosts, addr)
	}
	for _, z := range zones {
		for i := range e.atts {
			r.bump(t, e.atts[i].Device, z, +1)
		}
		r.interest.area(z).hosts[addr] = struct{}{}
	}
	if row != nil {
		row.zones = zones
	}
	for _, z := range before.zones {
		r.interest.tidy(z)
	}
	return true
}

// named gives the attachments of an address as everybody is told of them: the holder is
// the one that has the address here, whatever its device says, or receivers would take
// another than its zones were worked out for. Only where no other host claims the address
// the device may know of one that is not known here; then it stays a rival.
func (r *Reflector) named(atts []zone.Host) []zone.Host {
	contested := slices.ContainsFunc(atts, func(h zone.Host) bool { return !r.dir.Holds(h.HostKey) })
	shared := true
	for i := range atts {
		claim := zone.ClaimRival
		if holds, said := r.dir.ClaimOf(atts[i].HostKey); holds && (contested || said != zone.ClaimRival) {
			claim = zone.ClaimHolder
		}
		if atts[i].Claim == claim {
			continue
		}
		if shared {
			atts, shared = slices.Clone(atts), false
		}
		atts[i].Claim = claim
	}
	return atts
}

func sameAtts(a, b []zone.Host) bool {
	return slices.EqualFunc(a, b, func(x, y zone.Host) bool { return x.Same(&y) })
}

// SetInterest says whether a device asks for everything, or only for what concerns
// it. It is to be called before Resume; when it is something new there is a full sync.
func (r *Reflector) SetInterest(dev netip.Addr, all bool) {
	if _, had := r.interest.all[dev]; had == all {
		return
	}
	if all {
		r.interest.all[dev] = struct{}{}
	} else {
		delete(r.interest.all, dev)
	}
	r.moves++
	if d := r.devices[dev]; d != nil {
		d.whole = false
	}
}

// enlist keeps the sorted list of an area in step with who is in it.
func (a *area) enlist(d *device, in bool) {
	i, found := slices.BinarySearchFunc(a.list, d.id, func(d *device, id netip.Addr) int { return d.id.Compare(id) })
	switch {
	case in && !found:
		a.list = slices.Insert(a.list, i, d)
	case !in && found:
		a.list = slices.Delete(a.list, i, i+1)
	default:
		return
	}
	a.told, a.without = nil, nil
}

// roll holds rows in an order in which they can be walked a few at a time, from the end to
// the beginning, while rows come and go: one that comes is put at the end, where the walk
// has been, and so is one that takes the place of another that goes.
type roll[R placed] struct{ list []R }

// placed are rows that know their place in a roll.
type placed interface{ at() *place }

// place is one more than the index of a row in its roll; 0: it is in none.
type place int32

func (p *place) at() *place { return p }

func (l *roll[R]) add(row R) {
	if p := row.at(); *p == 0 {
		l.list = append(l.list, row)
		*p = place(len(l.list))
	}
}

func (l *roll[R]) remove(row R) {
	p := row.at()
	if *p == 0 {
		return
	}
	var none R
	last := len(l.list) - 1
	moved := l.list[last]
	l.list[*p-1], *moved.at() = moved, *p
	l.list[last] = none
	l.list, *p = l.list[:last], 0
}
