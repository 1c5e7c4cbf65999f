package reflector

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// dump is how far a full sync has come with the tables: what is ahead. It goes through them
// as they are at each step. What is put into a table meanwhile is behind it, and posted as
// any change; so each key is told that is there throughout, and now and then one twice.
type dump struct {
	zones, hosts int          // of rolls
	few          []netip.Addr // of hosts only these; nil: all that the roll has
}

// fewMost: of a device that is concerned with no more hosts than this only those are looked at.
const fewMost = 1024

// beginSync lets a device be told everything that concerns it, but for the zones where those
// that it holds are still the same.
func (r *Reflector) beginSync(d *device) {
	r.disown(d)
	d.whole = false
	r.moves++
	b := &backlog{users: 1, full: true, anew: true, dump: r.dump(d)}
	if d.zoned.Known() && d.zoned == r.interest.digest {
		b.anew, b.dump.zones = false, 0
		r.counters.ZonesAlike++
	}
	b.put(news{feedKey: feedKey{kind: keySettings}})
	r.owe([]*device{d}, b)
	r.more = true
}

// large reports whether who comes to a zone is told of its hosts a few at a time.
func (r *Reflector) large(a *area) bool { return len(a.hosts) > fewMost || r.cfg.SyncStep == 1 }

// dump gives what a full sync of a device goes through.
func (r *Reflector) dump(d *device) *dump {
	in := &r.interest
	most := fewMost
	if r.cfg.SyncStep > 0 {
		most = 0
	}
	if _, all := in.all[d.id]; all {
		most = -1
	}
	n := len(d.hosts)
	for name := range d.zones {
		if in.areas[name] != nil {
			n += len(in.areas[name].hosts)
		}
		if n > most {
			break
		}
	}
	if n > most {
		return &dump{zones: math.MaxInt, hosts: math.MaxInt}
	}
	addrs := map[netip.Addr]struct{}{}
	for k := range d.hosts {
		addrs[k.Addr] = struct{}{}
	}
	for name := range d.zones {
		for a := range in.areas[name].hosts {
			addrs[a] = struct{}{}
		}
	}
	few := slices.AppendSeq(make([]netip.Addr, 0, len(addrs)), maps.Keys(addrs))
	slices.SortFunc(few, netip.Addr.Compare)
	return &dump{zones: math.MaxInt, hosts: len(few), few: few}
}

// catchUp tells a device whose session resumes what it has missed. Not before its
// own sync: what it missed may follow from what it had said before, and be undone by
// what it says now; of each record only the latest state is told.
func (r *Reflector) catchUp(d *device, now time.Time) {
	if d.missed == nil {
		return
	}
	seq := *d.missed
	d.missed = nil
	r.moves++
	if d.out = wire.CheckResume(&wire.Resume{Epoch: r.epoch, Seq: seq}, r.epoch, r.feed.base, r.feed.seq); !d.out.Resumed { // trimmed meanwhile
		r.beginSync(d)
		return
	}
	d.resumes = true
	if b := r.feed.since(seq, d); b.empty() {
		r.ends = true
	} else {
		// What comes late because of an outage is not measured, as in a full sync.
		late := &cause{origin: b.last.origin, epoch: b.last.epoch, seq: b.last.seq, sent: now}
		b.users, b.last = 1, late
		for k, n := range b.keys {
			n.by = late
			b.keys[k] = n
		}
		r.owe([]*device{d}, b)
		r.more = true
	}
}
