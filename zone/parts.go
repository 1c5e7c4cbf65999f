package zone

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// span is a range of addresses of one family, both ends included.
type span struct{ first, last netip.Addr }

func compareSpans(a, b span) int {
	return cmp.Or(a.first.Compare(b.first), a.last.Compare(b.last))
}

// portKey names an access port of the network.
type portKey struct {
	device netip.Addr
	port   string
}

func comparePorts(a, b portKey) int {
	return cmp.Or(a.device.Compare(b.device), strings.Compare(a.port, b.port))
}

// parts are the members of one zone by kind, sorted, each once: a quarter of the
// memory of a []Member, and what is compared when a configuration is set again.
type parts struct {
	addrs []netip.Addr
	more  *moreParts // nil when there are addresses only
}

type moreParts struct {
	spans []span
	nqns  []string
	ports []portKey
	bound []Member
}

var noMore moreParts

// rest never gives nil, so that readers need no check; it is not to be written to.
func (p parts) rest() *moreParts {
	if p.more == nil {
		return &noMore
	}
	return p.more
}

func (p parts) len() int {
	m := p.rest()
	return len(p.addrs) + len(m.spans) + len(m.nqns) + len(m.ports) + len(m.bound)
}

func (p parts) equal(o parts) bool {
	a, b := p.rest(), o.rest()
	return slices.Equal(p.addrs, o.addrs) && slices.Equal(a.spans, b.spans) &&
		slices.Equal(a.nqns, b.nqns) && slices.Equal(a.ports, b.ports) && slices.Equal(a.bound, b.bound)
}

// clone copies p out of a scratch buffer.
func (p parts) clone() parts {
	c := parts{addrs: slices.Clip(slices.Clone(p.addrs))}
	if m := p.rest(); len(m.spans)+len(m.nqns)+len(m.ports)+len(m.bound) > 0 {
		c.more = &moreParts{spans: slices.Clone(m.spans), nqns: slices.Clone(m.nqns), ports: slices.Clone(m.ports), bound: slices.Clone(m.bound)}
	}
	return c
}

// members rebuilds the canonical list.
func (p parts) members() []Member {
	out := make([]Member, 0, p.len())
	for _, a := range p.addrs {
		out = append(out, Member{Kind: MemberAddr, First: a})
	}
	m := p.rest()
	for _, s := range m.spans {
		out = append(out, Member{Kind: MemberRange, First: s.first, Last: s.last})
	}
	for _, n := range m.nqns {
		out = append(out, Member{Kind: MemberNQN, NQN: n})
	}
	for _, k := range m.ports {
		out = append(out, Member{Kind: MemberPort, Device: k.device, Port: k.port})
	}
	return append(out, m.bound...)
}

// splitter sorts members into parts; its buffers serve one zone after the other.
type splitter struct{ buf parts }

// split gives the parts of ms, valid until the next call, and how many members
// were malformed and left out.
func (s *splitter) split(ms []Member) (p parts, bad uint64) {
	if s.buf.more == nil {
		s.buf.more = &moreParts{}
	}
	b, m := &s.buf, s.buf.more
	b.addrs, m.spans, m.nqns, m.ports, m.bound = b.addrs[:0], m.spans[:0], m.nqns[:0], m.ports[:0], m.bound[:0]
	for _, x := range ms {
		x = x.Canonical()
		if x.wellFormed("") != nil {
			bad++
			continue
		}
		switch x.Kind {
		case MemberAddr:
			b.addrs = append(b.addrs, x.First)
		case MemberRange:
			m.spans = append(m.spans, span{x.First, x.Last})
		case MemberNQN:
			m.nqns = append(m.nqns, x.NQN)
		case MemberPort:
			m.ports = append(m.ports, portKey{x.Device, x.Port})
		case MemberBound:
			m.bound = append(m.bound, x)
		}
	}
	b.addrs = sortUnique(b.addrs, netip.Addr.Compare)
	m.spans = sortUnique(m.spans, compareSpans)
	m.nqns = sortUnique(m.nqns, strings.Compare)
	m.ports = sortUnique(m.ports, comparePorts)
	m.bound = sortUnique(m.bound, CompareMembers)
	return *b, bad
}

func sortUnique[T comparable](s []T, compare func(a, b T) int) []T {
	if !slices.IsSortedFunc(s, compare) {
		slices.SortFunc(s, compare)
	}
	return slices.Compact(s)
}

// difference walks two sorted lists and gives what is only in before and only in after.
func difference[T any](before, after []T, compare func(a, b T) int) (gone, came []T) {
	i, j := 0, 0
	for i < len(before) && j < len(after) {
		switch c := compare(before[i], after[j]); {
		case c < 0:
			gone = append(gone, before[i])
			i++
		case c > 0:
			came = append(came, after[j])
			j++
		default:
			i, j = i+1, j+1
		}
	}
	return append(gone, before[i:]...), append(came, after[j:]...)
}

// subtract gives what p has beyond o, and what o has beyond p.
func (p parts) subtract(o parts) (gone, came parts) {
	a, b := p.rest(), o.rest()
	g, c := &moreParts{}, &moreParts{}
	gone.addrs, came.addrs = difference(p.addrs, o.addrs, netip.Addr.Compare)
	g.spans, c.spans = difference(a.spans, b.spans, compareSpans)
	g.nqns, c.nqns = difference(a.nqns, b.nqns, strings.Compare)
	g.ports, c.ports = difference(a.ports, b.ports, comparePorts)
	g.bound, c.bound = difference(a.bound, b.bound, CompareMembers)
	gone.more, came.more = g, c
	return gone, came
}

// cover merges spans that overlap: the result is sorted and disjoint.
func cover(lists ...[]span) []span {
	all := slices.Concat(lists...)
	slices.SortFunc(all, compareSpans)
	out := all[:0]
	for _, s := range all {
		n := len(out)
		if n > 0 && s.first.BitLen() == out[n-1].last.BitLen() && s.first.Compare(out[n-1].last) <= 0 {
			if out[n-1].last.Less(s.last) {
				out[n-1].last = s.last
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

// inCover reports whether a lies in one of the disjoint sorted spans.
func inCover(spans []span, a netip.Addr) bool {
	i, ok := slices.BinarySearchFunc(spans, a, func(s span, a netip.Addr) int { return s.first.Compare(a) })
	if ok {
		return true
	}
	return i > 0 && a.Compare(spans[i-1].last) <= 0
}
