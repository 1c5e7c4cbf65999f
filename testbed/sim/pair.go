package sim

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/cluster"
	"github.com/openinof/inof/inof/client"
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

// inForce is what the reflectors agree on: the members that all name, or that one does.
func (w *world) inForce() zone.Set {
	sets := w.sets()
	out := sets[0]
	for _, s := range sets[1:] {
		out = w.agreeOn(out, s)
	}
	return out
}

func (w *world) agreeOn(a, b zone.Set) zone.Set {
	union := w.agree == client.AgreeUnion
	out := zone.Set{AutoJoin: a.AutoJoin && b.AutoJoin || union && (a.AutoJoin || b.AutoJoin)}
	for _, z := range a.Zones {
		o, both := b.Find(z.Name)
		switch {
		case union:
			out.Zones = append(out.Zones, zone.Zone{Name: z.Name, Members: slices.Concat(z.Members, o.Members)})
		case both:
			out.Zones = append(out.Zones, zone.Zone{Name: z.Name, Members: slices.DeleteFunc(slices.Clone(z.Members), func(m zone.Member) bool { return !slices.Contains(o.Members, m) })})
		}
	}
	for _, z := range b.Zones {
		if _, had := a.Find(z.Name); union && !had {
			out.Zones = append(out.Zones, z)
		}
	}
	return out.Canonical()
}

// agreed says in which zones an address is under what the reflectors agree on. One
// that some reflector puts into a zone is not in the default zone, also where the
// others do not agree.
func (w *world) agreed(set zone.Set, a netip.Addr, nqns []string, ports []zone.Member) []string {
	out := zonesOf(set, a, nqns, ports)
	if !slices.Equal(out, []string{zone.DefaultName}) {
		return out
	}
	for _, s := range w.sets() {
		s.AutoJoin = false
		if len(zonesOf(s, a, nqns, ports)) > 0 {
			return nil
		}
	}
	return out
}

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

// voice is what a device may hold of one that speaks for itself: a reflector, or a cluster,
// whose members speak as the one of them that is furthest.
type voice struct {
	had  []int // versions, oldest first
	held int   // the oldest one that may be in force at the device
}

// voices are those that a device hears.
func (w *world) voices(d *device) []voice {
	if w.quorum != nil {
		one := voice{}
		for v := range w.zones {
			one.had = append(one.had, v)
		}
		for _, r := range w.reflectors {
			one.held = max(one.held, d.heldOf(r))
		}
		return []voice{one}
	}
	var out []voice
	for _, r := range w.reflectors {
		out = append(out, voice{r.had, d.heldOf(r)})
	}
	return out
}

// mayHold gives the versions that may be in force, newest first.
func (v voice) mayHold(yield func(int) bool) {
	for i := len(v.had) - 1; i >= 0 && v.had[i] >= v.held; i-- {
		if !yield(v.had[i]) {
			return
		}
	}
}

// putTogether reports whether some configuration that a device may hold of a voice
// puts both addresses into one zone, under some claim to each.
func (w *world) putTogether(v voice, a, b netip.Addr) bool {
	for n := range v.mayHold {
		as, bs := w.couldBe(w.zones[n], a), w.couldBe(w.zones[n], b)
		if slices.ContainsFunc(as, func(z string) bool { return slices.Contains(bs, z) }) {
			return true
		}
	}
	return false
}

// mayShare reports whether a device may tell that two addresses are in one zone: if some
// reflector does, and where all have to agree and all are heard, if each does.
func (w *world) mayShare(a, b netip.Addr, d *device) bool {
	voices, together := w.voices(d), func(v voice) bool { return w.putTogether(v, a, b) }
	if w.agree == client.AgreeUnion && w.several() { // the two may be put into it by different ones
		as, bs := w.everIn(a, d), w.everIn(b, d)
		return slices.ContainsFunc(as, func(z string) bool { return slices.Contains(bs, z) })
	}
	if w.agree == client.AgreeIdentical && d.hearsAll() {
		return !slices.ContainsFunc(voices, func(v voice) bool { return !together(v) })
	}
	return slices.ContainsFunc(voices, together)
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
	return slices.Contains(w.everIn(a, d), zone.DefaultName) && slices.Contains(w.everIn(b, d), zone.DefaultName)
}

// everIn lists the zones of an address in every configuration of any reflector that a
// device may hold; the default zone too when one reflector has it and another one says
// that the address is in no zone.
func (w *world) everIn(a netip.Addr, d *device) []string {
	var out []string
	joins, free := false, false
	for _, v := range w.voices(d) {
		for n := range v.mayHold {
			set := w.zones[n]
			out = append(out, w.couldBe(set, a)...)
			joins = joins || set.AutoJoin
			set.AutoJoin = false
			free = free || len(w.couldBe(set, a)) == 0
		}
	}
	if joins && free {
		out = append(out, zone.DefaultName)
	}
	return out
}
