package zone

import "slices"

// Index is a compiled Set: it answers which configured zones a host is in. The
// default zone is not part of it; that is the Directory's affair.
type Index struct {
	zones []Zone
	match matcher
}

// Compile builds the index of s. Malformed members, which Validate refuses, match nothing.
func Compile(s Set) *Index {
	ix := &Index{match: newMatcher()}
	ix.zones = s.Canonical().Zones
	ix.zones = slices.DeleteFunc(ix.zones, func(z Zone) bool { return z.Name == DefaultName })
	var sp splitter
	for i, z := range ix.zones {
		p, _ := sp.split(z.Members)
		ix.match.add(uint32(i), p)
	}
	return ix
}

// ZonesOf gives the indices of the zones that h is in, by name, ascending.
func (ix *Index) ZonesOf(h Host) []int {
	var buf [32]uint32
	ids := ix.match.of(h, buf[:0])
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}
