package zone

import (
	"net/netip"
	"slices"
)

// Partners gives the other devices that have a host in a common zone with a host of
// our own device, by address; with all those too that share none but have a host
// that is known here. In which state the hosts are does not count.
func (d *Directory) Partners(all bool) []netip.Addr {
	var out []netip.Addr
	for i := range d.devs {
		if v := &d.devs[i]; v.addr != d.self && (v.common > 0 || all && v.hosts.len() > 0) {
			out = append(out, v.addr)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// PartnersRevision changes whenever Partners may give something else. Faults never
// change it.
func (d *Directory) PartnersRevision() uint64 { return d.partners }

// count adds n attachments of a device to a zone, or takes them away, and keeps the
// number of zones that the device has in common with ours.
func (d *Directory) count(zone, dev uint32, n int) {
	s := &d.slots[zone]
	before := len(s.devs)
	s.count(dev, n)
	step := len(s.devs) - before // -1, 0 or 1
	if step == 0 {
		return
	}
	self, known := d.devID[d.self]
	switch {
	case !known:
	case dev != self:
		if s.has(self) {
			d.share(dev, step)
		}
	default:
		for _, c := range s.devs {
			if c.dev != self {
				d.share(c.dev, step)
			}
		}
	}
}

// share notes that a device has one zone more or less in common with ours.
func (d *Directory) share(dev uint32, step int) {
	v := &d.devs[dev]
	was := v.common > 0
	v.common += step
	if was != (v.common > 0) {
		d.partners++
	}
}

// has reports whether a device has an attachment in the zone.
func (s *slot) has(dev uint32) bool {
	_, there := slices.BinarySearchFunc(s.devs, dev, func(c devCount, dev uint32) int { return int(c.dev) - int(dev) })
	return there
}

// arrived notes that a host has an attachment on a device.
func (d *Directory) arrived(dev, id uint32) {
	v := &d.devs[dev]
	v.hosts.add(id, d.at)
	if v.hosts.len() == 1 {
		d.partners++
	}
}

// departed notes that a host has none there any more.
func (d *Directory) departed(dev, id uint32) {
	v := &d.devs[dev]
	v.hosts.remove(id, d.at)
	if v.hosts.len() == 0 {
		d.partners++
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
