package inof

import (
	"math"
	"net/netip"
	"slices"
	"time"
)

// A full sync is made in steps, each of about one message, so that what happens
// meanwhile waits for one step and not for all of it. The tables are gone through as
// they are at each step. Of what changes meanwhile a device in its sync is told at its
// next step: of a record that it has already got. What is still ahead comes as
// it is by then. So it holds at any moment the present state of what it was sent, and
// after the last step of everything.

const (
	syncVisits = 2048 // records that a step looks at
	// A device that is concerned with more than this, hosts and members of zones, gets
	// its full sync in steps; below, looking at its own zones costs less.
	syncAtOnce = 1024
)

// syncing is a full sync under way.
type syncing struct {
	zones, hosts int                  // keys ahead, see keyList
	told         map[portKey]struct{} // faults it was sent
	wait         coalescer            // changes of what it was sent
	blocked      bool                 // its session has not yet taken the last step
}

// beginSync opens the full sync of a device and gives the first step.
func (r *Reflector) beginSync(d *device, now time.Time) []Delivery {
	r.endSync(d)
	d.whole = false
	if !r.concernsMuch(d) {
		b := r.view(d)
		b.Hosts, b.Standings = append(b.Hosts, r.ownHosts(d)...), d.answers()
		return anew(r.deliver(nil, &b, []netip.Addr{d.id}, r.ownStamps(now), nil))
	}
	d.sync = &syncing{zones: math.MaxInt, hosts: math.MaxInt, told: map[portKey]struct{}{}}
	d.sync.wait.add(&Update{Settings: r.settings(), Standings: d.answers()})
	r.syncs = append(r.syncs, d)
	r.moves++
	return anew(r.syncStep(d, now))
}

// anew marks the first message of a full sync. There is one: it has the settings.
func anew(out []Delivery) []Delivery {
	out[0].Msg.(*Update).Anew = true
	return out
}

// endSync forgets the full sync of a device, done or not.
func (r *Reflector) endSync(d *device) {
	if d.sync != nil {
		d.sync = nil
		r.syncs = slices.DeleteFunc(r.syncs, func(o *device) bool { return o == d })
		r.moves++
		if len(r.syncs) == 0 {
			r.interest.zoneKeys.tidy()
			r.interest.addrKeys.tidy()
		}
	}
}

// concernsMuch tells whether a full sync of a device is to be made in steps.
func (r *Reflector) concernsMuch(d *device) bool {
	most := syncAtOnce
	if r.cfg.SyncStep > 0 {
		most = 0
	}
	if _, all := r.interest.all[d.id]; all {
		return len(r.interest.zones)+r.interest.members+len(r.interest.addrs) > most
	}
	n := len(d.hosts)
	for name := range d.zones {
		n += 1 + len(r.interest.zones[name].Members)
		if a := r.interest.areas[name]; a != nil {
			n += len(a.hosts)
		}
		if n > most {
			return true
		}
	}
	return n > most
}

// Drained says that the session of a device has taken what it was given, if the full
// sync of that device waits for it (ReflectorConfig.Paced).
func (r *Reflector) Drained(dev netip.Addr, now time.Time) {
	if d := r.devices[dev]; d != nil && d.sync != nil && d.sync.blocked {
		d.sync.blocked = false
		r.stepAt = now
	}
}

// Undrained appends the devices whose full sync waits for Drained.
func (r *Reflector) Undrained(dst []netip.Addr) []netip.Addr {
	for _, d := range r.syncs {
		if d.sync.blocked {
			dst = append(dst, d.id)
		}
	}
	return dst
}

// Syncing tells whether a step of a full sync is due: Tick makes it.
func (r *Reflector) Syncing() bool {
	return slices.ContainsFunc(r.syncs, func(d *device) bool { return !d.sync.blocked })
}

// step goes on with the full sync that waits longest.
func (r *Reflector) step(now time.Time) []Delivery {
	i := slices.IndexFunc(r.syncs, func(d *device) bool { return !d.sync.blocked })
	if i < 0 {
		return nil
	}
	d := r.syncs[i]
	r.syncs = append(slices.Delete(r.syncs, i, i+1), d)
	return r.syncStep(d, now)
}

