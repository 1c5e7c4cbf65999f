package daemon

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/internal/api"
)

// saver writes a device's state behind its back. The owner goroutine offers it the
// state when it has changed and has been quiet for a moment; the writing is done in
// the saver's own goroutine. A directory that is full or read-only is told once,
// counted, and tried again.
type saver struct {
	dir      string
	log      *api.EventLog
	now      func() time.Time
	states   chan State
	journal  *journal
	revision uint64    // last one handed over
	seen     uint64    // last one seen
	changed  time.Time // when the first change since the last hand-over was seen
	touched  time.Time // when the last change was seen
	handed   time.Time // when a state was handed over last

	busy   atomic.Bool // a state is being written
	failed atomic.Bool // the last one could not be
	why    atomic.Pointer[string]
	saves  atomic.Uint64
	errors atomic.Uint64
}

const (
	saveQuiet = 50 * time.Millisecond // the owner must have been quiet for this long
	saveLimit = time.Second           // unless changes have been coming for this long
	saveRetry = 10 * time.Second      // after an error
)

// SaverCounters count the writing of the state file.
type SaverCounters struct {
	Saves  uint64 `json:"saves"`
	Errors uint64 `json:"errors"`
}

func newSaver(dir string, log *api.EventLog, now func() time.Time) *saver {
	return &saver{dir: dir, log: log, now: now, states: make(chan State, 1), journal: newJournal(dir)}
}

// Counters may be called by any goroutine.
func (s *saver) Counters() SaverCounters {
	return SaverCounters{Saves: s.saves.Load(), Errors: s.errors.Load()}
}

// offer is called by the owner after each event, so it is cheap when nothing
// changed. It returns when it wants to be called again; zero: at the next event.
func (s *saver) offer(c *Core, now time.Time) time.Time {
	rev := c.Revision()
	if rev != s.seen {
		if s.seen == s.revision {
			s.changed = now
		}
		s.seen, s.touched = rev, now
	}
	due := s.touched.Add(saveQuiet)
	if limit := s.changed.Add(saveLimit); limit.Before(due) {
		due = limit
	}
	switch {
	case s.busy.Load():
		return now.Add(saveQuiet)
	case s.failed.Load():
		due = s.handed.Add(saveRetry)
	case rev == s.revision:
		return time.Time{}
	}
	if now.Before(due) {
		return due
	}
	s.busy.Store(true)
	s.revision, s.handed = rev, now
	st := c.State(now)
	st.Journal = s.journal.begin()
	s.states <- st
	return now.Add(saveQuiet)
}

// last hands over the state at a stop.
func (s *saver) last(st State) {
	select {
	case <-s.states: // an older one that was not taken yet
	default:
	}
	st.Journal, st.Clean = s.journal.begin(), true // nothing will follow in it
	s.states <- st
	close(s.states)
	s.journal.close()
}

// abandon ends the writing without a last state.
func (s *saver) abandon() {
	close(s.states)
	s.journal.close()
}

// Run writes until last was called; it does not end with ctx, so that the last
// state is written too.
func (s *saver) Run(context.Context) error {
	for st := range s.states {
		s.save(st)
		s.busy.Store(false)
	}
	return nil
}

func (s *saver) String() string { return "state file" }

// warning says what an operator should look at; empty: all is saved.
func (s *saver) warning() string {
	why := s.why.Load() // stored before failed is set
	if !s.failed.Load() || why == nil {
		return ""
	}
	return fmt.Sprintf("the state file cannot be written, tried again every %s: until then a restart may repeat notices (%s)", saveRetry, *why)
}

func (s *saver) save(st State) {
	err := SaveState(s.dir, st)
	if err == nil {
		s.saves.Add(1)
		removeJournals(s.dir, st.Journal)
		if s.failed.Swap(false) {
			s.log.Append(api.Event{Time: s.now(), Kind: "state", Text: "state is saved again in " + s.dir})
		}
		return
	}
	s.errors.Add(1)
	text := err.Error()
	s.why.Store(&text)
	if !s.failed.Swap(true) {
		s.log.Append(api.Event{Time: s.now(), Kind: "error", Fields: map[string]string{"room": "state"},
			Text: fmt.Sprintf("state cannot be saved: %v; make room in %s or make it writable: until then a restart may repeat notices", err, s.dir)})
	}
}
