package sim

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/cluster"
	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/testbed/truth"
	"github.com/openinof/inof/zone"
)

// This file is about several reflectors whose zones differ: for a moment, for a while,
// or over a whole comparison with the truth.

// several reports whether there is more than one reflector. With one nothing here draws
// a random number, so that what a seed of one reflector means does not depend on it.
func (w *world) several() bool { return len(w.reflectors) > 1 }

// concerned are the reflectors at which an operator makes the next change of zones: all
// of them, or with several now and then only one.
func (w *world) concerned() []*device {
	if w.several() && w.rough && w.chance(0.3) {
		return []*device{pick(w, w.reflectors)}
	}
	return w.reflectors
}

// lag is how long after the decision a reflector has new zones.
func (w *world) lag() time.Duration {
	if w.several() && w.chance(0.2) {
		return w.short(40 * time.Second)
	}
	return w.short(500 * time.Millisecond)
}

// differ reports whether the reflectors are to have different zones.
func (w *world) differ() bool {
	return slices.ContainsFunc(w.reflectors, func(r *device) bool { return r.want != w.reflectors[0].want })
}

// unify gives all reflectors the newest zones.
func (w *world) unify() {
	if w.quorum == nil && w.differ() {
		w.configure(w.zones.now().Set, nil, cluster.Entry{})
	}
}

// sets are the configurations of all reflectors at present, each different one once; of a
// cluster the newest one.
func (w *world) sets() []zone.Set {
	if w.quorum != nil {
		return []zone.Set{w.zones.now().Set}
	}
	var vs []int
	for _, r := range w.reflectors {
		if !slices.Contains(vs, r.version) {
			vs = append(vs, r.version)
		}
	}
	slices.Sort(vs)
	var out []zone.Set
	for _, v := range vs {
		out = append(out, w.zones[v])
	}
	return out
}

// agreed is what follows from what the reflectors have.
func (w *world) agreed() truth.Zones { return truth.Agree(w.agree == client.AgreeUnion, w.sets()...) }

// heldOf is the oldest version of a reflector's zones that may be in force at a device:
// what it has not withdrawn yet stands.
func (d *device) heldOf(r *device) int {
	if r == d {
		return r.version
	}
	return d.held[r.id]
}

// heldWords is what heldOf says of all reflectors.
func (d *device) heldWords() string {
	s := ""
	for _, r := range d.w.reflectors {
		s += fmt.Sprintf(" %s from %d of %v", r.name, d.heldOf(r), r.had)
	}
	return s
}

// doubt is what a device may hold of every reflector, newest first. The members of a cluster speak
// as the one of them that is furthest.
func (w *world) doubt(d *device) truth.Doubt {
	out := truth.Doubt{Union: w.agree == client.AgreeUnion, All: d.hearsAll()}
	if w.quorum != nil {
		held := 0
		for _, r := range w.reflectors {
			held = max(held, d.heldOf(r))
		}
		out.Voices = [][]zone.Set{w.zones[held:]}
		return out
	}
	for _, r := range w.reflectors {
		var may []zone.Set
		for i := len(r.had) - 1; i >= 0 && r.had[i] >= d.heldOf(r); i-- {
			may = append(may, w.zones[r.had[i]])
		}
		out.Voices = append(out.Voices, may)
	}
	return out
}

// mayShare reports whether a device may tell that two addresses are in one zone.
func (w *world) mayShare(a, b netip.Addr, d *device) bool {
	return w.doubt(d).MayShare(w.known(a), w.known(b))
}

// hearsAll reports whether a device has the complete view of every reflector. Of one
// within itself nobody can tell from outside whether it waits for somebody.
func (d *device) hearsAll() bool {
	for _, r := range d.w.reflectors {
		e := d.dialed[r.id]
		if e == nil || !e.Up || !e.heard {
			return false
		}
	}
	return true
}

// bothUnzoned reports whether each of two addresses was in the default zone of some
// configuration that the device may hold, though never both at once.
func (w *world) bothUnzoned(a, b netip.Addr, d *device) bool {
	doubt := w.doubt(d)
	return doubt.MayBeDefault(w.known(a)) && doubt.MayBeDefault(w.known(b))
}
