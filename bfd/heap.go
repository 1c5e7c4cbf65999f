package bfd

// timers is a 4-ary heap of sessions by their earliest timer. Every session knows
// its place, so that changing a timer needs no search.
type timers []*session

func (s *session) before(o *session) bool {
	if s.due != o.due {
		return s.due < o.due
	}
	return s.localDiscr < o.localDiscr // so that the order does not depend on chance
}

func (h *timers) push(s *session) {
	s.pos = len(*h)
	*h = append(*h, s)
	h.up(s.pos)
}

// fix restores the order after s.due changed.
func (h timers) fix(s *session) {
	if !h.up(s.pos) {
		h.down(s.pos)
	}
}

func (h *timers) remove(s *session) {
	last := len(*h) - 1
	i := s.pos
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		h.fix((*h)[i])
	}
	s.pos = -1
}

func (h timers) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func (h timers) up(i int) bool {
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

func (h timers) down(i int) {
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
