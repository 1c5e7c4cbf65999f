package reflector

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// awayAfter is how long a device may be without a session before what it claims gives way
// to the claims of devices that have one: longer than a session takes to come back.
const awayAfter = 10 * time.Second

// touchContested notes the addresses of changes that more than one host claims: they may
// have passed from one to the other.
func (r *Reflector) touchContested(t *change, cs zone.Changes) {
	for _, c := range cs {
		if len(r.interest.at(c.Addr).atts) > 1 {
			r.touch(t, c.Addr)
		}
	}
}

// goesAway is when a device counts as away; zero: it has a session, or does already.
func (d *device) goesAway() time.Time {
	if d.up || d.away || d.left.IsZero() {
		return time.Time{}
	}
	return d.left.Add(awayAfter)
}

// leaveAlone lets the claims of devices that are gone for a while yield to others.
func (r *Reflector) leaveAlone(now time.Time) {
	t := r.begin()
	for _, id := range slices.SortedFunc(maps.Keys(r.devices), netip.Addr.Compare) {
		d := r.devices[id]
		if at := d.goesAway(); !at.IsZero() && !now.Before(at) {
			d.away = true
			r.touchContested(t, r.dir.SetAway(d.id, true))
		}
	}
	if len(t.addrs) > 0 {
		r.commit(t, r.ownCause())
	}
}

// isBack takes a device for present again.
func (r *Reflector) isBack(t *change, d *device) {
	if d.away {
		d.away = false
		r.touchContested(t, r.dir.SetAway(d.id, false))
	}
}

// SetMultiPort says which attachments of an address count as one host.
func (r *Reflector) SetMultiPort(m zone.MultiPort, now time.Time) []wire.Delivery {
	t := r.begin()
	r.touchContested(t, r.dir.SetMultiPort(m))
	r.commit(t, r.ownCause())
	return r.out(now)
}
