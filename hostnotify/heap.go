package hostnotify

// retryHeap orders the pairs under way by when their retry is due. It is a heap of
// four children a node: typed, without the interface calls and allocations of
// container/heap.
type retryHeap []*pair

func (h *retryHeap) push(p *pair) {
	p.heap = int32(len(*h))
	*h = append(*h, p)
	h.up(len(*h) - 1)
}

// remove takes the pair out, if it is in.
func (h *retryHeap) remove(p *pair) {
	i := int(p.heap)
	if i < 0 {
		return
	}
	a := *h
	last := len(a) - 1
	a[i] = a[last]
	a[i].heap = int32(i)
	a[last] = nil
	*h = a[:last]
	p.heap = -1
	if i < last {
		h.down(h.up(i))
	}
}

func (h retryHeap) up(i int) int {
	p := h[i]
	for i > 0 {
		parent := (i - 1) / 4
		if h[parent].due <= p.due {
			break
		}
		h[i] = h[parent]
		h[i].heap = int32(i)
		i = parent
	}
	h[i] = p
	p.heap = int32(i)
	return i
}

func (h retryHeap) down(i int) {
	p := h[i]
	for {
		least := -1
		for c := 4*i + 1; c <= 4*i+4 && c < len(h); c++ {
			if least < 0 || h[c].due < h[least].due {
				least = c
			}
		}
		if least < 0 || p.due <= h[least].due {
			break
		}
		h[i] = h[least]
		h[i].heap = int32(i)
		i = least
	}
	h[i] = p
	p.heap = int32(i)
}