// syncStep tells a device what has changed of what it was sent, and the next records.
func (r *Reflector) syncStep(d *device, now time.Time) []Delivery {
	s := d.sync
	r.counters.SyncSteps++
	r.stepAt = now
	news := s.wait.batch()
	s.wait = coalescer{}
	for i := range news.Faults {
		f := &news.Faults[i]
		switch f.Op { // after a Change the whole still comes with the first host that is ahead
		case Put:
			s.told[portKey{f.Device, f.Port}] = struct{}{}
		case Withdraw:
			delete(s.told, portKey{f.Device, f.Port})
		}
	}
	to := []netip.Addr{d.id}
	out := r.deliver(nil, &news, to, r.ownStamps(now), nil)
	b := r.nextRecords(d)
	out = r.deliver(out, &b, to, r.ownStamps(now), nil)
	if s.zones == 0 && s.hosts == 0 {
		r.endSync(d)
		out = r.tell(out, now)
	} else {
		s.blocked = r.cfg.Paced && len(out) > 0
	}
	return out
}

// nextRecords are the next records of a full sync: all zones before the hosts, and the
// faults of ports with the first host there.
func (r *Reflector) nextRecords(d *device) (b batch) {
	s, in := d.sync, &r.interest
	visits, room := syncVisits, SyncChunk
	if n := r.cfg.SyncStep; n > 0 {
		visits = n
	}
	for s.zones = min(s.zones, len(in.zoneKeys.list)); s.zones > 0 && visits > 0 && room > 0; visits-- {
		s.zones--
		if name := in.zoneKeys.list[s.zones]; name != "" && in.concerned(d.id, name) {
			z := ZoneRecord{Op: Put, Zone: in.zones[name]}
			b.Zones, room = append(b.Zones, z), room-z.size()
		}
	}
	if s.zones > 0 {
		b.sort()
		return b
	}
	for s.hosts = min(s.hosts, len(in.addrKeys.list)); s.hosts > 0 && visits > 0 && room > 0; visits-- {
		s.hosts--
		addr := in.addrKeys.list[s.hosts]
		if !in.knows(d.id, addr) {
			continue
		}
		e := in.addrs[addr]
		for i := range e.atts {
			h := &e.atts[i]
			if h.Device == d.id && !d.placed(h.HostKey) {
				continue
			}
			b.Hosts = append(b.Hosts, HostRecord{Op: Put, Host: *h})
			room -= b.Hosts[len(b.Hosts)-1].size()
			pk := portKey{h.Device, h.HostKey.Port}
			if _, ok := s.told[pk]; ok || h.Device == d.id {
				continue
			}
			if f := r.faultView(d.id, pk); f != nil {
				s.told[pk] = struct{}{}
				b.Faults, room = append(b.Faults, *f), room-f.size()
			}
		}
	}
	b.sort()
	return b
}

// keepForSyncs keeps a change for those of its receivers that are in their full sync.
func (r *Reflector) keepForSyncs(u *Update, to *receivers) {
	for _, d := range r.syncs {
		if to.has(d.id) {
			if p := r.sent(d.sync, u); !p.Empty() {
				d.sync.wait.add(p)
			}
		}
	}
}

// sent is what of an Update is not ahead in a full sync.
func (r *Reflector) sent(s *syncing, u *Update) *Update {
	p := &Update{Origin: u.Origin, Settings: u.Settings, Faults: u.Faults, Standings: u.Standings}
	for i := range u.Zones {
		if z := &u.Zones[i]; z.Op == Withdraw || !r.interest.zoneKeys.ahead(z.Zone.Name, s.zones) {
			p.Zones = append(p.Zones, *z)
		}
	}
	for i := range u.Hosts {
		h := &u.Hosts[i]
		if h.Op == Withdraw || !r.interest.addrKeys.ahead(h.Host.Addr, s.hosts) {
			p.Hosts = append(p.Hosts, *h)
		}
	}
	return p
}
