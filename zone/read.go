package zone

import (
	"iter"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/snsd"
)

// Host gives the attachment that owns an address.
func (d *Directory) Host(addr netip.Addr) (Host, bool) {
	h, ok := d.lookup(addr)
	if !ok {
		return Host{}, false
	}
	return d.hostOf(h.addr, &h.atts[0]), true
}

// Attachments gives all attachments of an address: the one that has it first, then by
// arrival. Those that Holds does not report are rival claims.
func (d *Directory) Attachments(addr netip.Addr) []Host {
	h, ok := d.lookup(addr)
	if !ok {
		return nil
	}
	out := make([]Host, len(h.atts))
	for i := range h.atts {
		out[i] = d.hostOf(h.addr, &h.atts[i])
	}
	return out
}

// AllHosts walks all attachments, sorted by address, those of one address in
// the order of Attachments. The Directory must not be changed meanwhile.
func (d *Directory) AllHosts() iter.Seq[Host] {
	return func(yield func(Host) bool) {
		for id := range d.order.all() {
			h := &d.hosts[id]
			for i := range h.atts {
				if !yield(d.hostOf(h.addr, &h.atts[i])) {
					return
				}
			}
		}
	}
}

// Addrs walks all known addresses in order. The Directory must not be changed meanwhile.
func (d *Directory) Addrs() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for id := range d.order.all() {
			if !yield(d.hosts[id].addr) {
				return
			}
		}
	}
}

// Conflicts lists the addresses that have a rival claim, by address.
func (d *Directory) Conflicts() []Conflict {
	var out []Conflict
	for id := range d.order.all() {
		h := &d.hosts[id]
		var c Conflict
		for i := range h.atts {
			if !d.counts(h, i) {
				c.Losers = append(c.Losers, d.hostOf(h.addr, &h.atts[i]))
			}
		}
		if len(c.Losers) > 0 {
			c.Winner = d.hostOf(h.addr, &h.atts[0])
			out = append(out, c)
		}
	}
	return out
}

// Len is the number of known addresses.
func (d *Directory) Len() int { return len(d.byAddr) }

// Attached is the number of attachments of all addresses; one with several counts as often.
func (d *Directory) Attached() int { return d.attached }

// Known reports whether the address has an attachment, in whatever state.
func (d *Directory) Known(addr netip.Addr) bool {
	_, ok := d.lookup(addr)
	return ok
}

// State gives the state of an address; inactive without a reason when it is not known.
func (d *Directory) State(addr netip.Addr) (snsd.State, snsd.Reason) {
	h, ok := d.lookup(addr)
	if !ok {
		return snsd.Inactive, snsd.ReasonNone
	}
	return h.state, h.reason
}

// Peers walks the known hosts, in whatever state, that share a zone with addr:
// without addr itself, each once, in order of address. The Directory must not be
// changed meanwhile.
func (d *Directory) Peers(addr netip.Addr) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		self, ok := d.byAddr[addr.Unmap()]
		if !ok {
			return
		}
		zones := d.hosts[self].zones
		if len(zones) == 1 {
			for id := range d.slots[zones[0]].hosts.all() {
				if id != self && !yield(d.hosts[id].addr) {
					return
				}
			}
			return
		}
		for _, a := range d.union(zones, self) {
			if !yield(a) {
				return
			}
		}
	}
}

// noHost is the id of no host.
const noHost = math.MaxUint32

