package reflector

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// A device whose last host leaves a zone is told of the zone's hosts no more, and of all of them
// when a host comes back: as much work as the zone has hosts, whatever it was that changed. So the
// first time that a device leaves a zone in oftenTime it is told so at once; the next time it
// lingers: it counts as concerned with the zone until oftenTime later. Whether its host is there
// the others are told as ever.

// linger keeps a device in a zone that it is about to leave by a message of its own, if it has left
// it a moment ago.
func (r *Reflector) linger(t *change, k devZone, by *cause) bool {
	d := r.devices[k.dev]
	if d == nil || k.dev != by.origin || by.came.IsZero() || d.latelyAt(by.came).first(zoneKey(k.zone)) {
		return false
	}
	if d.lingers == nil {
		d.lingers = map[string]struct{}{}
		d.lingersUntil = by.came.Add(oftenTime)
		if r.next.IsZero() || d.lingersUntil.Before(r.next) {
			r.next = d.lingersUntil
		}
	}
	d.lingers[k.zone] = struct{}{}
	r.bump(t, k.dev, k.zone, +1)
	return true
}

// lingersNot lets a device leave the zones that it lingers in.
func (r *Reflector) lingersNot(t *change, d *device) {
	for _, name := range slices.Sorted(maps.Keys(d.lingers)) {
		r.bump(t, d.id, name, -1)
	}
	d.lingers, d.lingersUntil = nil, time.Time{}
}

// leaveZones lets devices leave the zones that they lingered in for long enough.
func (r *Reflector) leaveZones(now time.Time) {
	t := r.begin()
	for _, id := range slices.SortedFunc(maps.Keys(r.devices), netip.Addr.Compare) {
		if d := r.devices[id]; !d.lingersUntil.IsZero() && !now.Before(d.lingersUntil) {
			r.lingersNot(t, d)
		}
	}
	if len(t.interest) > 0 {
		r.commit(t, r.ownCause())
	}
}

// latelyAt is how often the keys of a device have changed, from a change on that came at a time.
func (d *device) latelyAt(came time.Time) *lately {
	l := &d.lately
	if l.changes == nil || came.Sub(l.since) > oftenTime {
		*l = lately{came, map[feedKey]*often{}}
	}
	return l
}

// first reports whether a key changes for the first time, and notes that it has.
func (l *lately) first(k feedKey) bool {
	if l.changes[k] != nil || len(l.changes) >= mostOften {
		return false
	}
	l.changes[k] = &often{n: 1}
	return true
}

// met lets devices that have come to zones, or left them, hear of the hosts there that have not
// changed themselves.
func (r *Reflector) met(t *change) {
	met := map[netip.Addr][]netip.Addr{} // by host
	for k := range t.interest {
		a := r.interest.areas[k.zone]
		if d := r.devices[k.dev]; a == nil || d == nil || !d.follows() {
			continue
		}
		r.work += len(a.hosts)
		for addr := range a.hosts {
			if _, touched := t.addrs[addr]; !touched && !slices.Contains(met[addr], k.dev) {
				met[addr] = append(met[addr], k.dev)
			}
		}
	}
	for _, addr := range slices.SortedFunc(maps.Keys(met), netip.Addr.Compare) {
		w := r.watch(t, addr)
		slices.SortFunc(met[addr], netip.Addr.Compare)
		for _, dev := range met[addr] {
			w.tell(r, t, dev)
		}
	}
}
