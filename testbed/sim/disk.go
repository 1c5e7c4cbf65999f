package sim

import (
	"encoding/json"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/internal/daemon"
)

// This file is what a device's disk holds: a state that is written some time after it
// changed, and a journal of what came after, which is written at once. A crash loses
// neither; a disk that is lost loses all.

// seenOp is a change of the naive table of a device.
type seenOp struct {
	claimant
	gone bool
}

func (t *table) do(o seenOp) {
	i := slices.IndexFunc(*t, func(c claimant) bool { return c.link == o.link && c.key == o.key })
	switch {
	case o.gone && i >= 0:
		*t = slices.Delete(*t, i, i+1)
	case o.gone:
	case i >= 0:
		old := (*t)[i]
		(*t)[i] = o.claimant
		if !o.confirmed { // that a port is down says nothing of when it was heard last
			(*t)[i].expires = old.expires
		}
	default:
		*t = append(*t, o.claimant)
	}
}

// look has the naive table changed and journals what is new in it. That a registration
// was repeated is not.
func (d *device) look(change func()) {
	before := d.seen.clone()
	change()
	d.journalSeen(before)
}

func (d *device) journalSeen(before table) {
	if d.w.cfg.NoSave {
		return
	}
	same := func(a, b claimant) bool {
		a.expires, b.expires = 0, 0
		return a == b
	}
	for _, c := range d.seen {
		if !slices.ContainsFunc(before, func(o claimant) bool { return same(c, o) }) {
			d.tailSeen = append(d.tailSeen, seenOp{claimant: c})
			d.ever[c.addr] = true
		}
	}
	for _, o := range before {
		if !slices.ContainsFunc(d.seen, func(c claimant) bool { return c.link == o.link && c.key == o.key }) {
			d.tailSeen = append(d.tailSeen, seenOp{o, true})
		}
	}
}

// journal writes what the Core has to add to its state.
func (d *device) journal() {
	for _, e := range d.core.Journal() {
		b, err := json.Marshal(e)
		if err != nil {
			d.w.failf("%s: journal: %v", d.name, err)
		}
		if !d.w.cfg.NoSave {
			d.tail = append(d.tail, b)
		}
	}
}

// load reads the state and the journal. A device that was killed before it wrote its
// first state has lost it.
func (d *device) load() daemon.State {
	st := daemon.State{Incomplete: d.disk == nil && d.life > 1} // a new device has nothing to be careful about
	if d.disk != nil {
		if err := json.Unmarshal(d.disk, &st); err != nil {
			d.w.failf("%s: state: %v", d.name, err)
		}
	}
	entries := make([]daemon.JournalEntry, len(d.tail))
	for i, b := range d.tail {
		if err := json.Unmarshal(b, &entries[i]); err != nil {
			d.w.failf("%s: journal: %v", d.name, err)
		}
	}
	st.Replay(entries)
	return st
}

// kept is the naive table as the disk has it.
func (d *device) kept() table {
	t := d.diskSeen.clone()
	for _, o := range d.tailSeen {
		t.do(o)
	}
	return t
}

// save plans the writing of the state when it has changed.
func (d *device) save() {
	w := d.w
	if w.cfg.NoSave || d.saving || d.core.Revision() == d.revision {
		return
	}
	d.saving = true
	life := d.life
	w.after(w.between(50*time.Millisecond, time.Second), func() {
		if !d.running || d.life != life {
			return
		}
		st, at := d.core.State(w.time()), w.now
		d.revision = d.core.Revision()
		d.seen.expire(w.now, d)
		seen, journaled, ops := d.seen.clone(), len(d.tail), len(d.tailSeen)
		w.after(w.short(50*time.Millisecond), func() {
			if d.running && d.life == life {
				d.write(st, at, seen)
				d.tail, d.tailSeen = slices.Clone(d.tail[journaled:]), slices.Clone(d.tailSeen[ops:])
				d.saving = false
				d.save()
			}
		})
	})
}

func (d *device) write(st daemon.State, at time.Duration, seen table) {
	b, err := json.Marshal(st)
	if err != nil {
		d.w.failf("%s: state: %v", d.name, err)
	}
	d.disk, d.diskAt, d.diskSeen = b, at, seen
}

// lose takes everything off the disk of a device that does not run. What it had told
// its reflectors stays in force there until it has had the time to hear its hosts.
func (d *device) lose() {
	d.w.tracef("%s loses its state", d.name)
	d.disk, d.diskAt, d.diskSeen, d.tail, d.tailSeen = nil, 0, nil, nil, nil
	d.forgotten()
	d.holding = true
}

// holdBack is how long after its start a device without state takes nothing back.
const holdBack = 120 * time.Second

// lastWord is how long after that time its full sync may be on its way.
const lastWord = 30 * time.Second

// lapse ends that time.
func (d *device) lapse() {
	life := d.life
	d.w.after(holdBack+lastWord, func() {
		if d.running && d.life == life {
			d.holding = false
			d.w.changed = d.w.now
		}
	})
}

// haunted tells whether some device may still be said to have the address, because it
// lost its state and had it, whether that was withdrawn in time or not.
func (w *world) haunted(a netip.Addr) bool {
	return slices.ContainsFunc(w.devices, func(d *device) bool { return d.holding && d.ever[a] })
}
