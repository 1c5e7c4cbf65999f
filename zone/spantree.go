package zone

import (
	"net/netip"
	"slices"
)

// spanTree answers which zones have a range that holds an address. It is an
// interval tree kept in balance as a treap: nodes are ordered by (first, last),
// each knows the highest last address below it, and the heap order comes from a
// hash of the node's number, so that equal histories build equal trees.
type spanTree struct {
	nodes []spanNode // 0 is the empty tree
	free  []uint32
	root  uint32
}

type spanNode struct {
	span
	max         netip.Addr // highest last of the subtree
	left, right uint32
	prio        uint32
	zones       []uint32 // sorted
}

func newSpanTree() spanTree { return spanTree{nodes: make([]spanNode, 1)} }

func (t *spanTree) add(s span, zone uint32) { t.root = t.insert(t.root, s, zone) }

func (t *spanTree) insert(n uint32, s span, zone uint32) uint32 {
	if n == 0 {
		return t.alloc(s, zone)
	}
	switch c := compareSpans(s, t.nodes[n].span); {
	case c == 0:
		l := &t.nodes[n].zones
		if i, there := slices.BinarySearch(*l, zone); !there {
			*l = slices.Insert(*l, i, zone)
		}
		return n
	case c < 0:
		l := t.insert(t.nodes[n].left, s, zone)
		t.nodes[n].left = l
		if t.nodes[l].prio > t.nodes[n].prio {
			return t.rotateRight(n)
		}
	default:
		r := t.insert(t.nodes[n].right, s, zone)
		t.nodes[n].right = r
		if t.nodes[r].prio > t.nodes[n].prio {
			return t.rotateLeft(n)
		}
	}
	t.fix(n)
	return n
}

func (t *spanTree) remove(s span, zone uint32) { t.root = t.delete(t.root, s, zone) }

func (t *spanTree) delete(n uint32, s span, zone uint32) uint32 {
	if n == 0 {
		return 0
	}
	nd := &t.nodes[n]
	switch c := compareSpans(s, nd.span); {
	case c < 0:
		nd.left = t.delete(nd.left, s, zone)
	case c > 0:
		nd.right = t.delete(nd.right, s, zone)
	default:
		if i, there := slices.BinarySearch(nd.zones, zone); there {
			nd.zones = slices.Delete(nd.zones, i, i+1)
		}
		if len(nd.zones) == 0 {
			l, r := nd.left, nd.right
			t.nodes[n] = spanNode{}
			t.free = append(t.free, n)
			return t.join(l, r)
		}
	}
	t.fix(n)
	return n
}

// join makes one tree of two, all of l before all of r.
func (t *spanTree) join(l, r uint32) uint32 {
	switch {
	case l == 0:
		return r
	case r == 0:
		return l
	case t.nodes[l].prio > t.nodes[r].prio:
		t.nodes[l].right = t.join(t.nodes[l].right, r)
		t.fix(l)
		return l
	}
	t.nodes[r].left = t.join(l, t.nodes[r].left)
	t.fix(r)
	return r
}

func (t *spanTree) alloc(s span, zone uint32) uint32 {
	n := uint32(len(t.nodes))
	if k := len(t.free); k > 0 {
		n = t.free[k-1]
		t.free = t.free[:k-1]
	} else {
		t.nodes = append(t.nodes, spanNode{})
	}
	t.nodes[n] = spanNode{span: s, max: s.last, prio: mix(n), zones: []uint32{zone}}
	return n
}

func (t *spanTree) rotateRight(n uint32) uint32 {
	l := t.nodes[n].left
	t.nodes[n].left = t.nodes[l].right
	t.nodes[l].right = n
	t.fix(n)
	t.fix(l)
	return l
}

func (t *spanTree) rotateLeft(n uint32) uint32 {
	r := t.nodes[n].right
	t.nodes[n].right = t.nodes[r].left
	t.nodes[r].left = n
	t.fix(n)
	t.fix(r)
	return r
}

func (t *spanTree) fix(n uint32) {
	nd := &t.nodes[n]
	nd.max = nd.last
	for _, c := range [...]uint32{nd.left, nd.right} {
		if c != 0 && nd.max.Less(t.nodes[c].max) {
			nd.max = t.nodes[c].max
		}
	}
}

// appendTo appends the zones of every range that holds a; a zone may come more
// than once.
func (t *spanTree) appendTo(dst []uint32, a netip.Addr) []uint32 { return t.stab(dst, t.root, a) }

func (t *spanTree) stab(dst []uint32, n uint32, a netip.Addr) []uint32 {
	// Ranges of the two families never mix: every IPv4 address sorts before every
	// IPv6 address.
	for n != 0 {
		nd := &t.nodes[n]
		if nd.max.Less(a) {
			break
		}
		dst = t.stab(dst, nd.left, a)
		if a.Less(nd.first) {
			break
		}
		if a.Compare(nd.last) <= 0 {
			dst = append(dst, nd.zones...)
		}
		n = nd.right
	}
	return dst
}

// mix is the finalizer of a 32-bit hash: neighbouring numbers give unrelated ones.
func mix(x uint32) uint32 {
	x ^= x >> 16
	x *= 0x7feb352d
	x ^= x >> 15
	x *= 0x846ca68b
	return x ^ x>>16
}
