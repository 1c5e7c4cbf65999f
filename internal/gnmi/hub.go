package gnmi

import (
	"context"
	"sync"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/telemetry"
)

const (
	// beat is how often the device is read for all streams.
	beat = time.Second
	// quickBeat is how often what is read of the platform can be sampled in between: the shortest
	// period of a sample.
	quickBeat = 10 * time.Millisecond
	// pauseForNotices is how long after an event it is told: what hosts are to be told of it is
	// told before, and a storm of events wakes the streams fifty times a second at most.
	pauseForNotices = 20 * time.Millisecond
	// settle is how long after an event the device is read: what the event causes is done by
	// then, first of all that hosts are told.
	settle = 100 * time.Millisecond
	// share bounds the time spent reading to a fifth of all time.
	share = 5
)

// hub reads the device for all streams.
type hub struct {
	src Source
	now func() time.Time
	ctx context.Context // of the server

	mu      sync.Mutex // also while the device is read: one does so at a time
	streams map[*stream]bool
	joined  chan struct{}  // somebody has
	tree    telemetry.Tree // as last handed to the streams
	at      time.Time      // when it was read
	has     telemetry.Need // its large parts
	running bool
}

func newHub(src Source, now func() time.Time) hub {
	return hub{src: src, now: now, streams: map[*stream]bool{}, joined: make(chan struct{}, 1)}
}

// need is what the streams ask for together.
func (h *hub) need() (n telemetry.Need) {
	for s := range h.streams {
		n |= s.need
	}
	return n
}

// join adds a stream and gives it what is known: all that changes from then on is offered to it.
func (h *hub) join(ctx context.Context, s *stream) (telemetry.Tree, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now().Sub(h.at) >= beat || h.has&s.need != s.need || len(h.streams) == 0 {
		if err := h.read(ctx, s.need|h.need(), time.Time{}, false); err != nil {
			return nil, err
		}
	}
	h.streams[s] = true
	s.calm = h.src.Hasten(s.pace)
	select {
	case h.joined <- struct{}{}:
	default:
	}
	if !h.running {
		h.running = true
		go h.run()
	}
	return h.tree, nil
}

func (h *hub) leave(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
	s.calm()
}

// read has the streams know what is new. Of an event, counters are left as they are: these are
// compared once a beat.
func (h *hub) read(ctx context.Context, need telemetry.Need, after time.Time, event bool) error {
	snapshot, err := h.src.Snapshot(ctx, need, after)
	if err != nil {
		return err
	}
	tree := telemetry.Read(snapshot)
	if event {
		telemetry.Hold(h.tree, tree)
	}
	if len(h.streams) > 0 {
		changed, gone := telemetry.Diff(h.tree, tree)
		c := &difference{changed: changed, gone: goneEntries(gone, tree)}
		for s := range h.streams {
			s.take(c)
		}
	}
	h.tree, h.at, h.has = tree, h.now(), need
	return nil
}

// run beats as long as there are streams.
func (h *hub) run() {
	events := make(chan api.EventBatch)
	ctx, stop := context.WithCancel(h.ctx)
	defer stop()
	go follow(ctx, h.src, events)
	next := time.NewTimer(beat)
	defer next.Stop()
	soon := time.NewTimer(time.Hour)
	soon.Stop()
	defer soon.Stop()
	quick := time.NewTimer(time.Hour)
	defer quick.Stop()
	waits := false // for soon
	var happened time.Time
	for {
		event := false
		select {
		case b := <-events:
			h.tell(b)
			if !waits {
				waits, happened = true, h.now()
				soon.Reset(settle)
			}
			continue
		case <-h.joined:
			quick.Reset(h.sample())
			continue
		case <-quick.C:
			quick.Reset(h.sample())
			continue
		case <-soon.C:
			event = true
		case <-next.C:
		case <-h.ctx.Done():
			return
		}
		begun := h.now()
		h.mu.Lock()
		if len(h.streams) == 0 {
			h.running, h.tree = false, nil
			h.mu.Unlock()
			return
		}
		err := h.read(h.ctx, h.need(), happened, event)
		if !event && err == nil {
			for s := range h.streams {
				s.tick(begun, h.tree, false)
			}
		}
		h.mu.Unlock()
		cost := h.now().Sub(begun)
		if event {
			waits = false
		} else {
			next.Reset(max(beat-cost, share*cost))
		}
	}
}

// sample gives the streams the quick samples that are due, and says how long there are none.
func (h *hub) sample() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	begun := h.now()
	first, wanted := h.due(begun)
	if len(wanted) > 0 {
		snapshot, err := h.src.Quick(h.ctx)
		if err != nil {
			return beat // it stops
		}
		tree := telemetry.ReadOf(snapshot, wanted)
		for s := range h.streams {
			s.tick(begun, tree, true)
		}
		first, _ = h.due(begun)
	}
	if first.IsZero() {
		return time.Hour
	}
	now := h.now()
	return max(first.Sub(now), quickBeat/2, share*now.Sub(begun))
}

// due gives when the next quick sample or its heartbeat is, zero: never; and the leaves of those
// that are due now.
func (h *hub) due(now time.Time) (first time.Time, wanted map[*telemetry.Leaf]bool) {
	wanted = map[*telemetry.Leaf]bool{}
	for s := range h.streams {
		for _, u := range s.subs {
			if !u.quick {
				continue
			}
			next := u.next
			if u.beats > 0 && u.nextBeat.Before(next) {
				next = u.nextBeat
			}
			if first.IsZero() || next.Before(first) {
				first = next
			}
			if now.Before(next) {
				continue
			}
			for l := range u.leaves {
				wanted[l] = true
			}
		}
	}
	return first, wanted
}

// tell hands events to the streams that want each of them.
func (h *hub) tell(b api.EventBatch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range b.Events {
		tree := telemetry.OfEvent(&b.Events[i])
		for s := range h.streams {
			s.event(tree)
		}
	}
	for s := range h.streams {
		s.missed(b.Missed)
	}
}

// follow gives the events from now on.
func follow(ctx context.Context, src Source, out chan<- api.EventBatch) {
	last := src.Events(1<<63 - 1).Last
	for {
		b, err := src.Subscribe(ctx, last)
		if err != nil {
			return
		}
		select {
		case <-time.After(pauseForNotices):
		case <-ctx.Done():
			return
		}
		if b, err = src.Subscribe(ctx, last); err != nil { // with what came meanwhile
			return
		}
		last = b.Last
		select {
		case out <- b:
		case <-ctx.Done():
			return
		}
	}
}

// difference is what is new since the last reading.
type difference struct {
	changed telemetry.Tree
	gone    []gone
}

// gone is something that is not there any more: a leaf, or the entry of a list with all its leaves.
type gone struct {
	leaf  *telemetry.Leaf // or one of the entry's
	keys  []string
	whole bool // the entry
}

// goneEntries puts leaves that are gone together where all of their entry is.
func goneEntries(leaves, tree telemetry.Tree) (out []gone) {
	if len(leaves) == 0 {
		return nil
	}
	there := map[string]bool{}
	for i := range tree {
		if n := theSchema.of[tree[i].Leaf]; n != nil && n.entry > 0 {
			there[n.id(tree[i].Keys)] = true
		}
	}
	for i := range leaves {
		v := &leaves[i]
		n := theSchema.of[v.Leaf]
		if n == nil {
			continue
		}
		whole := n.entry > 0 && !there[n.id(v.Keys)]
		out = append(out, gone{v.Leaf, v.Keys, whole})
	}
	return out
}
