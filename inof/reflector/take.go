package reflector

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// What a client says of its hosts, as the reflector takes it in.

func (r *Reflector) update(d *device, u *wire.Update, now time.Time) error {
	r.counters.UpdatesIn++
	if u.Epoch != d.stamp.Epoch || u.Seq > d.stamp.Seq {
		d.stamp = wire.Stamp{Epoch: u.Epoch, Seq: u.Seq}
	}
	d.clean = !u.Partial && (d.clean || d.synced)
	r.counters.RecordsIn += uint64(u.Records())
	t := r.begin()
	r.isBack(t, d)
	// What a device that resumes sends has changed meanwhile, maybe back to what is
	// known here: those who heard of it from elsewhere must hear this.
	t.repeat = u.Partial && d.offered != nil && !d.synced
	var refused wire.RefusedError
	refuse := func(err error, counter *uint64) {
		*counter++
		if refused.Refused++; refused.First == nil {
			refused.First = err
		}
	}
	if u.Settings != nil || len(u.Zones) > 0 {
		refuse(&OwnerError{Record: "zone configuration", Owner: "reflectors", Sender: d.id.String()}, &r.counters.NotOwned)
	}
	for i := range u.Hosts {
		if counter, err := r.takeHost(t, d, &u.Hosts[i]); err != nil {
			refuse(err, counter)
		}
	}
	for i := range u.Downs {
		if rec := &u.Downs[i]; rec.Device != d.id {
			refuse(&OwnerError{Record: "hosts at port " + rec.Port, Owner: rec.Device.String(), Sender: d.id.String()}, &r.counters.NotOwned)
		} else {
			r.takeDown(t, d, rec)
		}
	}
	for i := range u.Fences {
		if counter, err := r.takeFence(t, d, &u.Fences[i]); err != nil {
			refuse(err, counter)
		}
	}
	came := u.ReceivedAt
	if came.IsZero() {
		came = now
	}
	by := &cause{origin: d.id, epoch: u.Epoch, seq: u.Seq, fault: u.FaultAt, decided: u.DecidedAt, sent: u.SentAt, came: came}
	lost := t.lost
	r.commit(t, by)
	r.tellLost(d, lost, by)
	if refused.Refused > 0 {
		return &refused
	}
	return nil
}

func (r *Reflector) takeHost(t *change, d *device, h *wire.HostRecord) (*uint64, error) {
	k := h.Host.HostKey
	_, known := d.hosts[k]
	switch {
	case k.Device != d.id:
		return &r.counters.NotOwned, &OwnerError{Record: "host " + k.Addr.String(), Owner: k.Device.String(), Sender: d.id.String()}
	case h.Op == wire.Withdraw:
		if known {
			r.removeHost(t, d, k, h.Why)
		} else {
			t.lose(d, k, h.Why)
		}
		r.unrefuse(d, k)
		r.inside(d, k)
		return nil, nil
	case (zone.Rules{AllowLoopback: true}).CheckAddr(k.Addr) != nil:
		return &r.counters.BadRecords, wire.Malformed("host", "%v is no address of a host", k.Addr)
	}
	if err := r.bound(t, d, &h.Host); err != nil {
		return &r.counters.Outside, err
	}
	if !known {
		if err := r.hostFits(d, k); err != nil {
			return &r.counters.OverLimit, err
		}
		r.hosts++
	}
	if d.hosts == nil {
		d.hosts = map[zone.HostKey]uint32{}
	}
	d.hosts[k] = d.gen
	r.unrefuse(d, k)
	if t.repeat {
		r.touch(t, k.Addr)
	}
	r.putHost(t, &h.Host)
	t.taken = append(t.taken, k)
	return nil, nil
}

// endOfSync ends the sync of a device, when what it did not repeat is removed.
func (r *Reflector) endOfSync(d *device, m *wire.EndOfSync, now time.Time) {
	d.stamp, d.clean = wire.Stamp{Epoch: m.Epoch, Seq: m.Seq}, true
	switch {
	case d.ending != nil: // it says so again
	case m.Resumed || r.beginSweep(d) <= r.dropMost():
		r.synced(d, m, now)
	default:
		d.ending, d.swept = m, now
		r.ageing++
		r.schedule()
	}
}

// endSyncs goes on with the sync that waits longest for the rest of what was not repeated.
func (r *Reflector) endSyncs(now time.Time) {
	due := r.due(now, (*device).sweeps)
	if len(due) == 0 {
		return
	}
	d := slices.MinFunc(due, func(a, b *device) int { return a.swept.Compare(b.swept) })
	r.dropped = now
	if m := d.ending; len(d.unsaid) <= r.dropMost() {
		d.ending = nil
		r.ageing--
		r.synced(d, m, now)
		r.tellRefusal(d)
		return
	}
	t := r.begin()
	r.sweep(t, d, r.dropMost())
	r.commit(t, r.ownCause())
	d.swept = now
}

// synced removes what the device did not repeat in this session, unless it
// needed not, or has started without its state and does not know yet what it has.
func (r *Reflector) synced(d *device, m *wire.EndOfSync, now time.Time) {
	r.counters.Syncs++
	d.in = wire.ResumeKind{Done: true, Resumed: m.Resumed}
	t := r.begin()
	r.isBack(t, d)
	t.dropFences(d, d.gen)
	switch {
	case m.Resumed && (d.offered == nil || d.offered.Epoch != m.Epoch):
		r.counters.HeldBack++
		d.in = wire.Full("the sender has started without its state: nothing is removed yet")
		d.forgot = d.gen // it stays awaited: others are not told of what it lacks
	case m.Resumed:
		r.counters.ResumedIn++
	default:
		if d.forgot = 0; !d.beyond {
			for _, k := range slices.SortedFunc(maps.Keys(d.were), zone.CompareKeys) {
				if _, still := d.refused[k]; !still && d.hosts[k] == 0 {
					t.lost = append(t.lost, goneKey(k, snsd.ReasonAgedOut))
				}
			}
		}
		d.were = nil
		r.sweep(t, d, math.MaxInt)
		if d.saidAgain(); len(d.refused) == 0 {
			r.whole(d)
		}
	}
	lost := t.lost
	r.commit(t, r.ownCause())
	r.tellLost(d, lost, r.ownCause())
	d.synced, r.ends = true, true
	if d.forgot == 0 {
		delete(r.awaited, d.id)
	}
	r.schedule()
	r.catchUp(d, now)
}

// isBack takes a device for present again.
func (r *Reflector) isBack(t *change, d *device) {
	if d.away {
		d.away = false
		r.touchContested(t, r.dir.SetAway(d.id, false))
	}
}
