package reflector

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/inof/wire"
)

// What is no loss, and long, is given to a few devices in a step: to seal and to write it for all
// would take so long that a fault waits for it. A loss is given to all whom it concerns at once.

// handBytes is about how much is given in one step, to all devices together.
const handBytes = 32 << 10

// handing is what some devices were given, and others that are to be told the same not yet.
type handing struct {
	msgs []*wire.Update
	of   wire.Batch  // whose records theirs are
	form []wire.Form // of each of them: it is encoded once, however many steps there are
	to   []*device   // those others
	most int         // of them in a step
}

// hand gives messages to the first devices, and leaves the others to steps.
func (r *Reflector) hand(out []wire.Delivery, h *handing) []wire.Delivery {
	if len(h.msgs) == 0 {
		return out
	}
	if n := max(1, h.most); n < len(h.to) {
		h.to = slices.Clone(h.to) // it may be a list of an area
		for _, d := range h.to[n:] {
			d.handing = h
		}
		r.handing = append(r.handing, h)
		return r.handOn(out, h)
	}
	return r.deliver(out, h, h.to)
}

// handOn gives them to the next devices.
func (r *Reflector) handOn(out []wire.Delivery, h *handing) []wire.Delivery {
	n := min(max(1, h.most), len(h.to))
	out = r.deliver(out, h, h.to[:n])
	h.to = h.to[n:]
	r.handed(h)
	return out
}

// handAll gives some devices what they were not given yet, since something follows it.
func (r *Reflector) handAll(out []wire.Delivery, devs []*device) []wire.Delivery {
	for _, h := range slices.Clone(r.handing) {
		var now, later []*device
		for _, d := range h.to {
			if hasDevice(devs, d) {
				now = append(now, d)
			} else {
				later = append(later, d)
			}
		}
		if len(now) > 0 {
			out = r.deliver(out, h, now)
			h.to = later
			r.handed(h)
		}
	}
	return out
}

// takeBack is for a device whose session has ended.
func (r *Reflector) takeBack(d *device) {
	if h := d.handing; h != nil {
		d.handing = nil
		h.to = slices.DeleteFunc(h.to, func(o *device) bool { return o == d })
		r.handed(h)
	}
}

// handed forgets what was given to all.
func (r *Reflector) handed(h *handing) {
	if len(h.to) == 0 {
		r.handing = slices.DeleteFunc(r.handing, func(o *handing) bool { return o == h })
		r.ends = true
	}
}

func (r *Reflector) deliver(out []wire.Delivery, h *handing, devs []*device) []wire.Delivery {
	to := make([]netip.Addr, len(devs))
	for i, d := range devs {
		to[i], d.handing = d.id, nil
	}
	for i, u := range h.msgs {
		out = append(out, wire.Delivery{To: to, Msg: u, Form: &h.form[i]})
		r.counters.DeliveriesOut += uint64(len(to))
	}
	return out
}
