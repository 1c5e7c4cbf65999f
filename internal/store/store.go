package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/internal/wholefile"
)

// Config says where rows are kept, and how many.
type Config struct {
	Dir   string
	Owner string // whose rows they are: those of another one are not used
	// Max is how much is kept, in bytes as in a file; default 64 MiB. What is beyond is refused.
	Max int64
	// Interval is the least time from one batch to the next, Retry that after an error. Defaults
	// 200 ms and 10 s.
	Interval, Retry time.Duration
	// Tell is called when writing fails and when it works again (err is nil). May be nil.
	Tell func(err error)
}

func (c Config) withDefaults() Config {
	if c.Max <= 0 {
		c.Max = 64 << 20
	}
	if c.Interval <= 0 {
		c.Interval = 200 * time.Millisecond
	}
	if c.Retry <= 0 {
		c.Retry = 10 * time.Second
	}
	if len(c.Owner) > maxOwner {
		c.Owner = c.Owner[:maxOwner]
	}
	return c
}

// minLog is below what size a log is not replaced by a snapshot, in bytes.
const minLog = 1 << 20

// Counters count what is kept.
type Counters struct {
	Put       uint64 `json:"put"`          // rows that were changed
	Refused   uint64 `json:"refused"`      // of these, too long, or beyond what is kept
	Batches   uint64 `json:"batches"`      // appended to the log
	Written   uint64 `json:"written"`      // bytes, snapshots included
	Snapshots uint64 `json:"snapshots"`    // that replaced the log
	Errors    uint64 `json:"errors"`       // batches and snapshots that failed
	Rows      uint64 `json:"rows_read"`    // at the start
	Damaged   uint64 `json:"rows_damaged"` // rows that were left out at the start
	Torn      uint64 `json:"bytes_torn"`   // removed at the end of the log at the start
}

// Store keeps rows. Put and Delete are for one goroutine.
type Store struct {
	cfg     Config
	refused error // nothing is written

	mu      sync.Mutex // held for no longer than appending a row takes
	pending []Row      // in order; not yet taken by the writer

	// The writer's.
	rows  map[id][]byte // what is true
	bytes int64         // what they take in a file
	dirty map[id]struct{}
	log   *os.File // nil: both files are written anew
	info  os.FileInfo
	salt  uint32
	at    int64 // the end of the last sound row of the log

	work   chan struct{}
	end    chan struct{}
	failed atomic.Pointer[string]

	put, over, batches, written, snapshots, errors, read, damaged, torn atomic.Uint64
}

// Put implements Sink.
func (s *Store) Put(t Table, key, value []byte) {
	s.add(Row{t, bytes.Clone(key), append([]byte{}, value...)})
}

// Delete implements Sink.
func (s *Store) Delete(t Table, key []byte) { s.add(Row{Table: t, Key: bytes.Clone(key)}) }

func (s *Store) add(r Row) {
	s.put.Add(1)
	if s.refused != nil || len(r.Table) > MaxTable || len(r.Key) > MaxKey || len(r.Value) > MaxValue {
		s.over.Add(1)
		return
	}
	s.mu.Lock()
	s.pending = append(s.pending, r)
	s.mu.Unlock()
}

// Flush implements Sink.
func (s *Store) Flush() {
	s.mu.Lock()
	some := len(s.pending) > 0
	s.mu.Unlock()
	if some {
		s.wake()
	}
}

func (s *Store) wake() {
	select {
	case s.work <- struct{}{}:
	default:
	}
}

// Close has Run write what is pending, and end.
func (s *Store) Close() {
	select {
	case s.end <- struct{}{}:
	default:
	}
}

// Run writes until Close; it does not end with its context, so that the last rows are written too.
func (s *Store) Run(context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.end:
			_ = s.save()
			s.closeLog()
			return nil
		case <-s.work:
		}
		pause := s.cfg.Interval
		if s.save() != nil {
			pause = s.cfg.Retry
			s.wake()
		}
		timer.Reset(pause)
		select {
		case <-s.end:
			s.Close()
		case <-timer.C:
		}
	}
}

func (s *Store) String() string { return "store" }

