package zone

import (
	"slices"
	"strings"
)

// Canonical gives the one form of equal zones: canonical members, sorted, each once.
func (z Zone) Canonical() Zone {
	ms := make([]Member, len(z.Members))
	for i, m := range z.Members {
		ms[i] = m.Canonical()
	}
	slices.SortFunc(ms, CompareMembers)
	return Zone{Name: z.Name, Members: slices.Clip(slices.Compact(ms))}
}

// Canonical gives the one form of equal configurations: canonical zones sorted by
// name. Zones of the same name, which Validate refuses, become one; an empty
// default zone, which is always there, is left out.
func (s Set) Canonical() Set {
	zs := make([]Zone, 0, len(s.Zones))
	for _, z := range s.Zones {
		if z.Name != DefaultName || len(z.Members) > 0 {
			zs = append(zs, z)
		}
	}
	slices.SortStableFunc(zs, func(a, b Zone) int { return strings.Compare(a.Name, b.Name) })
	out := zs[:0]
	for i := 0; i < len(zs); {
		z := zs[i]
		j := i + 1
		for ; j < len(zs) && zs[j].Name == z.Name; j++ {
			z.Members = slices.Concat(z.Members, zs[j].Members)
		}
		out = append(out, z.Canonical())
		i = j
	}
	return Set{Zones: slices.Clip(out), AutoJoin: s.AutoJoin, Hard: s.Hard}
}

// Equal reports whether two configurations mean the same, whatever their order and
// duplicates.
func (s Set) Equal(o Set) bool {
	if s.AutoJoin != o.AutoJoin || s.Hard != o.Hard {
		return false
	}
	return slices.EqualFunc(s.Canonical().Zones, o.Canonical().Zones, func(a, b Zone) bool {
		return a.Name == b.Name && slices.Equal(a.Members, b.Members)
	})
}

// Find gives the zone of that name.
func (s Set) Find(name string) (Zone, bool) {
	for _, z := range s.Zones {
		if z.Name == name {
			return z, true
		}
	}
	return Zone{}, false
}