// union gives the hosts of several zones but self, each once, in order. Duplicates
// are met by marks before anything is sorted: a storage array may be in thousands
// of zones.
func (d *Directory) union(zones []uint32, self uint32) []netip.Addr {
	d.newMark()
	if self != noHost {
		d.hosts[self].mark = d.marks
	}
	var out []netip.Addr
	for _, z := range zones {
		for id := range d.slots[z].hosts.all() {
			if h := &d.hosts[id]; h.mark != d.marks {
				h.mark = d.marks
				out = append(out, h.addr)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// Share reports whether two different known hosts are in a common zone.
func (d *Directory) Share(a, b netip.Addr) bool {
	x, ok := d.lookup(a)
	if !ok {
		return false
	}
	y, ok := d.lookup(b)
	return ok && x != y && intersect(x.zones, y.zones)
}

// intersect reports whether two sorted lists have an id in common.
func intersect(a, b []uint32) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b) > 16*len(a) {
		for _, id := range a {
			if _, there := slices.BinarySearch(b, id); there {
				return true
			}
		}
		return false
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			return true
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return false
}

// MayExchange is the rule of hard zoning: two hosts may exchange traffic when they
// share a zone and are not both initiators or both targets; an unknown role, like
// "both", counts as either. Hosts of the default zone and of configured zones
// share none, so they may not.
func (d *Directory) MayExchange(a, b netip.Addr) bool {
	if !d.Share(a, b) {
		return false
	}
	x, _ := d.lookup(a)
	y, _ := d.lookup(b)
	return x.atts[0].service.Role.Meets(y.atts[0].service.Role)
}

// SharedZone names a zone that two hosts have in common, the same one as long as neither
// enters or leaves any; empty: there is none.
func (d *Directory) SharedZone(a, b netip.Addr) string {
	x, ok := d.lookup(a)
	if !ok {
		return ""
	}
	y, ok := d.lookup(b)
	if !ok {
		return ""
	}
	few, many := x.zones, y.zones
	if len(few) > len(many) {
		few, many = many, few
	}
	for _, z := range few {
		if _, there := slices.BinarySearch(many, z); there {
			return d.slots[z].name
		}
	}
	return ""
}

// FirstZone names one of the zones of an address, the same one as long as it enters and leaves
// none; empty: it is in none.
func (d *Directory) FirstZone(addr netip.Addr) string {
	h, ok := d.lookup(addr)
	if !ok || len(h.zones) == 0 {
		return ""
	}
	return d.slots[h.zones[0]].name
}

// PortsAt gives the ports of a device that the host is on that has an address, sorted. Ports of
// rival claims are not among them.
func (d *Directory) PortsAt(addr, device netip.Addr) (ports []string) {
	h, ok := d.lookup(addr)
	if !ok {
		return nil
	}
	for i := range h.atts {
		if a := &h.atts[i]; d.counts(h, i) && d.devs[a.dev].addr == device.Unmap() {
			ports = append(ports, a.port)
		}
	}
	slices.Sort(ports)
	return ports
}

// HostsAt returns the addresses with an attachment at a port of a device, sorted.
func (d *Directory) HostsAt(device netip.Addr, port string) (addrs []netip.Addr) {
	for _, id := range d.byPort.appendTo(nil, portKey{device.Unmap(), port}) {
		addrs = append(addrs, d.hosts[id].addr)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return addrs
}

// AddrsAt returns the addresses with an attachment at a device, sorted.
func (d *Directory) AddrsAt(device netip.Addr) (addrs []netip.Addr) {
	if id, known := d.devID[device.Unmap()]; known {
		for h := range d.devs[id].hosts.all() {
			addrs = append(addrs, d.hosts[h].addr)
		}
	}
	return addrs
}

// AddrsOf returns the addresses with an attachment that says an NQN, sorted.
func (d *Directory) AddrsOf(nqn string) (addrs []netip.Addr) {
	for _, id := range d.byNQN.appendTo(nil, nqn) {
		addrs = append(addrs, d.hosts[id].addr)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return addrs
}

// ZonesOf gives the names of the zones an address is in, sorted.
func (d *Directory) ZonesOf(addr netip.Addr) []string {
	h, ok := d.lookup(addr)
	if !ok || len(h.zones) == 0 {
		return nil
	}
	out := make([]string, len(h.zones))
	for i, z := range h.zones {
		out[i] = d.slots[z].name
	}
	slices.Sort(out)
	return out
}

// slotOf gives a zone by name, the default zone included.
func (d *Directory) slotOf(name string) (*slot, bool) {
	if name == DefaultName {
		return &d.slots[defaultSlot], true
	}
	z, ok := d.byName[name]
	if !ok {
		return nil, false
	}
	return &d.slots[z], true
}

// ZoneHosts gives the known hosts of a zone in order of address.
func (d *Directory) ZoneHosts(name string) []netip.Addr {
	s, ok := d.slotOf(name)
	if !ok {
		return nil
	}
	out := make([]netip.Addr, 0, s.hosts.len())
	for id := range s.hosts.all() {
		out = append(out, d.hosts[id].addr)
	}
	return out
}

// Zone gives one zone as configured, canonical; the default zone has no members.
func (d *Directory) Zone(name string) (Zone, bool) {
	s, ok := d.slotOf(name)
	if !ok {
		return Zone{}, false
	}
	return Zone{Name: s.name, Members: s.parts.members()}, true
}

// Zones gives the whole configuration, canonical; the default zone, which is
// always there, is not listed.
func (d *Directory) Zones() Set {
	out := Set{AutoJoin: d.autoJoin, Hard: d.hard, Zones: make([]Zone, 0, len(d.byName))}
	for _, z := range d.byName {
		out.Zones = append(out.Zones, Zone{Name: d.slots[z].name, Members: d.slots[z].parts.members()})
	}
	slices.SortFunc(out.Zones, func(a, b Zone) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// CountOf gives how many attachments of hosts of a zone a device has.
func (d *Directory) CountOf(device netip.Addr, zone string) int {
	s, ok := d.slotOf(zone)
	if !ok {
		return 0
	}
	id, ok := d.devID[device.Unmap()]
	if !ok {
		return 0
	}
	i, there := slices.BinarySearchFunc(s.devs, id, func(c devCount, id uint32) int { return int(c.dev) - int(id) })
	if !there {
		return 0
	}
	return int(s.devs[i].n)
}
