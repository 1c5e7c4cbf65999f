package change

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/openinof/inof/zone"
)

// Delta leads from one plan to another one: what is put in a new state, and what goes.
type Delta struct {
	Put    Plan    `json:"put"` // Active is not looked at
	Gone   Gone    `json:"gone"`
	Active *string `json:"active,omitempty"` // the zone set that is active then; nil: the same
}

// Gone are names of what a Delta removes.
type Gone struct {
	Aliases []string `json:"aliases,omitempty"`
	Zones   []string `json:"zones,omitempty"`
	Sets    []string `json:"zone_sets,omitempty"`
}

// Diff gives what leads from one plan to another one.
func Diff(from, to *Plan) (d Delta) {
	d.Put.Aliases, d.Gone.Aliases = diffMap(from.Aliases, to.Aliases, slices.Equal)
	d.Put.Zones, d.Gone.Zones = diffMap(from.Zones, to.Zones, Zone.equal)
	d.Put.Sets, d.Gone.Sets = diffMap(from.Sets, to.Sets, slices.Equal)
	if from.Active != to.Active {
		active := to.Active
		d.Active = &active
	}
	return d
}

func diffMap[V any](from, to map[string]V, equal func(a, b V) bool) (put map[string]V, gone []string) {
	for name, v := range to {
		if old, had := from[name]; !had || !equal(old, v) {
			if put == nil {
				put = map[string]V{}
			}
			put[name] = v
		}
	}
	for name := range from {
		if _, there := to[name]; !there {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return put, gone
}

// Empty reports whether a Delta changes nothing.
func (d *Delta) Empty() bool {
	return len(d.Put.Aliases)+len(d.Put.Zones)+len(d.Put.Sets)+len(d.Gone.Aliases)+len(d.Gone.Zones)+len(d.Gone.Sets) == 0 && d.Active == nil
}

// OnlyZones reports whether a Delta touches nothing but zones.
func (d *Delta) OnlyZones() bool {
	return len(d.Put.Aliases)+len(d.Put.Sets)+len(d.Gone.Aliases)+len(d.Gone.Sets) == 0 && d.Active == nil
}

// Apply changes the plan, and returns the Delta that leads back.
func (p *Plan) Apply(d *Delta) (back Delta) {
	back.Put.Aliases, back.Gone.Aliases = applyMap(&p.Aliases, d.Put.Aliases, d.Gone.Aliases)
	back.Put.Zones, back.Gone.Zones = applyMap(&p.Zones, d.Put.Zones, d.Gone.Zones)
	back.Put.Sets, back.Gone.Sets = applyMap(&p.Sets, d.Put.Sets, d.Gone.Sets)
	if d.Active != nil && *d.Active != p.Active {
		old := p.Active
		back.Active, p.Active = &old, *d.Active
	}
	return back
}

func applyMap[V any](m *map[string]V, put map[string]V, gone []string) (backPut map[string]V, backGone []string) {
	keep := func(name string) bool {
		old, had := (*m)[name]
		if had {
			if backPut == nil {
				backPut = map[string]V{}
			}
			backPut[name] = old
		}
		return had
	}
	for _, name := range gone {
		if keep(name) {
			delete(*m, name)
		}
	}
	for name, v := range put {
		if !keep(name) {
			backGone = append(backGone, name)
		}
		if *m == nil {
			*m = map[string]V{}
		}
		(*m)[name] = v
	}
	slices.Sort(backGone)
	return backPut, backGone
}

// Sum is a digest of a plan that can be carried along: the exclusive or of the digests of its
// aliases, zones and zone sets. It finds accidents, not forgeries.
type Sum [sha256.Size]byte

// Base is how a Sum is written where somebody says on what a change is based.
func (s Sum) Base() string { return hex.EncodeToString(s[:8]) }

func (s *Sum) item(kind, name string, members []zone.Member, names []string) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", kind, name)
	for _, m := range members {
		fmt.Fprintf(h, "m %s\n", m)
	}
	for _, n := range names {
		fmt.Fprintf(h, "n %s\n", n)
	}
	for i, b := range h.Sum(nil) {
		s[i] ^= b
	}
}

// Sum gives the digest of a plan.
func (p *Plan) Sum() (s Sum) {
	return p.sumOf(&Delta{Put: *p, Active: &p.Active})
}

// sumOf gives the digest of what there is in the plan of that which a Delta touches.
func (p *Plan) sumOf(d *Delta) (s Sum) {
	each(d.Put.Aliases, d.Gone.Aliases, p.Aliases, func(name string, v []zone.Member) { s.item("alias", name, v, nil) })
	each(d.Put.Zones, d.Gone.Zones, p.Zones, func(name string, v Zone) { s.item("zone", name, v.Members, v.Aliases) })
	each(d.Put.Sets, d.Gone.Sets, p.Sets, func(name string, v []string) { s.item("set", name, nil, v) })
	if d.Active != nil && p.Active != "" {
		s.item("active", p.Active, nil, nil)
	}
	return s
}

// each calls do for all that is there of what is put or gone.
func each[V any](put map[string]V, gone []string, there map[string]V, do func(string, V)) {
	for name := range put {
		if v, ok := there[name]; ok {
			do(name, v)
		}
	}
	for _, name := range gone {
		if _, twice := put[name]; twice {
			continue
		}
		if v, ok := there[name]; ok {
			do(name, v)
		}
	}
}

// Lines says in one line each what a Delta changes in a plan: at most limit lines (0: all), then
// one that says how many more there are.
func (d *Delta) Lines(old *Plan, limit int) []string {
	out, more := []string{}, 0
	say := func(format string, args ...any) {
		if limit > 0 && len(out) >= limit {
			more++
			return
		}
		out = append(out, fmt.Sprintf(format, args...))
	}
	sayAll(d.Put.Aliases, d.Gone.Aliases, old.Aliases, "alias", say, func(v []zone.Member) []string { return texts(v) })
	sayAll(d.Put.Zones, d.Gone.Zones, old.Zones, "zone", say, Zone.Texts)
	sayAll(d.Put.Sets, d.Gone.Sets, old.Sets, "zone set", say, func(v []string) []string { return v })
	switch {
	case d.Active == nil:
	case *d.Active == "":
		say("- zone set %s is active: all zones are in force", old.Active)
	default:
		say("+ zone set %s is active", *d.Active)
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}

func sayAll[V any](put map[string]V, gone []string, old map[string]V, kind string, say func(string, ...any), list func(V) []string) {
	thing := "member"
	if kind == "zone set" {
		thing = "zone"
	}
	for _, name := range slices.Sorted(maps.Keys(put)) {
		now := list(put[name])
		was, had := old[name]
		if !had {
			say("+ %s %s with %d %s(s)", kind, name, len(now), thing)
			continue
		}
		before := list(was)
		for _, m := range missing(before, now) {
			say("- %s %s of %s %s", thing, m, kind, name)
		}
		for _, m := range missing(now, before) {
			say("+ %s %s of %s %s", thing, m, kind, name)
		}
	}
	for _, name := range gone {
		if was, had := old[name]; had {
			say("- %s %s with %d %s(s)", kind, name, len(list(was)), thing)
		}
	}
}

// missing gives what of a is not in b.
func missing(a, b []string) (out []string) {
	there := make(map[string]struct{}, len(b))
	for _, s := range b {
		there[s] = struct{}{}
	}
	for _, s := range a {
		if _, ok := there[s]; !ok {
			out = append(out, s)
		}
	}
	return out
}
