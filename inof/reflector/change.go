package reflector

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

type devZone struct {
	dev  netip.Addr
	zone string
}

// change collects, while one input is handled, the state before it of all that it
// touches. Who must be told what is the difference to the state after it.
type change struct {
	addrs    map[netip.Addr]entry
	interest map[devZone]bool             // was the device concerned with the zone
	zones    map[string]bool              // was the zone there
	why      map[zone.HostKey]snsd.Reason // of hosts that are gone
	settings bool
	repeat   bool           // also what is as before is told, as of a new state of its device
	taken    []zone.HostKey // taken in: to be repeated to their device
	emptied  []*addrRow     // that nobody has any more
	lost     []news         // refused hosts that have gone

	left    map[string][]netip.Addr // devices that are no more concerned with a zone
	news    []news
	plans   map[netip.Addr][]uint32 // news by number for each receiver, from 1
	actors  []netip.Addr            // only they are looked at, sorted; nil: all that may be concerned
	classes map[netip.Addr]*class   // for whom an actor acts, if not for itself
}

func (r *Reflector) begin() *change {
	return &change{
		addrs: map[netip.Addr]entry{}, interest: map[devZone]bool{}, zones: map[string]bool{},
		why: map[zone.HostKey]snsd.Reason{},
	}
}

// touch keeps the state of an address before the change.
func (r *Reflector) touch(t *change, addr netip.Addr) {
	if _, ok := t.addrs[addr]; !ok {
		t.addrs[addr] = r.interest.at(addr)
	}
}

func (r *Reflector) ownCause() *cause { return &cause{origin: r.self} }

// eventCause is ownCause of a change that is itself an event: the zones were changed, the
// grace time of a device ended.
func (r *Reflector) eventCause(at, now time.Time) *cause {
	return &cause{origin: r.self, fault: at, decided: now}
}

// commit ends a change and posts what must be told.
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
	t.left = map[string][]netip.Addr{}
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
	t.plans = map[netip.Addr][]uint32{}
	r.cast(t)
	r.postZones(t, by)
	r.planHosts(t)
	for i := range t.taken {
		var num uint32
		r.plan(t, t.taken[i].Device, t.number(&num, news{feedKey: feedKey{keyTaken, t.taken[i]}}))
	}
	r.damp(t, by)
	r.group(t, by)
}

// number gives the number of news, adding it when num is still 0.
func (t *change) number(num *uint32, n news) uint32 {
	if *num == 0 {
		t.news = append(t.news, n)
		*num = uint32(len(t.news))
	}
	return *num
}

// plan lets a device hear of something, if it follows changes.
func (r *Reflector) plan(t *change, dev netip.Addr, num uint32) {
	if d := r.devices[dev]; d != nil && d.follows() {
		t.plans[dev] = append(t.plans[dev], num)
	}
}

// before tells what concerned told before the change.
func (r *Reflector) before(t *change, dev netip.Addr, name string) bool {
	if v, ok := t.interest[devZone{dev, name}]; ok {
		return v
	}
	return r.interest.concerned(dev, name)
}

// knew tells what knows told before the change.
func (r *Reflector) knew(t *change, dev, addr netip.Addr) bool {
	e := r.was(t, addr)
	if e.attachedTo(dev) {
		return true
	}
	for _, z := range e.zones {
		if r.before(t, dev, z) {
			return true
		}
	}
	return false
}

// was is an address before the change.
func (r *Reflector) was(t *change, addr netip.Addr) entry {
	if e, ok := t.addrs[addr]; ok {
		return e
	}
	return r.interest.at(addr)
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

// postZones lets every device hear of zones and settings that have changed: each has all of them.
func (r *Reflector) postZones(t *change, by *cause) {
	var list []news
	if t.settings {
		list = append(list, news{feedKey: feedKey{kind: keySettings}})
	}
	for _, name := range slices.Sorted(maps.Keys(t.zones)) {
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
	for _, addr := range slices.SortedFunc(maps.Keys(t.addrs), netip.Addr.Compare) {
		w := r.watch(t, addr)
		devs = r.audience(t, devs, addr)
		for _, dev := range devs {
			w.tell(r, t, dev)
		}
	}
	r.met(t)
}

// watched is one address with the numbers of its records, 0 where there is none yet.
type watched struct {
	addr          netip.Addr
	old, now      entry
	puts, removes []uint32
	downs         []uint32
}

func (r *Reflector) watch(t *change, addr netip.Addr) watched {
	w := watched{addr: addr, old: r.was(t, addr), now: r.interest.at(addr)}
	n := len(w.now.atts)
	nums := make([]uint32, 2*n+len(w.old.atts))
	w.puts, w.downs, w.removes = nums[:n], nums[n:2*n], nums[2*n:]
	return w
}

// tell works out what a device must be told about the address.
func (w *watched) tell(r *Reflector, t *change, dev netip.Addr) {
	d := r.devices[dev]
	if d == nil || !d.follows() {
		return
	}
	knew, knows := r.knew(t, dev, w.addr), r.interest.knows(dev, w.addr)
	if !knew && !knows {
		return
	}
	for i := range w.old.atts {
		h := &w.old.atts[i]
		_, still := findAtt(w.now.atts, h.HostKey)
		if h.Device == dev {
			continue
		}
		if knew && (!knows || !still) {
			why := snsd.ReasonZoneChanged
			if !still {
				why = t.why[h.HostKey]
			}
			r.plan(t, dev, t.number(&w.removes[i], news{feedKey: feedKey{keyHost, h.HostKey}, gone: true, why: why}))
		}
	}
	for i := range w.now.atts {
		h := &w.now.atts[i]
		if h.Device == dev || !knows {
			continue
		}
		j, was := findAtt(w.old.atts, h.HostKey)
		if knew {
			w.tellDown(r, t, dev, i)
		}
		if !knew || !was || t.repeat || !h.SameButDown(&w.old.atts[j]) {
			r.plan(t, dev, t.number(&w.puts[i], news{feedKey: feedKey{keyHost, h.HostKey}}))
		}
	}
}

// group makes one post for all devices that are to hear of the same.
func (r *Reflector) group(t *change, by *cause) {
	groups := map[string][]netip.Addr{}
	var order []string
	var key []byte
	for _, dev := range slices.SortedFunc(maps.Keys(t.plans), netip.Addr.Compare) {
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
