package scenario

import (
	"cmp"
	"slices"

	"github.com/openinof/inof/model"
)

// Look is a run as it stands.
type Look struct {
	Now, End    model.Time
	Events      uint64
	Hops        uint64 // frames put on a link
	Active      int    // flows
	Done        int
	Xoff, Marks uint64
	Drops       uint64
	Lossless    uint64 // of those, on lossless queues
	Worst       []QueueLook
}

// QueueLook is a queue that holds much.
type QueueLook struct {
	Name   string // "s0>h16/3"
	Bytes  int64
	Peak   int64
	Paused bool
}

// worstShown is how many queues a Look names.
const worstShown = 6

// look tells how the run stands; it walks the whole fabric.
func (b *builder) look() Look {
	s := b.sim
	t := s.Totals()
	l := Look{Now: s.Now(), End: b.f.Duration, Events: s.Events(), Hops: t.FrameHops, Active: s.Active(), Xoff: t.TxXoff, Marks: t.Marks, Lossless: t.Lossless}
	for _, n := range t.Dropped {
		l.Drops += n
	}
	l.Done = s.Flows() - s.Active() - s.Pending()
	type place struct {
		port  model.PortID
		queue int
		bytes int64
	}
	var full []place
	for n := range model.NodeID(s.Nodes()) {
		for k := range s.Ports(n) {
			p := s.PortOf(n, k)
			for q := range model.NumQueues {
				if d := s.QueueBytes(p, q); d > 0 {
					full = append(full, place{p, q, d})
				}
			}
		}
	}
	slices.SortFunc(full, func(x, y place) int {
		return cmp.Or(cmp.Compare(y.bytes, x.bytes), cmp.Compare(x.port, y.port), cmp.Compare(x.queue, y.queue))
	})
	for _, w := range full[:min(len(full), worstShown)] {
		st := s.Queue(w.port, w.queue)
		name := s.NodeName(s.PortNode(w.port)) + ">" + s.NodeName(s.PortNode(s.Peer(w.port)))
		l.Worst = append(l.Worst, QueueLook{Name: name + "/" + string(rune('0'+w.queue)), Bytes: w.bytes, Peak: st.Peak, Paused: st.PausedNow})
	}
	return l
}
