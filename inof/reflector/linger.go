package reflector

import (
	"maps"
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
