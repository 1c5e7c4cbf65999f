package hostnotify

import "time"

// history is a ring of the most recent notices. A notice is named by the number of
// notices before it, so a pair can keep that name without keeping the record alive.
type history struct {
	limit int
	ring  []Notice
	total uint64
}

// add records a notice and returns its name.
func (h *history) add(r Notice) uint64 {
	id := h.total
	if len(h.ring) < h.limit {
		h.ring = append(h.ring, r)
	} else {
		h.ring[id%uint64(h.limit)] = r
	}
	h.total++
	return id
}

// noRecord names no notice.
const noRecord = ^uint64(0)

// at is the record of that name; nil when it is older than the ring.
func (h *history) at(id uint64) *Notice {
	if id >= h.total || h.total-id > uint64(len(h.ring)) {
		return nil
	}
	return &h.ring[id%uint64(h.limit)]
}

func (h *history) ack(id uint64, at time.Time) {
	if r := h.at(id); r != nil {
		r.Acked = at
	}
}

// sent corrects when the frame of a notice left.
func (h *history) sent(id uint64, at time.Time) {
	if r := h.at(id); r != nil {
		r.Sent = at
	}
}

func (h *history) giveUp(id uint64) {
	if r := h.at(id); r != nil {
		r.GivenUp = true
	}
}

func (h *history) retry(id uint64, port string) {
	if r := h.at(id); r != nil {
		r.Retries++
		r.Port = port
	}
}

func (h *history) drop(id uint64) {
	if r := h.at(id); r != nil {
		r.Dropped = true
	}
}

func (h *history) undrop(id uint64) {
	if r := h.at(id); r != nil {
		r.Dropped = false
	}
}

func (h *history) list() []Notice {
	out := make([]Notice, 0, len(h.ring))
	for id := h.total - uint64(len(h.ring)); id < h.total; id++ {
		out = append(out, h.ring[id%uint64(h.limit)])
	}
	return out
}
