package virtual

import (
	"time"

	"github.com/openinof/inof/internal/timerheap"
)

// epoch is when every run begins for machines, which know wall-clock time.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Wall is the wall-clock time after so much of a run.
func Wall(since time.Duration) time.Time { return epoch.Add(since) }

// Since is the inverse of Wall.
func Since(t time.Time) time.Duration { return t.Sub(epoch) }

// Queue is what is planned. What is planned for one moment happens in the order in which it was
// planned. The unit of moments is the user's.
type Queue struct {
	seq  uint64
	heap timerheap.Heap[planned, *planned]
}

type planned struct {
	timerheap.Place[planned]
	seq uint64
	fn  func()
}

// Ahead implements timerheap.Entry.
func (p *planned) Ahead(o *planned) bool { return p.seq < o.seq }

// Put plans fn for a moment.
func (q *Queue) Put(at int64, fn func()) {
	q.seq++
	q.heap.Put(&planned{seq: q.seq, fn: fn}, at)
}

// Next is the moment of what comes first; false: nothing is planned.
func (q *Queue) Next() (at int64, ok bool) {
	if q.heap.Len() == 0 {
		return 0, false
	}
	_, at = q.heap.First()
	return at, true
}

// Take takes out what comes first.
func (q *Queue) Take() (fn func()) {
	p, _ := q.heap.First()
	q.heap.Remove(p)
	return p.fn
}

// World is virtual time as devices live in it.
type World interface {
	Now() int64             // in the unit of the world
	At(at int64, fn func()) // has fn called then, and at once if that is past
	Time() time.Time        // now, for machines
	Moment(time.Time) int64 // the inverse
}

// Look is when a machine is looked at next: the earliest moment that was asked for counts.
type Look struct{ at int64 }

// Plan has look called at a moment, unless it is called earlier, after which it is planned anew.
// Alive reports then whether the machine is still there.
func (l *Look) Plan(w World, when time.Time, alive func() bool, look func()) {
	now := w.Now()
	at := max(w.Moment(when), now)
	if l.at != 0 && l.at <= at && l.at > now {
		return
	}
	l.at = at
	w.At(at, func() {
		if alive() && l.at == at {
			l.at = 0
			look()
		}
	})
}

// Forget is for a machine that begins anew.
func (l *Look) Forget() { l.at = 0 }
