package api

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"
)

// EventLog keeps the newest events for any number of readers. Append never waits
// for a reader: one that is too slow finds how many events it missed.
type EventLog struct {
	mu    sync.Mutex
	ring  []Event
	size  int
	start int                        // of the oldest event in ring
	begin uint64                     // ID of the first event of all, restored or not
	first uint64                     // ID of the first event since the start
	next  uint64                     // ID of the next event
	grown chan struct{}              // closed and replaced by each Append
	noted func(*Event)               // nil: nobody
	tell  func(e Event, gone uint64) // nil: nobody
	kinds map[string]uint64          // appended, by kind
}

// OnAppend has note called with each event from now on, one at a time. It must be quick,
// and must not use the log.
func (l *EventLog) OnAppend(note func(*Event)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noted = note
}

// NewEventLog makes a log that holds size (at least 1) events. IDs begin at the
// start time in microseconds, so that they grow across restarts of the daemon.
func NewEventLog(size int, start time.Time) *EventLog {
	first := uint64(max(start.UnixMicro(), 1))
	return &EventLog{size: max(size, 1), begin: first, first: first, next: first, grown: make(chan struct{}), kinds: map[string]uint64{}}
}

// Restore puts events of before a restart back, before any is added. Those for which there is
// no room are returned.
func (l *EventLog) Restore(events []Event) (left []Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events = slices.Clone(events)
	slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.ID, b.ID) })
	n := max(0, len(events)-l.size)
	left, l.ring = events[:n:n], events[n:]
	if len(l.ring) > 0 {
		l.begin = l.ring[0].ID
		if last := l.ring[len(l.ring)-1].ID; last >= l.next { // the clock was set back
			l.first, l.next = last+1, last+1
		}
	}
	return left
}

// Follow has tell called with each event from now on, and with the ID of the one that went
// out of the log for it (0: none). It must be short.
func (l *EventLog) Follow(tell func(e Event, gone uint64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell = tell
}

// Append adds an event, gives it its ID and returns it.
func (l *EventLog) Append(e Event) Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.next
	l.next++
	l.kinds[e.Kind]++
	gone := uint64(0)
	if len(l.ring) < l.size {
		l.ring = append(l.ring, e)
	} else {
		gone = l.ring[l.start].ID
		l.ring[l.start] = e
		l.start = (l.start + 1) % l.size
	}
	if l.tell != nil {
		l.tell(e, gone)
	}
	if l.noted != nil {
		l.noted(&e)
	}
	close(l.grown)
	l.grown = make(chan struct{})
	return e
}

// Kinds are how many events of each kind there were since the start.
func (l *EventLog) Kinds() map[string]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.kinds)
}

// Latest gives the newest event; false: there was none.
func (l *EventLog) Latest() (Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ring) == 0 {
		return Event{}, false
	}
	return l.ring[(l.start+len(l.ring)-1)%len(l.ring)], true
}

// Events implements EventSource.
func (l *EventLog) Events(after uint64) EventBatch {
	b, _ := l.batch(after)
	return b
}

// Subscribe implements EventSource.
func (l *EventLog) Subscribe(ctx context.Context, after uint64) (EventBatch, error) {
	for {
		b, grown := l.batch(after)
		if len(b.Events) > 0 {
			return b, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return EventBatch{Last: after}, ctx.Err()
		}
	}
}

// batch gives what is held after an ID, and what tells of the next event.
func (l *EventLog) batch(after uint64) (EventBatch, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := EventBatch{Last: l.next - 1}
	if after >= l.next || after < l.begin {
		after = l.begin - 1 // an ID of another life of the daemon, or none: all there is
	}
	if after == b.Last {
		return b, l.grown
	}
	at := func(i int) *Event { return &l.ring[(l.start+i)%len(l.ring)] }
	n := sort.Search(len(l.ring), func(i int) bool { return at(i).ID > after }) // there is a gap at each restart
	if oldest := at(0).ID; n == 0 && oldest > max(after+1, l.first) {
		b.Missed = oldest - max(after+1, l.first)
	}
	b.Events = make([]Event, 0, len(l.ring)-n)
	for ; n < len(l.ring); n++ {
		b.Events = append(b.Events, *at(n))
	}
	return b, l.grown
}
