package timerheap

// Entry is what a Heap holds: a pointer to a T that embeds a Place of T.
type Entry[T any] interface {
	*T
	// Ahead tells, of two entries that are due at the same moment, whether this one
	// goes first: where that is visible it must not depend on chance. It must not
	// change while the entry is in a heap.
	Ahead(*T) bool
	place() *Place[T]
}

// Place is where an entry is in its heap; the zero value: in none.
type Place[T any] struct {
	at int32 // index + 1
	e  *T
}

func (p *Place[T]) place() *Place[T] { return p }

// Queued reports whether the entry is in a heap.
func (p *Place[T]) Queued() bool { return p.at != 0 }

// Heap holds entries by when they are due, in a unit that is the owner's affair. The
// zero value is empty and ready. An entry may be in one heap at a time.
type Heap[T any, E Entry[T]] struct{ nodes []node[T] }

// node has beside the entry what is needed of it for every comparison and move, so
// that these cost no call and touch no other memory.
type node[T any] struct {
	due   int64
	place *Place[T]
}

// Len is how many entries are in it.
func (h *Heap[T, E]) Len() int { return len(h.nodes) }

// First is the entry that is due first, and when; only with a Len above 0.
func (h *Heap[T, E]) First() (e E, due int64) { return h.nodes[0].place.e, h.nodes[0].due }

// Put puts an entry in, or moves it, if it is in, to when it is due now.
func (h *Heap[T, E]) Put(e E, due int64) {
	n := node[T]{due, e.place()}
	i := int(n.place.at) - 1
	if i < 0 {
		n.place.e = e
		i = len(h.nodes)
		h.nodes = append(h.nodes, n)
	}
	if j := h.up(i, n); j == i {
		h.down(i, n)
	}
}

// Remove takes an entry out; one that is not in is passed over.
func (h *Heap[T, E]) Remove(e E) {
	p := e.place()
	if !p.Queued() {
		return
	}
	i := int(p.at) - 1
	*p = Place[T]{}
	last := len(h.nodes) - 1
	moved := h.nodes[last]
	h.nodes[last] = node[T]{}
	h.nodes = h.nodes[:last]
	if i == last {
		return
	}
	if j := h.up(i, moved); j == i {
		h.down(i, moved)
	}
}

func ahead[T any, E Entry[T]](a, b *Place[T]) bool { return E(a.e).Ahead(b.e) }

// up moves a node that belongs to i towards the root and tells where it is then.
func (h *Heap[T, E]) up(i int, n node[T]) int {
	a := h.nodes
	for i > 0 {
		up := (i - 1) / 4
		if p := &a[up]; n.due > p.due || n.due == p.due && !ahead[T, E](n.place, p.place) {
			break
		}
		a[i] = a[up]
		a[i].place.at = int32(i + 1)
		i = up
	}
	a[i] = n
	n.place.at = int32(i + 1)
	return i
}

// down moves a node away from the root.
func (h *Heap[T, E]) down(i int, n node[T]) {
	a := h.nodes
	for 4*i+1 < len(a) {
		first := 4*i + 1
		children := a[first:min(first+4, len(a))]
		least := 0
		for c := 1; c < len(children); c++ {
			if p, q := &children[c], &children[least]; p.due < q.due || p.due == q.due && ahead[T, E](p.place, q.place) {
				least = c
			}
		}
		if p := &children[least]; n.due < p.due || n.due == p.due && !ahead[T, E](p.place, n.place) {
			break
		}
		a[i] = children[least]
		a[i].place.at = int32(i + 1)
		i = first + least
	}
	a[i] = n
	n.place.at = int32(i + 1)
}

// Each calls yield with every entry and when it is due, in no order.
func (h *Heap[T, E]) Each(yield func(e E, due int64)) {
	for i := range h.nodes {
		yield(h.nodes[i].place.e, h.nodes[i].due)
	}
}

// Sound reports whether the order and every place are right; for tests.
func (h *Heap[T, E]) Sound() bool {
	for i := range h.nodes {
		n, p := &h.nodes[i], &h.nodes[max(0, i-1)/4]
		if n.place.at != int32(i+1) || n.place != E(n.place.e).place() {
			return false
		}
		if i > 0 && (n.due < p.due || n.due == p.due && ahead[T, E](n.place, p.place)) {
			return false
		}
	}
	return true
}
