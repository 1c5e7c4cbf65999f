package reflector

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// Sessions of clients at a reflector: how they begin, what is caught up, and how they end.

// Join says that the session of a device is established: Resume with nothing to
// resume from.
func (r *Reflector) Join(dev netip.Addr, now time.Time) []wire.Delivery {
	return r.Resume(dev, nil, nil, now)
}

// ResumePoint is what our Open to a device says was seen of it; nil when everything
// is needed.
func (r *Reflector) ResumePoint(dev netip.Addr) *wire.Resume {
	d := r.devices[dev]
	if d == nil || !d.clean || !d.stamp.Known() {
		return nil
	}
	return &wire.Resume{Epoch: d.stamp.Epoch, Seq: d.stamp.Seq}
}

// Resume says that the session of a device is established; seen is what its Open
// says it has seen of us, offered what ours said. When seen is still in the feed it
// gets what it has missed. Otherwise it gets the settings and all that concerns it
// by what is known of it; the End-of-Sync follows when the device has completed its
// own sync and every awaited device is back.
func (r *Reflector) Resume(dev netip.Addr, seen, offered *wire.Resume, now time.Time) []wire.Delivery {
	if d := r.devices[dev]; (d == nil || !d.up) && r.joined() >= r.cfg.MaxClients {
		r.counters.ClientsRefused++
		err := wire.LimitError{What: "clients", Key: "device " + dev.String(), Limit: r.cfg.MaxClients}
		return []wire.Delivery{{To: []netip.Addr{dev}, Msg: &wire.Notification{Code: wire.CodeLimit, Text: err.Error()}}}
	}
	d := r.device(dev)
	r.endsNot(d)
	if offered != nil && (!d.clean || d.stamp.Epoch != offered.Epoch || d.stamp.Seq < offered.Seq) {
		// Its records ran out between the Open and now: it would not send them.
		r.counters.ResumeLost++
		return []wire.Delivery{{To: []netip.Addr{dev}, Msg: &wire.Notification{Code: wire.CodeCease, Text: "there is nothing to resume from any more; try again"}}}
	}
	if offered == nil { // it says everything again
		d.refusals = refusals{were: d.refused}
	} else if d.again != notAgain {
		d.again = askAgain
	}
	d.untold = d.again == askAgain || len(d.outside) > 0 || len(d.refused) > 0
	d.session = session{up: true, offered: offered}
	r.unended[d] = struct{}{}
	r.moves++
	if seen != nil {
		d.zoned, d.holds = seen.Zones, seen.Epoch != r.epoch
	}
	d.gen++
	r.agesNot(d)
	r.schedule()
	if d.out = wire.CheckResume(seen, r.epoch, r.feed.base, r.feed.seq); d.out.Resumed && !d.whole {
		d.out = wire.Full("the sender no longer follows what the receiver holds")
	}
	r.disown(d)
	if d.out.Resumed {
		r.counters.Resumed++
		d.missed = &seen.Seq
	} else {
		r.beginSync(d)
	}
	return append(r.tellBound(d), r.out(now)...)
}

func (r *Reflector) joined() int {
	n := 0
	for _, d := range r.devices {
		if d.up {
			n++
		}
	}
	return n
}

// Leave says that the session of a device ended: its records become stale and are
// withdrawn when it is not back within the grace time.
func (r *Reflector) Leave(dev netip.Addr, now time.Time) []wire.Delivery {
	d := r.devices[dev]
	if d == nil || !d.up {
		return nil
	}
	r.endsNot(d)
	d.session, d.left = session{}, now
	delete(r.unended, d)
	r.disown(d)
	r.moves++
	if len(d.lingers)+len(d.fenced) > 0 {
		t := r.begin()
		r.lingersNot(t, d)
		t.dropFences(d, 0)
		r.commit(t, r.ownCause())
	}
	if d.empty() && !d.whole {
		r.forget(d)
	} else {
		d.expires = now.Add(r.cfg.Grace)
	}
	r.schedule()
	return r.out(now)
}

// forget drops a device without records. The zones that name its ports remember
// it by themselves.
func (r *Reflector) forget(d *device) {
	r.agesNot(d)
	d.whole, d.clean = false, false
	r.moves++
	r.whole(d)
	d.outside = nil
	delete(r.interest.all, d.id)
	if len(d.zones) == 0 {
		delete(r.devices, d.id)
	}
}
