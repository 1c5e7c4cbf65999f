package sim

import (
	"net/netip"
	"slices"
	"time"

	core "github.com/openinof/inof/device"
)

// This file is what a device keeps: rows, which a killed process leaves behind, and which
// come to its disk some time later. A power cut takes what has not come there yet, and
// the carrier of all its ports; a disk that is lost takes all.

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

// look has the naive table changed and keeps what is new in it. That a registration was
// repeated is not.
func (d *device) look(change func()) {
	before := d.seen.clone()
	change()
	d.w.turned(before, d.seen)
	d.keepSeen(before)
}

func (d *device) keepSeen(before table) {
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

// load gives what the last process kept. A new device has nothing to be careful about.
func (d *device) load() core.State {
	f := d.disk.Begin()
	f.Rows = append(f.Rows, d.store.Begin().Rows...)
	st, bad := core.StateOf(f)
	for _, p := range bad {
		d.w.failf("%s: %v", d.name, &p)
	}
	st.Incomplete = st.Incomplete && d.life > 1
	return st
}

// kept is the naive table as the next process would get it.
func (d *device) kept() table {
	t := d.diskSeen.clone()
	for _, o := range d.tailSeen {
		t.do(o)
	}
	return t
}

// save plans the next transaction of the disk.
func (d *device) save() {
	w := d.w
	if w.cfg.NoSave || d.saving || d.disk.Pending()+d.store.Pending() == 0 {
		return
	}
	d.saving = true
	life := d.life
	w.after(w.disks.between(time.Millisecond, 150*time.Millisecond), func() {
		if !d.running || d.life != life {
			return
		}
		rows, said, ops := d.disk.Pending(), d.store.Pending(), len(d.tailSeen)
		w.after(w.disks.short(50*time.Millisecond), func() {
			if d.running && d.life == life {
				d.store.Commit(said)
				d.commit(rows, ops)
				d.saving = false
				d.save()
			}
		})
	})
}

// commit brings rows to the disk, and what the naive table had changed by then.
func (d *device) commit(rows, ops int) {
	d.disk.Commit(rows)
	for _, o := range d.tailSeen[:ops] {
		d.diskSeen.do(o)
	}
	d.tailSeen = slices.Clone(d.tailSeen[ops:])
}

// powerCut takes the power from a device whose process has just ended.
func (d *device) powerCut() {
	d.w.tracef("%s has no power, and %d rows that are not on its disk", d.name, d.disk.Pending())
	had := d.toldRows()
	d.disk.PowerCut()
	has := d.toldRows()
	for k, seq := range had {
		if s := d.w.wire[k]; has[k] != seq && s != nil && s.Seq == seq {
			s.unsaved = true
		}
	}
	d.tailSeen = nil
	d.forgotten()
	d.dark = true
	for _, l := range d.ports {
		l.refresh()
		l.changes, l.known = 0, -1
	}
}

// toldRows gives the numbers of the last notices that the next process would know.
func (d *device) toldRows() map[pairKey]uint32 {
	out := map[pairKey]uint32{}
	st, _ := core.StateOf(d.disk.Look())
	for _, h := range st.Told.Hosts {
		for _, t := range h.Told {
			out[pairKey{d.id, h.Addr, t.Subject}] = t.Seq
		}
	}
	return out
}

// lose takes everything off the disk of a device that does not run. What it had told
// its reflectors stays in force there until it has had the time to hear its hosts.
func (d *device) lose() {
	d.w.tracef("%s loses its state", d.name)
	d.disk.Lose()
	d.store.Lose()
	d.diskSeen, d.tailSeen = nil, nil
	if d.member != nil && !d.w.quorum.lacks() {
		d.w.tracef("%s loses its log", d.name)
		d.member.wipe()
	}
	d.forgotten()
	d.holding = true
}

// holdBack is how long after its start a device without state takes nothing back.
const holdBack = 120 * time.Second

// lastWord is how long after that time its full sync may be on its way.
const lastWord = 30 * time.Second

// lapse ends that time, when the reflectors can have heard what the device takes back then.
func (d *device) lapse() {
	life := d.life
	var look func(heard bool)
	look = func(heard bool) {
		switch {
		case !d.running || d.life != life:
		case heard && d.hearsAll():
			d.holding = false
			d.w.changed = d.w.now
		default:
			now := d.hearsAll()
			d.w.after(lastWord, func() { look(now) })
		}
	}
	d.w.after(holdBack, func() { look(false) })
}

// haunted reports whether some device may still be said to have the address, because it
// lost its state and had it, whether that was withdrawn in time or not.
func (w *world) haunted(a netip.Addr) bool {
	return slices.ContainsFunc(w.devices, func(d *device) bool { return d.holding && d.ever[a] })
}
