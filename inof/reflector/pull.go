package reflector

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// Waiting tells whether something has changed that was not pulled yet.
func (r *Reflector) Waiting() bool { return r.feed.fresh < len(r.feed.posts) || r.ends }

// Owing tells whether a Step can go on.
func (r *Reflector) Owing() bool { return r.more || len(r.handing) > 0 }

// Owed appends the devices that have more to be told than they were given.
func (r *Reflector) Owed(dst []netip.Addr) []netip.Addr {
	for _, d := range r.owing {
		if d.owed != nil {
			dst = append(dst, d.id)
		}
	}
	return dst
}

// Drained says that the session of a device that was not ready is.
func (r *Reflector) Drained() { r.more = len(r.owing) > 0 }

// Losses are those among what waits for Pull.
func (r *Reflector) Losses() Losses { return r.losses }

// Work is how many records the reflector has looked at because of the last message that was
// received, beside those that it has.
func (r *Reflector) Work() int { return r.work }

// Pull gives what has changed since the last Pull: to each device that it concerns and whose
// session is ready to take it, about a message full. What is more than that, and what
// concerns others, they are given by later Steps; a loss they are given at once. Ready is asked for
// each device; nil: all are.
func (r *Reflector) Pull(ready func(dev netip.Addr) bool, now time.Time) []wire.Delivery {
	var out []wire.Delivery
	r.losses = Losses{}
	for _, s := range r.feed.handOut() {
		b := s.owed
		switch {
		case b == nil:
			b = r.backlog(len(s.devices))
		case b.users > len(s.devices):
			b = b.clone(len(s.devices))
			for _, d := range s.devices {
				d.owed = b
			}
		}
		for _, i := range s.posts {
			b.add(&r.feed.posts[i])
		}
		switch {
		case s.owed == nil && b.patient():
			r.owe(s.devices, b)
			r.more = true
		case s.owed == nil || b.urgent():
			out = r.give(out, b, s.devices, s.owed != nil, ready, now)
		}
	}
	r.feed.trim()
	return r.tell(out, now)
}

// Step goes on with what some devices were given and others not yet. Without such it gives the next
// about 32 KiB to the device that waits longest, and to those who have the same to be told, if
// their sessions are ready.
func (r *Reflector) Step(ready func(dev netip.Addr) bool, now time.Time) []wire.Delivery {
	var out []wire.Delivery
	if len(r.handing) > 0 {
		return r.tell(r.handOn(out, r.handing[0]), now)
	}
	r.more = false
	for n := len(r.owing); n > 0; n-- {
		d := r.owing[0]
		r.owing = r.owing[1:]
		if d.owing = d.owed != nil; !d.owing {
			continue
		}
		r.owing = append(r.owing, d)
		if ready != nil && !ready(d.id) {
			continue
		}
		devs := []*device{d}
		if b := d.owed; b.users > 1 {
			devs = slices.DeleteFunc(slices.Clone(r.owing), func(o *device) bool { return o.owed != b })
			slices.SortFunc(devs, compareDevices)
		}
		r.more = n > 1
		r.counters.Steps++
		out = r.give(out, d.owed, devs, false, ready, now)
		break
	}
	return r.tell(out, now)
}

// give lets those of some devices that are ready have about a message full of their backlog,
// or of the losses in it.
func (r *Reflector) give(out []wire.Delivery, b *backlog, devs []*device, losses bool, ready func(netip.Addr) bool, now time.Time) []wire.Delivery {
	can := devs
	var cannot []*device
	for i, d := range devs {
		if ready == nil || ready(d.id) {
			if len(cannot) > 0 {
				can = append(can, d)
			}
			continue
		}
		if len(cannot) == 0 {
			can = slices.Clone(devs[:i])
		}
		cannot = append(cannot, d)
	}
	r.owe(cannot, b)
	if len(can) == 0 {
		return out
	}
	if len(can) < b.users {
		b = b.clone(len(can))
	}
	out = r.handAll(out, can)
	urgent := b.urgent()
	h := r.take(b, can[0], losses, now)
	if h.to = can; urgent {
		h.most = len(can)
	}
	if len(can) == 1 && len(h.msgs) == 1 {
		h.form[0].Done = func() { r.used(h.of) }
	}
	r.counters.UpdatesOut += uint64(len(h.msgs))
	out = r.hand(out, h)
	if b.empty() {
		if !b.large {
			r.keys = b.keys
		}
		b, r.ends = nil, true
	} else {
		r.more = true
	}
	r.owe(can, b)
	return out
}

// out gives what a call leads to at once.
func (r *Reflector) out(now time.Time) []wire.Delivery {
	if r.cfg.Paced {
		return nil
	}
	out := r.Pull(nil, now)
	for r.Owing() {
		out = append(out, r.Step(nil, now)...)
	}
	return out
}

// tell gives the End-of-Sync to every device that is due: it was told all there was. In a
// full sync its own one is done, so that all its zones are known here, and no awaited
// device is missing, nor may one be that nobody remembers.
func (r *Reflector) tell(out []wire.Delivery, now time.Time) []wire.Delivery {
	if !r.ends || r.feed.fresh < len(r.feed.posts) { // which may concern them
		return out
	}
	r.ends = false
	early := now.Before(r.patience)
	missing := len(r.awaited) > 0 && early
	var to, resumed []netip.Addr
	for d := range r.unended {
		switch {
		case d.owed != nil || d.handing != nil || d.missed != nil:
			continue
		case d.told:
			to = append(to, d.id)
		case d.resumes:
			resumed = append(resumed, d.id)
			if d.endsSpared {
				to = append(to, d.id)
			}
		case d.synced && !missing && !(early && r.cfg.Unsure && d.holds):
			to = append(to, d.id)
		default:
			continue
		}
		if d.endsSpared || !d.resumes && !d.told { // a device that was whole for a moment may be short again
			d.spared, _ = r.shortOnes()
		}
		d.endsSpared, d.told, d.whole = false, true, true
		delete(r.unended, d)
		r.moves++
	}
	for _, end := range [...]struct {
		to      []netip.Addr
		resumed bool
	}{{resumed, true}, {to, false}} {
		if len(end.to) > 0 {
			slices.SortFunc(end.to, netip.Addr.Compare)
			out = append(out, wire.Delivery{To: end.to, Msg: r.endOfSyncNow(end.resumed)})
		}
	}
	return out
}

// endOfSyncNow is the End-of-Sync for a device that has got all there is.
func (r *Reflector) endOfSyncNow(resumed bool) *wire.EndOfSync {
	e := &wire.EndOfSync{Epoch: r.epoch, Seq: r.feed.handed, Resumed: resumed, Cluster: r.cluster, Members: r.members}
	if !resumed {
		e.Short, e.Resumed = r.shortOnes()
	}
	return e
}
