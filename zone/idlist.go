package zone

import (
	"iter"
	"net/netip"
	"slices"
)

// idList is a set of host ids in the order of their addresses. A short one is a
// plain slice; a long one is cut into chunks, so that adding a host to the default
// zone of a large fabric does not move a third of a megabyte.
type idList struct {
	small []uint32
	big   *chunked
}

type chunked struct {
	chunks [][]uint32 // none is empty
	n      int
}

const (
	smallList = 512 // ids at which a plain slice becomes chunks
	chunkSize = 512 // ids at which a chunk is halved
)

// addrOf gives the address of a host id: the order of the list.
type addrOf func(id uint32) netip.Addr

func (l *idList) len() int {
	if l.big != nil {
		return l.big.n
	}
	return len(l.small)
}

func search(ids []uint32, a netip.Addr, at addrOf) (int, bool) {
	return slices.BinarySearchFunc(ids, a, func(id uint32, a netip.Addr) int { return at(id).Compare(a) })
}

// add puts id in its place; adding it twice changes nothing.
func (l *idList) add(id uint32, at addrOf) {
	if l.big != nil {
		l.big.add(id, at)
		return
	}
	i, there := search(l.small, at(id), at)
	if there {
		return
	}
	if cap(l.small) == 0 {
		l.small = make([]uint32, 0, 2)
	}
	l.small = slices.Insert(l.small, i, id)
	if len(l.small) > smallList {
		l.big = &chunked{chunks: [][]uint32{l.small}, n: len(l.small)}
		l.small = nil
		l.big.split(0)
	}
}

// remove takes id out; it must still be known to at.
func (l *idList) remove(id uint32, at addrOf) {
	if l.big != nil {
		l.big.remove(id, at)
		if l.big.n == 0 {
			l.big = nil
		}
		return
	}
	if i, there := search(l.small, at(id), at); there {
		l.small = slices.Delete(l.small, i, i+1)
	}
	if len(l.small) == 0 {
		l.small = nil
	}
}

// from walks the ids from address a on.
func (l *idList) from(a netip.Addr, at addrOf) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if l.big != nil {
			l.big.walk(a, at, yield)
			return
		}
		i, _ := search(l.small, a, at)
		for _, id := range l.small[i:] {
			if !yield(id) {
				return
			}
		}
	}
}

// all walks every id.
func (l *idList) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if l.big == nil {
			for _, id := range l.small {
				if !yield(id) {
					return
				}
			}
			return
		}
		for _, c := range l.big.chunks {
			for _, id := range c {
				if !yield(id) {
					return
				}
			}
		}
	}
}

// find gives the chunk and the place in it where a is or belongs.
func (b *chunked) find(a netip.Addr, at addrOf) (chunk, place int, there bool) {
	chunk, _ = slices.BinarySearchFunc(b.chunks, a, func(c []uint32, a netip.Addr) int {
		return at(c[len(c)-1]).Compare(a)
	})
	if chunk == len(b.chunks) {
		if chunk == 0 {
			return 0, 0, false
		}
		return chunk - 1, len(b.chunks[chunk-1]), false
	}
	place, there = search(b.chunks[chunk], a, at)
	return chunk, place, there
}

func (b *chunked) add(id uint32, at addrOf) {
	c, i, there := b.find(at(id), at)
	if there {
		return
	}
	b.chunks[c] = slices.Insert(b.chunks[c], i, id)
	b.n++
	if len(b.chunks[c]) > chunkSize {
		b.split(c)
	}
}

func (b *chunked) split(c int) {
	full := b.chunks[c]
	half := make([]uint32, len(full)-len(full)/2, chunkSize+1)
	copy(half, full[len(full)/2:])
	b.chunks[c] = full[:len(full)/2]
	b.chunks = slices.Insert(b.chunks, c+1, half)
}

func (b *chunked) remove(id uint32, at addrOf) {
	c, i, there := b.find(at(id), at)
	if !there {
		return
	}
	b.chunks[c] = slices.Delete(b.chunks[c], i, i+1)
	b.n--
	if len(b.chunks[c]) == 0 {
		b.chunks = slices.Delete(b.chunks, c, c+1)
	}
}

func (b *chunked) walk(a netip.Addr, at addrOf, yield func(uint32) bool) {
	c, i, _ := b.find(a, at)
	for ; c < len(b.chunks); c, i = c+1, 0 {
		for _, id := range b.chunks[c][i:] {
			if !yield(id) {
				return
			}
		}
	}
}
