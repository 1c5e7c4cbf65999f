package reflector

import (
	"net/netip"
	"slices"
)

// A change concerns few devices in a way of their own, and many in the same way:
// those who share a zone with what has changed, and to whom nothing else happened.
// These form classes, one for each set of the zones in question, and what is worked
// out for one device of a class holds for all of it. So a fault costs the reflector
// a decision or two, not one for each of a thousand clients.

// class are devices that see a change alike. The first that follows changes acts
// for all.
type class struct {
	area    *area     // whose list members are, with the exception of apart; nil: members are listed
	members []*device // sorted
	apart   []netip.Addr
}

const (
	maxActors     = 64 // devices and classes above which each device is looked at
	maxClassZones = 62 // zones that a class is told apart by
	keptWithout   = 16 // lists of receivers that an area keeps
)

// cast works out which devices are looked at, one for each class and those with a
// part of their own; without it every device is looked at that the change may
// concern.
func (r *Reflector) cast(t *change) {
	if r.each {
		return
	}
	var areas []*area
	var apart []netip.Addr // both are bounded by large
	aside := func(dev netip.Addr) {
		if !slices.Contains(apart, dev) {
			apart = append(apart, dev)
		}
	}
	see := func(e entry) {
		for _, z := range e.zones {
			if a := r.interest.areas[z]; a != nil && len(a.list) > 0 && !slices.Contains(areas, a) {
				areas = append(areas, a)
			}
		}
		for i := range e.atts {
			aside(e.atts[i].Device)
		}
	}
	large := func() bool { return len(areas) > maxClassZones || len(apart) > maxActors }
	for k := range t.interest {
		if aside(k.dev); large() {
			return
		}
	}
	for addr, before := range t.addrs {
		now := r.interest.at(addr)
		see(before)
		see(now)
		if large() {
			return
		}
	}
	for _, k := range t.fenced {
		see(r.interest.at(k.Addr))
	}
	for i := range t.taken {
		if aside(t.taken[i].Device); large() {
			return
		}
	}
	slices.SortFunc(apart, netip.Addr.Compare)
	actors := slices.Clone(apart)
	t.classes = map[netip.Addr]*class{}
	for _, c := range r.classes(areas, apart) {
		if first := c.first(); first != nil {
			t.classes[first.id] = c
			actors = append(actors, first.id)
		}
	}
	if len(actors) > 2*maxActors {
		t.classes = nil
		return
	}
	slices.SortFunc(actors, netip.Addr.Compare)
	t.actors = actors
}

// classes divides the devices of some zones, and those that ask for everything, by
// the zones they are in.
func (r *Reflector) classes(areas []*area, apart []netip.Addr) []*class {
	if len(areas) == 1 && len(r.interest.all) == 0 {
		return []*class{{area: areas[0], apart: areas[0].only(apart)}}
	}
	masks := map[*device]uint64{}
	for i, a := range areas {
		for _, d := range a.list {
			masks[d] |= 1 << i
		}
	}
	for id := range r.interest.all {
		if d := r.devices[id]; d != nil {
			masks[d] = 1 << maxClassZones // whatever zones it is in
		}
	}
	byMask := map[uint64]*class{}
	for d, m := range masks {
		if _, ok := slices.BinarySearchFunc(apart, d.id, netip.Addr.Compare); ok {
			continue
		}
		c := byMask[m]
		if c == nil {
			c = &class{}
			byMask[m] = c
		}
		c.members = append(c.members, d)
	}
	out := make([]*class, 0, len(byMask))
	for _, c := range byMask {
		slices.SortFunc(c.members, func(x, y *device) int { return x.id.Compare(y.id) })
		out = append(out, c)
	}
	return out
}

// only gives those of the devices that are in the area.
func (a *area) only(devs []netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, dev := range devs {
		if a.devs[dev] > 0 {
			out = append(out, dev)
		}
	}
	return out
}

// first is the first device that follows changes, nil if none does.
func (c *class) first() *device {
	list := c.members
	if c.area != nil {
		list = c.area.list
	}
	for _, d := range list {
		if d.follows() && !slices.Contains(c.apart, d.id) {
			return d
		}
	}
	return nil
}

// following are the devices of an area that follow changes, kept until one of them
// comes or goes.
func (r *Reflector) following(a *area) []*device {
	if a.told == nil || a.toldAt != r.moves {
		a.told, a.toldAt, a.without = make([]*device, 0, len(a.list)), r.moves, nil
		for _, d := range a.list {
			if d.follows() {
				a.told = append(a.told, d)
			}
		}
	}
	return a.told
}

// expand gives those of a class who follow changes.
func (r *Reflector) expand(c *class) (all receivers) {
	if c.area == nil {
		for _, d := range c.members {
			if d.follows() {
				all.list = append(all.list, d)
			}
		}
		return all
	}
	all.list = r.following(c.area)
	if len(c.apart) == 0 {
		return all
	}
	// The origin of a change is apart, and often that of one of the next ones too: posts that
	// have their lists in common are handed out together.
	for _, not := range c.area.without {
		if slices.EqualFunc(not, c.apart, func(d *device, id netip.Addr) bool { return d.id == id }) {
			return receivers{all.list, not}
		}
	}
	for _, id := range c.apart {
		all.not = append(all.not, r.devices[id])
	}
	if len(c.area.without) == keptWithout {
		c.area.without = slices.Delete(c.area.without, 0, 1)
	}
	c.area.without = append(c.area.without, all.not)
	return all
}
