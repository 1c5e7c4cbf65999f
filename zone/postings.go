package zone

import "slices"

// postings maps a key to a sorted list of ids. Most keys have one id only, which
// is kept in the map itself; lists of two and more live in a side table.
type postings[K comparable] struct {
	m    map[K]uint32 // an id, or an index into many with manyBit set
	many [][]uint32
	free []uint32
}

const manyBit = 1 << 31

func newPostings[K comparable]() postings[K] { return postings[K]{m: make(map[K]uint32)} }

func (p *postings[K]) add(k K, id uint32) {
	v, ok := p.m[k]
	switch {
	case !ok:
		p.m[k] = id
	case v&manyBit != 0:
		l := &p.many[v&^manyBit]
		if i, there := slices.BinarySearch(*l, id); !there {
			*l = slices.Insert(*l, i, id)
		}
	case v != id:
		p.m[k] = p.alloc([]uint32{min(v, id), max(v, id)}) | manyBit
	}
}

func (p *postings[K]) alloc(l []uint32) uint32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		p.many[i] = l
		return i
	}
	p.many = append(p.many, l)
	return uint32(len(p.many) - 1)
}

func (p *postings[K]) remove(k K, id uint32) {
	v, ok := p.m[k]
	switch {
	case !ok:
	case v&manyBit != 0:
		l := &p.many[v&^manyBit]
		i, there := slices.BinarySearch(*l, id)
		if !there {
			return
		}
		*l = slices.Delete(*l, i, i+1)
		if len(*l) == 1 {
			p.m[k] = (*l)[0]
			*l = nil
			p.free = append(p.free, v&^manyBit)
		}
	case v == id:
		delete(p.m, k)
	}
}

// appendTo appends the ids of k to dst.
func (p *postings[K]) appendTo(dst []uint32, k K) []uint32 {
	v, ok := p.m[k]
	switch {
	case !ok:
		return dst
	case v&manyBit != 0:
		return append(dst, p.many[v&^manyBit]...)
	}
	return append(dst, v)
}

// view gives the ids of k, to be read before the next change; one is in buf.
func (p *postings[K]) view(k K, buf *[1]uint32) []uint32 {
	v, ok := p.m[k]
	switch {
	case !ok:
		return nil
	case v&manyBit != 0:
		return p.many[v&^manyBit]
	}
	buf[0] = v
	return buf[:]
}
