package api

import (
	"context"
	"sync"
	"time"
)

// EventLog keeps the newest events for any number of readers. Append never waits
// for a reader: one that is too slow finds how many events it missed.
type EventLog struct {
	mu    sync.Mutex
	ring  []Event
	size  int
	start int           // of the oldest event in ring
	first uint64        // ID of the first event ever
	next  uint64        // ID of the next event
	grown chan struct{} // closed and replaced by each Append
	noted func(*Event)  // nil: nobody
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
	return &EventLog{size: max(size, 1), first: first, next: first, grown: make(chan struct{})}
}

// Append adds an event, gives it its ID and returns it.
func (l *EventLog) Append(e Event) Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.next
	l.next++
	if len(l.ring) < l.size {
		l.ring = append(l.ring, e)
	} else {
		l.ring[l.start] = e
		l.start = (l.start + 1) % l.size
	}
	if l.noted != nil {
		l.noted(&e)
	}
	close(l.grown)
	l.grown = make(chan struct{})
	return e
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
	if after >= l.next || after < l.first {
		after = l.first - 1 // an ID of another life of the daemon, or none: all there is
	}
	if after == b.Last {
		return b, l.grown
	}
	oldest := l.next - uint64(len(l.ring))
	if after+1 < oldest {
		b.Missed = oldest - (after + 1)
		after = oldest - 1
	}
	n := int(b.Last - after)
	b.Events = make([]Event, 0, n)
	for i := len(l.ring) - n; i < len(l.ring); i++ {
		b.Events = append(b.Events, l.ring[(l.start+i)%len(l.ring)])
	}
	return b, l.grown
}
