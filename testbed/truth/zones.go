package truth

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/zone"
)

// This file says who shares a zone with whom: by what the reflectors have of zones, which may
// differ, and by what a device may still hold of that.

// Known is an address and what it is known by.
type Known struct {
	Addr  netip.Addr
	NQNs  []string
	Ports []zone.Member // device and port
}

// in lists the zones of an address under one configuration.
func (k Known) in(s zone.Set) (out []string) {
	for _, z := range s.Zones {
		if slices.ContainsFunc(z.Members, k.is) {
			out = append(out, z.Name)
		}
	}
	if len(out) == 0 && s.AutoJoin {
		out = []string{zone.DefaultName}
	}
	return out
}

func (k Known) is(m zone.Member) bool {
	switch m.Kind {
	case zone.MemberAddr:
		return m.First == k.Addr
	case zone.MemberRange:
		return m.First.Is4() == k.Addr.Is4() && !k.Addr.Less(m.First) && !m.Last.Less(k.Addr)
	case zone.MemberNQN:
		return slices.Contains(k.NQNs, m.NQN)
	}
	return slices.ContainsFunc(k.Ports, func(p zone.Member) bool { return p.Device == m.Device && p.Port == m.Port })
}

// Common reports whether two lists of zones have one in common.
func Common(a, b []string) bool {
	return slices.ContainsFunc(a, func(z string) bool { return slices.Contains(b, z) })
}

// Zones are what each reflector has of zones, and what follows from all of it.
type Zones struct {
	Sets    []zone.Set
	InForce zone.Set // members that all of them name, or with the policy union those that one does
}

// Agree works out what follows from what the reflectors have.
func Agree(union bool, sets ...zone.Set) Zones {
	out := Zones{sets, sets[0]}
	for _, s := range sets[1:] {
		out.InForce = agree(union, out.InForce, s)
	}
	return out
}

func agree(union bool, a, b zone.Set) zone.Set {
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

// Of says in which zones an address is. One that some reflector puts into a zone is not in the
// default zone, also where the others do not agree.
func (z Zones) Of(k Known) []string {
	out := k.in(z.InForce)
	named := func(s zone.Set) bool { s.AutoJoin = false; return len(k.in(s)) > 0 }
	if slices.Equal(out, []string{zone.DefaultName}) && slices.ContainsFunc(z.Sets, named) {
		return nil
	}
	return out
}

// Doubt is what may be in force at a device, which hears of changes some time after they are made.
type Doubt struct {
	Voices [][]zone.Set // of each reflector, or of a cluster as one: any of these
	Union  bool         // the policy; else identical
	All    bool         // the device hears every reflector
}

// MayShare reports whether a device may say that two addresses, each under any one of the claims
// to it, are in one zone: if some reflector does, and where all have to agree and all are heard, if
// each does.
func (d Doubt) MayShare(a, b []Known) bool {
	together := func(may []zone.Set) bool {
		return slices.ContainsFunc(may, func(s zone.Set) bool { return Common(inAny(s, a), inAny(s, b)) })
	}
	switch {
	case d.Union: // the two may be put into it by different ones
		return Common(d.ever(a), d.ever(b))
	case d.All:
		return !slices.ContainsFunc(d.Voices, func(v []zone.Set) bool { return !together(v) })
	}
	return slices.ContainsFunc(d.Voices, together)
}

// MayBeDefault reports whether an address was in the default zone of something that may be in force.
func (d Doubt) MayBeDefault(a []Known) bool { return slices.Contains(d.ever(a), zone.DefaultName) }

// ever lists the zones of an address in everything that may be in force; the default zone too when
// one reflector has it and another one says that the address is in no zone.
func (d Doubt) ever(a []Known) (out []string) {
	joins, free := false, false
	for _, s := range slices.Concat(d.Voices...) {
		out = append(out, inAny(s, a)...)
		joins = joins || s.AutoJoin
		s.AutoJoin = false
		free = free || len(inAny(s, a)) == 0
	}
	if joins && free {
		out = append(out, zone.DefaultName)
	}
	return out
}

// inAny lists the zones of an address under any of the claims to it.
func inAny(s zone.Set, claims []Known) (out []string) {
	for _, k := range claims {
		out = append(out, k.in(s)...)
	}
	return out
}
