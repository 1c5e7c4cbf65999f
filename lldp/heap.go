package lldp

// ageHeap is a 4-ary heap of entries by expiry. Every entry knows its place, so
// that a refresh moves it and a removal takes it out without a search.
type ageHeap []*entry

func (e *entry) before(o *entry) bool {
	if c := e.n.Expires.Compare(o.n.Expires); c != 0 {
		return c < 0
	}
	// Ties are broken so that the order of changes does not depend on chance.
	if e.n.Port != o.n.Port {
		return e.n.Port < o.n.Port
	}
	return e.key < o.key
}

func (h *ageHeap) push(e *entry) {
	e.pos = len(*h)
	*h = append(*h, e)
	h.up(e.pos)
}

// fix restores the order after e.n.Expires changed.
func (h ageHeap) fix(e *entry) {
	if !h.up(e.pos) {
		h.down(e.pos)
	}
}

func (h *ageHeap) remove(e *entry) {
	last := len(*h) - 1
	i := e.pos
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		h.fix((*h)[i])
	}
	e.pos = -1
}

func (h ageHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func (h ageHeap) up(i int) bool {
	start := i
	for i > 0 {
		parent := (i - 1) / 4
		if !h[i].before(h[parent]) {
			break
		}
		h.swap(i, parent)
		i = parent
	}
	return i != start
}

func (h ageHeap) down(i int) {
	for {
		least := i
		for c := 4*i + 1; c <= 4*i+4 && c < len(h); c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
