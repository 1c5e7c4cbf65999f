package reflector

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// device is one client, with or without a session.
type device struct {
	id netip.Addr
	session
	heard
	refusals
	holdings
	delivery
	concern
	fences
}

// session is what is known of the session that a device has: the next one begins with none of it.
type session struct {
	up      bool
	synced  bool            // it has said all that it has to say
	told    bool            // it has got our End-of-Sync
	holds   bool            // it holds what an earlier start of this reflector said
	zoned   wire.ZoneDigest // the zones that it held of us when the session began
	offered *wire.Resume    // after which stamp our Open said that it may resume
	out, in wire.ResumeKind // what it was sent, and what it sent
	// missed is set from the beginning of a session that resumes to the device's
	// End-of-Sync: what comes after this number of the feed waits for what it has to say itself.
	missed  *uint64
	resumes bool // it is told what it had missed
	// ending is the end of its sync, while unsaid, what it has not repeated, is dropped; nil: it is
	// not. Some of that was at swept.
	ending *wire.EndOfSync
	unsaid keyHeap
	swept  time.Time
}

// heard is what a device has said, in this session and in those before.
type heard struct {
	hosts map[zone.HostKey]uint32 // the session that said it last
	stamp wire.Stamp              // of its last message: the state its records are of
	clean bool                    // stamp covers all that it said: it may resume after it
	gen   uint32                  // number of its session, from 1
	// forgot is the session since which it says what it knows after a start without its
	// state: it may not know all its records yet. 0: it does.
	forgot  uint32
	left    time.Time // when its session ended
	away    bool      // for so long that its claims yield to others
	expires time.Time // when its records do; zero: not
	ages    keyHeap   // those that are left since then; nil: they do not yet
}

// holdings is what a device has been told, in this session and in those before.
type holdings struct {
	whole bool // it holds, or the feed has, all that concerns it
	// spared are the devices, sorted, of which some hosts may be missing here since before the
	// End-of-Sync of its last full sync, which named them.
	spared []netip.Addr
	// endsSpared: one of them is whole, or gone, and the device has to hear of that.
	endsSpared bool
}

// delivery is what a device is still to be told.
type delivery struct {
	owed    *backlog // nil: nothing
	owing   bool     // it is in Reflector.owing
	handing *handing // what it is given next, before anything else; nil: nothing
	turn    *turn    // while fresh posts are handed out
}

// concern is what a device has to hear of.
type concern struct {
	// zones it is concerned with: attachments and configured ports in them, and one while it
	// lingers.
	zones        map[string]int
	lingers      map[string]struct{} // zones that it is about to leave
	lingersUntil time.Time
	lately       lately // how often its keys have changed
}

func (r *Reflector) device(id netip.Addr) *device {
	d := r.devices[id]
	if d == nil {
		d = &device{id: id, concern: concern{zones: map[string]int{}}}
		r.devices[id] = d
	}
	return d
}

// Next is when Tick has something to do; zero: nothing.
func (r *Reflector) Next() time.Time { return r.next }

func (r *Reflector) schedule() {
	r.next = time.Time{}
	if len(r.awaited) > 0 || r.cfg.Unsure {
		r.next = r.patience
	}
	for _, d := range r.devices {
		for _, at := range [...]time.Time{d.expires, d.goesAway(), d.lingersUntil, d.sweeps()} {
			if !at.IsZero() && (r.next.IsZero() || at.Before(r.next)) {
				r.next = at
			}
		}
	}
	if pause := r.dropped.Add(dropPause); !r.next.IsZero() && r.next.Before(pause) {
		r.next = pause
	}
}

// due are the devices for which a time has come, sorted; none comes at zero.
func (r *Reflector) due(now time.Time, at func(d *device) time.Time) (list []*device) {
	for _, d := range r.devices {
		if t := at(d); !t.IsZero() && !now.Before(t) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, compareDevices)
	return list
}

// sweeps is when more of what a device has not repeated is dropped; zero: all of it is.
func (d *device) sweeps() time.Time {
	if d.ending == nil {
		return time.Time{}
	}
	return d.swept.Add(dropPause)
}

// endsNot is for a device whose session has ended before its sync: it says everything again.
func (r *Reflector) endsNot(d *device) {
	if d.ending != nil {
		d.ending, d.clean = nil, false
		r.ageing--
	}
}

// agesNot is for a device that is back, or forgotten.
func (r *Reflector) agesNot(d *device) {
	d.expires = time.Time{}
	if d.ages != nil {
		d.ages = nil
		r.ageing--
	}
}

// follows tells whether a device is told of changes: now, or by the feed when it is
// back in time.
func (d *device) follows() bool { return d.up || d.whole }

// hears tells whether a device is told of a change at once.
func (d *device) hears() bool { return d.up && d.missed == nil }

func (d *device) empty() bool {
	return len(d.hosts) == 0
}

// outsideNamed are the addresses outside of which a device is told.
func (d *device) outsideNamed() []netip.Addr {
	var list []netip.Addr
	for k := range d.outside {
		list = append(list, k.Addr)
	}
	slices.SortFunc(list, netip.Addr.Compare)
	list = slices.Compact(list)
	return list[:min(len(list), wire.MaxOutsideNamed)]
}

// awayAfter is how long a device may be without a session before what it claims gives way
// to the claims of devices that have one: longer than a session takes to come back.
const awayAfter = 10 * time.Second

// goesAway is when a device counts as away; zero: it has a session, or does already.
func (d *device) goesAway() time.Time {
	if d.up || d.away || d.left.IsZero() {
		return time.Time{}
	}
	return d.left.Add(awayAfter)
}

func compareDevices(a, b *device) int { return a.id.Compare(b.id) }

func hasDevice(list []*device, d *device) bool {
	i, ok := slices.BinarySearchFunc(list, d, compareDevices)
	return ok && list[i] == d
}
