package model

// event is one entry of the event queue. key holds the kind in its upper bits and
// the entity (port, queue pair, timer) below; a tie in time is broken by key, so
// that the order depends on what happens and never on who scheduled first.
type event struct {
	at  Time
	key uint32
	_   uint32 // 16 bytes an entry: four children share one cache line
}

func (a event) before(b event) bool {
	return a.at < b.at || (a.at == b.at && a.key < b.key)
}

// heap4 is a 4-ary heap of events by value.
type heap4 []event

func (h *heap4) push(e event) {
	*h = append(*h, e)
	ev := *h
	i := len(ev) - 1
	for i > 0 {
		up := (i - 1) >> 2
		if !e.before(ev[up]) {
			break
		}
		ev[i] = ev[up]
		i = up
	}
	ev[i] = e
}

// pop removes the first event.
func (h *heap4) pop() {
	n := len(*h) - 1
	e := (*h)[n]
	*h = (*h)[:n]
	if n == 0 {
		return
	}
	ev := *h
	i := 0
	for {
		c := i<<2 + 1
		if c >= n {
			break
		}
		m := c
		for j := c + 1; j < min(c+4, n); j++ {
			if ev[j].before(ev[m]) {
				m = j
			}
		}
		if !ev[m].before(e) {
			break
		}
		ev[i] = ev[m]
		i = m
	}
	ev[i] = e
}