// save writes what is pending and what could not be written before.
func (s *Store) save() error {
	s.mu.Lock()
	rows := s.pending
	s.pending = nil
	s.mu.Unlock()
	for i := range rows {
		s.take(&rows[i])
	}
	if s.refused != nil || len(s.dirty) == 0 {
		return nil
	}
	err := s.write()
	if err != nil {
		s.errors.Add(1)
		text := err.Error()
		if s.failed.Swap(&text) == nil && s.cfg.Tell != nil {
			s.cfg.Tell(err)
		}
		return err
	}
	clear(s.dirty)
	if s.failed.Swap(nil) != nil && s.cfg.Tell != nil {
		s.cfg.Tell(nil)
	}
	return nil
}

// take makes a row true, if there is room for it.
func (s *Store) take(r *Row) {
	k := r.id()
	old, had := s.rows[k]
	switch {
	case r.Value == nil && !had, had && r.Value != nil && bytes.Equal(old, r.Value):
		return
	case r.Value != nil && !had && s.bytes+r.size() > s.cfg.Max:
		s.over.Add(1)
		return
	}
	s.bytes += apply(s.rows, []Row{*r})
	s.dirty[k] = struct{}{}
}

// write brings the dirty rows to the disk: behind the log, or with a snapshot where that has grown
// or cannot be used.
func (s *Store) write() error {
	if s.log != nil && s.at < max(minLog, 2*s.bytes) && s.inPlace() {
		var b []byte
		for k := range s.dirty {
			b = appendRow(b, &Row{k.table, []byte(k.key), s.rows[k]}, s.salt)
		}
		_, err := s.log.WriteAt(b, s.at)
		if err == nil {
			err = s.log.Sync()
		}
		if err != nil { // the next batch is written over what there is of this one
			return errors.Join(err, s.log.Truncate(s.at))
		}
		s.at += int64(len(b))
		s.batches.Add(1)
		s.written.Add(uint64(len(b)))
		return nil
	}
	return s.compact()
}

// inPlace reports whether the open log is still where the next process looks for it.
func (s *Store) inPlace() bool {
	there, err := os.Stat(filepath.Join(s.cfg.Dir, LogName))
	return err == nil && os.SameFile(there, s.info)
}

// compact writes all rows to a snapshot, and then begins an empty log. A crash in between leaves a
// log of which the snapshot has every row.
func (s *Store) compact() error {
	salt := rand.Uint32()
	b := appendHead(nil, s.cfg.Owner, salt)
	rows := s.all()
	for i := range rows {
		b = appendRow(b, &rows[i], salt)
	}
	b = appendRow(b, &Row{Table: endTable, Key: binary.BigEndian.AppendUint64(nil, uint64(len(rows)))}, salt)
	if err := wholefile.Put(filepath.Join(s.cfg.Dir, SnapshotName), 0o600, b); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	s.snapshots.Add(1)
	s.written.Add(uint64(len(b)))
	head := appendHead(nil, s.cfg.Owner, salt)
	path := filepath.Join(s.cfg.Dir, LogName)
	if err := wholefile.Put(path, 0o600, head); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	s.closeLog()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if s.info, err = f.Stat(); err != nil {
		f.Close()
		return err
	}
	s.log, s.salt, s.at = f, salt, int64(len(head))
	return nil
}

func (s *Store) closeLog() {
	if s.log != nil {
		s.log.Close()
		s.log = nil
	}
}

// Warning says what an operator should look at; empty: all is saved.
func (s *Store) Warning() string {
	if s.refused != nil {
		return s.refused.Error()
	}
	if why := s.failed.Load(); why != nil {
		return *why
	}
	if s.over.Load() > 0 {
		return fmt.Sprintf("%d rows were not kept: there is room for %d bytes", s.over.Load(), s.cfg.Max)
	}
	return ""
}

// Counters may be called by any goroutine.
func (s *Store) Counters() Counters {
	return Counters{Put: s.put.Load(), Refused: s.over.Load(), Batches: s.batches.Load(), Written: s.written.Load(), Snapshots: s.snapshots.Load(),
		Errors: s.errors.Load(), Rows: s.read.Load(), Damaged: s.damaged.Load(), Torn: s.torn.Load()}
}
