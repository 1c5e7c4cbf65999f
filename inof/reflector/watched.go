package reflector

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

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

// tellDown lets a device hear whether a host that it knows is down now, if that is new to it.
func (w *watched) tellDown(r *Reflector, t *change, dev netip.Addr, i int) {
	h := &w.now.atts[i]
	if j, was := findAtt(w.old.atts, h.HostKey); was && !h.Down.Same(w.old.atts[j].Down) {
		r.plan(t, dev, t.number(&w.downs[i], news{feedKey: feedKey{keyDown, h.HostKey}, gone: !h.Down.Is()}))
	}
}

// met lets devices that have come to zones, or left them, hear of the hosts there that have not
// changed themselves. Who comes to a large zone is told of it as in a full sync.
func (r *Reflector) met(t *change) {
	if len(t.interest) == 0 {
		return
	}
	met := map[netip.Addr][]netip.Addr{} // by host
	large := map[netip.Addr]bool{}       // who comes to a large zone
	for k := range t.interest {
		a := r.interest.areas[k.zone]
		if d := r.devices[k.dev]; a == nil || d == nil || !d.follows() {
			continue
		}
		if r.work += len(a.hosts); r.large(a) && r.interest.concerned(k.dev, k.zone) {
			large[k.dev] = true
			continue
		}
		for addr := range a.hosts {
			if _, touched := t.addrs[addr]; !touched && !slices.Contains(met[addr], k.dev) {
				met[addr] = append(met[addr], k.dev)
			}
		}
	}
	for _, dev := range sortedKeys(large, netip.Addr.Compare) {
		var num uint32
		r.plan(t, dev, t.number(&num, news{feedKey: feedKey{keyArea, zone.HostKey{Device: dev}}}))
	}
	for _, addr := range sortedKeys(met, netip.Addr.Compare) {
		w := r.watch(t, addr)
		slices.SortFunc(met[addr], netip.Addr.Compare)
		for _, dev := range met[addr] {
			w.tell(r, t, dev)
		}
	}
}
