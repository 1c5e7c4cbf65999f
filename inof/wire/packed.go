package wire

import (
	"slices"

	"github.com/openinof/inof/zone"
)

// PackedMembers are the members of a zone as they are on the wire, in canonical order: a
// fifth of the memory, and two that say the same are equal.
type PackedMembers string

// PackMembers gives the packed form; a member that no message can hold is left out.
func PackMembers(members []zone.Member) PackedMembers {
	if !slices.IsSortedFunc(members, zone.CompareMembers) {
		members = zone.Zone{Members: members}.Canonical().Members
	}
	b := make([]byte, 0, 32)
	for i := range members {
		if more, err := appendMember(b, &members[i]); err == nil {
			b = more
		}
	}
	return PackedMembers(b)
}

// Said are the members of a record, in whichever form it has them.
func (z *ZoneRecord) Said() PackedMembers {
	if z.Packed != "" {
		return z.Packed
	}
	return PackMembers(z.Zone.Members)
}

// Unpack gives the members; never nil.
func (p PackedMembers) Unpack() []zone.Member {
	r := reader{b: []byte(p)}
	out := []zone.Member{}
	for r.err == nil && len(r.b) > 0 {
		out = append(out, decodeMember(&r))
	}
	return out
}

// Count is how many members there are.
func (p PackedMembers) Count() (n int) {
	for len(p) > memberHeaderLen {
		p = p[memberHeaderLen+int(p[1])<<8+int(p[2]):]
		n++
	}
	return n
}
