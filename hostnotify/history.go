package hostnotify

import (
	"slices"
	"time"
)

// history is a ring of the most recent notices. A notice is named by the number of
// notices before it, also before a restart, so a pair can keep that name without keeping
// the record alive.
type history struct {
	limit int
	ring  []Notice
	first uint64 // name of what was in ring[0] at first
	total uint64

	given   uint64   // names below were given by TakeHistory
	touched []uint64 // of these, changed since
	dropped []uint64 // restored, and not in the ring
}

// add records a notice and returns its name.
func (h *history) add(r Notice) uint64 {
	id := h.total
	if len(h.ring) < h.limit {
		h.ring = append(h.ring, r)
	} else {
		*h.slot(id) = r
	}
	h.total++
	return id
}

func (h *history) slot(id uint64) *Notice { return &h.ring[(id-h.first)%uint64(h.limit)] }

// noRecord names no notice.
const noRecord = ^uint64(0)

// at is the record of that name; nil when it is older than the ring.
func (h *history) at(id uint64) *Notice {
	if id >= h.total || h.total-id > uint64(len(h.ring)) {
		return nil
	}
	return h.slot(id)
}

// change is at of one that is about to change.
func (h *history) change(id uint64) *Notice {
	r := h.at(id)
	if r != nil && id < h.given && len(h.touched) < 4*h.limit {
		h.touched = append(h.touched, id)
	}
	return r
}

func (h *history) ack(id uint64, at time.Time) {
	if r := h.change(id); r != nil {
		r.Acked = at
	}
}

// sent corrects when the frame of a notice left.
func (h *history) sent(id uint64, at time.Time) {
	if r := h.change(id); r != nil {
		r.Sent = at
	}
}

func (h *history) observe(id uint64) {
	if r := h.change(id); r != nil {
		r.Observed = true
	}
}

func (h *history) giveUp(id uint64) {
	if r := h.change(id); r != nil {
		r.GivenUp = true
	}
}

func (h *history) retry(id uint64, port string) {
	if r := h.change(id); r != nil {
		r.Retries++
		r.Port = port
	}
}

func (h *history) drop(id uint64) {
	if r := h.change(id); r != nil {
		r.Dropped = true
	}
}

func (h *history) undrop(id uint64) {
	if r := h.change(id); r != nil {
		r.Dropped = false
	}
}

// oldest is the name of the oldest record.
func (h *history) oldest() uint64 { return h.total - uint64(len(h.ring)) }

func (h *history) list() []Notice {
	out := make([]Notice, 0, len(h.ring))
	for id := h.oldest(); id < h.total; id++ {
		out = append(out, *h.slot(id))
	}
	return out
}

// HistoryChanged reports whether TakeHistory has something to give.
func (n *Notifier) HistoryChanged() bool {
	h := &n.history
	return n.cfg.Keep && (h.total > h.given || len(h.touched)+len(h.dropped) > 0)
}

// TakeHistory gives the records of the history that have changed since it was last called, and
// the names of those that are not in it any more.
func (n *Notifier) TakeHistory(put func(id uint64, r Notice), drop func(id uint64)) {
	h := &n.history
	for _, id := range h.dropped {
		drop(id)
	}
	slices.Sort(h.touched)
	for _, id := range slices.Compact(h.touched) {
		if r := h.at(id); r != nil {
			put(id, *r)
		}
	}
	for id := max(h.given, h.oldest()); id < h.total; id++ {
		put(id, *h.at(id))
	}
	// What went out of the ring since then had been given, unless it came since then too.
	for id := max(h.first, h.given-min(h.given, uint64(h.limit))); id < min(h.oldest(), h.given); id++ {
		drop(id)
	}
	h.given, h.touched, h.dropped = h.total, h.touched[:0], nil
}

// RestoreHistory takes the records of TakeHistory back, before anything is told and after
// Restore. Names go on behind the last one.
func (n *Notifier) RestoreHistory(records map[uint64]Notice) {
	h := &n.history
	var names []uint64
	for id := range records {
		if id != noRecord {
			names = append(names, id)
		}
	}
	slices.Sort(names)
	begin := max(0, len(names)-h.limit)
	for i := len(names) - 1; i > begin; i-- {
		if names[i-1]+1 != names[i] {
			begin = i // one is missing: those before it are of no use
		}
	}
	h.dropped = append(h.dropped, names[:begin]...)
	if names = names[begin:]; len(names) == 0 {
		return
	}
	h.first, h.total = names[0], names[0]
	for _, id := range names {
		r := records[id]
		h.add(r)
		if s := n.subs[r.Host]; s != nil && r.Acked.IsZero() {
			if p := s.pairs[r.Subject]; p != nil && p.told.seq == r.Seq && p.told.state == r.State {
				p.told.rec = id // its ack may still come
			}
		}
	}
	h.given = h.total
}
