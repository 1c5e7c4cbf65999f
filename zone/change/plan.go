package change

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openinof/inof/zone"
)

// Plan is all that operators write of zones. The zero value has no zones.
type Plan struct {
	Aliases map[string][]zone.Member // members under one name, canonical
	Zones   map[string]Zone
	Sets    map[string][]string // names of zones, sorted
	// Active is the zone set whose zones are in force; empty: all zones are.
	Active string
}

// Zone is what a plan says of one zone. It is never changed in place.
type Zone struct {
	Members []zone.Member // canonical
	Aliases []string      // sorted, each once
}

// Limits of a plan beside those of zone.Rules, which hold for zones and for aliases.
const (
	MaxSets = 1000
)

// Sentinels that the errors of Check wrap.
var (
	ErrNoAlias = errors.New("no such alias")
	ErrNoZone  = errors.New("no such zone")
	ErrNoSet   = errors.New("no such zone set")
)

// PlanOf is the plan with these zones, all of them in force.
func PlanOf(set zone.Set) *Plan {
	p := &Plan{Zones: make(map[string]Zone, len(set.Zones))}
	for _, z := range set.Canonical().Zones {
		p.Zones[z.Name] = Zone{Members: z.Members}
	}
	return p
}

// Clone gives a plan that can be changed without changing this one.
func (p *Plan) Clone() *Plan {
	return &Plan{Aliases: maps.Clone(p.Aliases), Zones: maps.Clone(p.Zones), Sets: maps.Clone(p.Sets), Active: p.Active}
}

// Equal reports whether two plans say the same.
func (p *Plan) Equal(o *Plan) bool {
	d := Diff(p, o)
	return d.Empty()
}

func (z Zone) equal(o Zone) bool {
	return slices.Equal(z.Members, o.Members) && slices.Equal(z.Aliases, o.Aliases)
}

// canonical gives the one form of equal zones.
func (z Zone) canonical() Zone {
	aliases := slices.Clone(z.Aliases)
	slices.Sort(aliases)
	return Zone{Members: canonicalMembers(z.Members), Aliases: slices.Clip(slices.Compact(aliases))}
}

func canonicalMembers(list []zone.Member) []zone.Member {
	return zone.Zone{Members: list}.Canonical().Members
}

// PutZone adds or replaces a zone. A new one is also put into the active zone set, since who
// adds a zone by one step wants it in force.
func (p *Plan) PutZone(name string, z Zone) {
	_, had := p.Zones[name]
	if p.Zones == nil {
		p.Zones = map[string]Zone{}
	}
	p.Zones[name] = z.canonical()
	if zones, ok := p.Sets[p.Active]; ok && !had && p.Active != "" {
		p.PutSet(p.Active, append(slices.Clone(zones), name))
	}
}

// DropZone removes a zone, from the zone sets too.
func (p *Plan) DropZone(name string) {
	delete(p.Zones, name)
	for set, zones := range p.Sets {
		if i, in := slices.BinarySearch(zones, name); in {
			p.Sets[set] = slices.Delete(slices.Clone(zones), i, i+1)
		}
	}
}

// PutAlias adds or replaces an alias.
func (p *Plan) PutAlias(name string, members []zone.Member) {
	if p.Aliases == nil {
		p.Aliases = map[string][]zone.Member{}
	}
	p.Aliases[name] = canonicalMembers(members)
}

// PutSet adds or replaces a zone set.
func (p *Plan) PutSet(name string, zones []string) {
	if p.Sets == nil {
		p.Sets = map[string][]string{}
	}
	zones = slices.Clone(zones)
	slices.Sort(zones)
	p.Sets[name] = slices.Clip(slices.Compact(zones))
}

// Has reports whether a zone of the plan is in force.
func (p *Plan) Has(name string) bool {
	_, ok := p.Zones[name]
	if ok && p.Active != "" {
		_, ok = slices.BinarySearch(p.Sets[p.Active], name)
	}
	return ok
}

// Expand gives a zone with the members of its aliases in their place.
func (p *Plan) Expand(name string) zone.Zone { return p.ExpandOf(name, p.Zones[name]) }

