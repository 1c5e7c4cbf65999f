package reflector

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/zone"
)

// commit ends a change, which is not to be used any more, and posts what must be told.
func (r *Reflector) commit(t *change, by *cause) {
	for addr, before := range t.addrs {
		if !r.settle(t, addr, before) && !t.repeat {
			delete(t.addrs, addr)
		}
	}
	slices.SortFunc(t.emptied, func(a, b *addrRow) int { return a.addr.Compare(b.addr) })
	for _, row := range t.emptied {
		r.interest.addrRows.remove(row)
	}
	for k, before := range t.interest {
		now := r.interest.concerned(k.dev, k.zone)
		switch {
		case now == before || before && r.linger(t, k, by):
			delete(t.interest, k)
		case before:
			t.left[k.zone] = append(t.left[k.zone], k.dev)
		}
		r.interest.tidy(k.zone)
	}
	r.cast(t)
	r.postZones(t, by)
	r.planHosts(t)
	for i := range t.taken {
		var num uint32
		r.plan(t, t.taken[i].Device, t.number(&num, news{feedKey: feedKey{keyTaken, t.taken[i]}}))
	}
	r.damp(t, by)
	r.group(t, by)
	r.end(t)
}

// postZones lets every device hear of zones and settings that have changed: each has all of them.
func (r *Reflector) postZones(t *change, by *cause) {
	var list []news
	if t.settings {
		list = append(list, news{feedKey: feedKey{kind: keySettings}})
	}
	for _, name := range sortedKeys(t.zones, strings.Compare) {
		_, have := r.interest.zones[name]
		if have || t.zones[name] {
			list = append(list, news{feedKey: zoneKey(name), gone: !have})
		}
	}
	if len(list) == 0 {
		return
	}
	var all []*device
	for _, d := range r.devices {
		if d.follows() {
			all = append(all, d)
		}
	}
	if len(all) > 0 {
		slices.SortFunc(all, compareDevices)
		r.post(list, receivers{list: all}, by)
	}
}

func (r *Reflector) planHosts(t *change) {
	var devs []netip.Addr
	for _, addr := range sortedKeys(t.addrs, netip.Addr.Compare) {
		w := r.watch(t, addr)
		devs = r.audience(t, devs, addr)
		for _, dev := range devs {
			w.tell(r, t, dev)
		}
	}
	r.met(t)
	for _, k := range t.fenced {
		var num uint32
		devs = r.audience(t, devs, k.Addr)
		for _, dev := range devs {
			if dev != k.Device && r.interest.knows(dev, k.Addr) {
				r.plan(t, dev, t.number(&num, news{feedKey: feedKey{keyFence, k}, gone: len(r.fenceOf(k).Peers) == 0}))
			}
		}
	}
}

// group makes one post for all devices that are to hear of the same.
func (r *Reflector) group(t *change, by *cause) {
	groups := map[string][]netip.Addr{}
	var order []string
	var key []byte
	for _, dev := range sortedKeys(t.plans, netip.Addr.Compare) {
		nums := t.plans[dev]
		slices.Sort(nums)
		nums = slices.Compact(nums)
		t.plans[dev] = nums
		key = key[:0]
		for _, n := range nums {
			key = binary.BigEndian.AppendUint32(key, n)
		}
		actors, seen := groups[string(key)]
		groups[string(key)] = append(actors, dev)
		if !seen {
			order = append(order, string(key))
		}
	}
	for _, key := range order {
		actors := groups[key]
		nums := t.plans[actors[0]]
		list := make([]news, 0, len(nums))
		for _, n := range nums {
			list = append(list, t.news[n-1])
		}
		r.post(list, r.everyone(t, actors), by)
	}
}

// everyone are all for whom some actors act.
func (r *Reflector) everyone(t *change, actors []netip.Addr) (all receivers) {
	if len(actors) == 1 && t.classes[actors[0]] != nil {
		return r.expand(t.classes[actors[0]])
	}
	for _, dev := range actors {
		c := t.classes[dev]
		if c == nil {
			all.list = append(all.list, r.devices[dev])
			continue
		}
		of := r.expand(c)
		for _, d := range of.list {
			if !slices.Contains(of.not, d) {
				all.list = append(all.list, d)
			}
		}
	}
	if t.classes != nil {
		slices.SortFunc(all.list, compareDevices)
	}
	return all
}

// audience are the devices that know an address before or after the change, sorted.
func (r *Reflector) audience(t *change, dst []netip.Addr, addr netip.Addr) []netip.Addr {
	dst = dst[:0]
	if t.actors != nil {
		return append(dst, t.actors...)
	}
	before, now := r.was(t, addr), r.interest.at(addr)
	for _, atts := range [...][]zone.Host{before.atts, now.atts} {
		for i := range atts {
			dst = append(dst, atts[i].Device)
		}
	}
	for _, z := range now.zones {
		dst = r.devicesOf(t, dst, z)
	}
	for _, z := range before.zones {
		if !slices.Contains(now.zones, z) {
			dst = r.devicesOf(t, dst, z)
		}
	}
	slices.SortFunc(dst, netip.Addr.Compare)
	return slices.Compact(dst)
}

// devicesOf appends those concerned with a zone before or after the change.
func (r *Reflector) devicesOf(t *change, dst []netip.Addr, name string) []netip.Addr {
	if t.actors != nil {
		return append(dst, t.actors...)
	}
	if a := r.interest.areas[name]; a != nil {
		for dev := range a.devs {
			dst = append(dst, dev)
		}
	}
	for dev := range r.interest.all {
		dst = append(dst, dev)
	}
	return append(dst, t.left[name]...)
}
