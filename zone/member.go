package zone

import (
	"cmp"
	"strings"
)

// Canonical gives the one form of equal members: IPv4-mapped addresses become
// IPv4, a range of one address becomes that address, fields that do not count
// for the kind are cleared.
func (m Member) Canonical() Member {
	switch m.Kind {
	case MemberAddr:
		return Member{Kind: MemberAddr, First: m.First.Unmap()}
	case MemberRange:
		first, last := m.First.Unmap(), m.Last.Unmap()
		if first == last {
			return Member{Kind: MemberAddr, First: first}
		}
		return Member{Kind: MemberRange, First: first, Last: last}
	case MemberNQN:
		return Member{Kind: MemberNQN, NQN: m.NQN}
	case MemberPort:
		return Member{Kind: MemberPort, Device: m.Device.Unmap(), Port: m.Port}
	case MemberBound:
		return Member{Kind: MemberBound, NQN: m.NQN, First: m.First.Unmap(), Last: m.Last.Unmap(), Device: m.Device.Unmap(), Port: m.Port}
	}
	return m
}

// CompareMembers orders members by kind, then as text or addresses: the canonical order.
func CompareMembers(a, b Member) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		strings.Compare(a.NQN, b.NQN),
		a.First.Compare(b.First),
		a.Last.Compare(b.Last),
		a.Device.Compare(b.Device),
		strings.Compare(a.Port, b.Port),
	)
}