// ExpandOf is Expand for what a zone is to be.
func (p *Plan) ExpandOf(name string, z Zone) zone.Zone {
	if len(z.Aliases) == 0 {
		return zone.Zone{Name: name, Members: z.Members}
	}
	members := slices.Clone(z.Members)
	for _, a := range z.Aliases {
		members = append(members, p.Aliases[a]...)
	}
	return zone.Zone{Name: name, Members: members}.Canonical()
}

// InForce gives the zones that are in force, sorted by name. The switches AutoJoin and
// Hard are settings and no part of a plan.
func (p *Plan) InForce() zone.Set {
	names := slices.Sorted(maps.Keys(p.Zones))
	set := zone.Set{Zones: make([]zone.Zone, 0, len(names))}
	for _, name := range names {
		if p.Has(name) {
			set.Zones = append(set.Zones, p.Expand(name))
		}
	}
	return set
}

// Check gives every error of a plan, joined; those of zones are zone.ZoneErrors.
func (p *Plan) Check(rules zone.Rules) error {
	var errs []error
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	members := 0
	for _, name := range slices.Sorted(maps.Keys(p.Aliases)) {
		if err := zone.CheckName(name); err != nil {
			say("alias %q: %w", name, err)
		}
		for _, m := range p.Aliases[name] {
			if err := rules.CheckMember(m); err != nil {
				say("alias %q: member %s: %w", name, m, err)
			}
		}
		members += len(p.Aliases[name])
	}
	if n, most := len(p.Aliases), cmp.Or(rules.MaxZones, zone.DefaultMaxZones); n > most {
		say("%d aliases, at most %d", n, most)
	}
	if most := cmp.Or(rules.MaxMembers, zone.DefaultMaxMembers); members > most {
		say("%w: %d in all aliases, at most %d", zone.ErrTooManyMembers, members, most)
	}
	all := zone.Set{Zones: make([]zone.Zone, 0, len(p.Zones))}
	for _, name := range slices.Sorted(maps.Keys(p.Zones)) {
		for _, a := range p.Zones[name].Aliases {
			if _, ok := p.Aliases[a]; !ok {
				say("zone %q: alias %q: %w%s", name, a, ErrNoAlias, near(a, p.Aliases))
			}
		}
		if name == zone.DefaultName {
			say("zone %q is always there; hosts in no other zone join it by themselves", name)
			continue
		}
		all.Zones = append(all.Zones, p.Expand(name))
	}
	if err := rules.Check(all); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, p.checkSets(rules)...)
	return errors.Join(errs...)
}

func (p *Plan) checkSets(rules zone.Rules) (errs []error) {
	if len(p.Sets) > MaxSets {
		errs = append(errs, fmt.Errorf("%d zone sets, at most %d", len(p.Sets), MaxSets))
	}
	entries := 0
	for _, name := range slices.Sorted(maps.Keys(p.Sets)) {
		if err := zone.CheckName(name); err != nil {
			errs = append(errs, fmt.Errorf("zone set %q: %w", name, err))
		}
		for _, z := range p.Sets[name] {
			if _, ok := p.Zones[z]; !ok {
				errs = append(errs, fmt.Errorf("zone set %q: zone %q: %w%s", name, z, ErrNoZone, near(z, p.Zones)))
			}
		}
		entries += len(p.Sets[name])
	}
	if most := cmp.Or(rules.MaxMembers, zone.DefaultMaxMembers); entries > most {
		errs = append(errs, fmt.Errorf("%d zones in all zone sets, at most %d", entries, most))
	}
	if _, ok := p.Sets[p.Active]; !ok && p.Active != "" {
		errs = append(errs, fmt.Errorf("active zone set %q: %w%s", p.Active, ErrNoSet, near(p.Active, p.Sets)))
	}
	return errs
}

// near names what was perhaps meant: the same but for case.
func near[V any](name string, there map[string]V) string {
	for _, other := range slices.Sorted(maps.Keys(there)) {
		if strings.EqualFold(name, other) {
			return fmt.Sprintf("; there is %q", other)
		}
	}
	return ""
}
