package keep

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// aside is how long a transaction waits for what the change behind its first row sets going: the
// update to other devices, frames, the hosts' acks. It keeps a processor busy for 0.2 ms, which on
// a machine of few processors others are waiting for just then.
const aside = 10 * time.Millisecond

// Config says where things are kept.
type Config struct {
	Dir string // of the database
	// Unsaved is how the names of the files begin that need not outlive the machine; they
	// should lie in memory (tmpfs). Empty: beside the database.
	Unsaved string
	Device  string // whose rows they are; for Look empty: anybody's
	Boot    string // of the machine, another one after each start of it; empty: not known
	// Interval is the least time from one transaction to the next, Retry that after an error.
	// Defaults 100 ms and 10 s.
	Interval, Retry time.Duration
	// Tell is called when writing fails and when it works again (err is nil). May be nil.
	Tell func(err error)
}

func (c *Config) unsaved() string { return cmp.Or(c.Unsaved, filepath.Join(c.Dir, "unsaved")) }

// Counters count what is kept. Rows put again before they were written count once in Written.
type Counters struct {
	Put      uint64 `json:"put"`          // rows that were changed
	Unsaved  uint64 `json:"unsaved"`      // bytes written at once, to memory
	Commits  uint64 `json:"commits"`      // transactions
	Written  uint64 `json:"written"`      // rows in them
	Bytes    uint64 `json:"bytes"`        // bytes written to the disk by them
	Errors   uint64 `json:"errors"`       // transactions that failed
	Rows     uint64 `json:"rows_read"`    // at the start
	RowsBad  uint64 `json:"rows_damaged"` // rows that were left out
	SetAside uint64 `json:"set_aside"`    // databases that were
	Lost     uint64 `json:"unsaved_lost"` // times that the unsaved files could not be written
}

// Keeper keeps rows. Put and Delete are for one goroutine, Later for any.
type Keeper struct {
	cfg   Config
	found Found
	db    *database // the writer's

	mu      sync.Mutex // held for no longer than copying a row takes
	pending []Row      // in order; not yet taken by the writer
	later   []func() Row
	log     *unsaved // nil: there is none
	fresh   int      // of pending, which Flush has still to write to log
	rescued []Row    // of a file that has become unusable; the writer's
	waiting []chan<- error

	work   chan struct{} // there is something to write
	end    chan bool     // clean or not
	failed atomic.Pointer[string]

	put, commits, written, bytes, errors, bad, aside, lost atomic.Uint64
}

// Open reads what was kept and makes ready to keep more. It waits for the disk. What is wrong
// with what was kept is in Found; the error says that nothing can be written (tried
// again later). The Keeper can be used in either case.
func Open(cfg Config) (*Keeper, Found, error) {
	if cfg.Interval <= 0 {
		cfg.Interval = 100 * time.Millisecond
	}
	if cfg.Retry <= 0 {
		cfg.Retry = 10 * time.Second
	}
	k := &Keeper{cfg: cfg, work: make(chan struct{}, 1), end: make(chan bool, 1)}
	found, err := Look(cfg)
	if err != nil {
		found.aside = true // it may be there
		found.problem(cfg.Dir, err, "what was kept is not known", "make it readable")
	}
	k.found = found
	k.bad.Store(uint64(len(found.bad)))
	k.pending = append(found.beginning(cfg), found.unsaved...)
	k.found.incarnation = found.incarnation
	if !found.usable { // a new file is made, with all there is
		k.pending = append(append(found.beginning(cfg), found.Rows...), found.bad...)
	}
	return k, found, err
}

// Begin writes what a process begins with, and what was put since Open, and waits for it. After an
// error the process that comes next still knows that this one ran: by the unsaved files.
func (k *Keeper) Begin() error {
	err := k.save()
	if err != nil && k.found.usable {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.log, _ = resumeUnsaved(k.cfg.unsaved(), k.found.incarnation); k.log == nil {
			k.begin()
		}
	}
	return err
}

// Put implements Sink.
func (k *Keeper) Put(t Table, key, value []byte) {
	b := make([]byte, 0, len(key)+len(value)+1)
	b = append(append(b, key...), value...)
	k.add(Row{Table: t, Key: b[:len(key):len(key)], Value: b[len(key):len(b):len(b)]})
}

// Delete implements Sink.
func (k *Keeper) Delete(t Table, key []byte) { k.add(Row{Table: t, Key: bytes.Clone(key)}) }

func (k *Keeper) add(r Row) {
	if len(r.Table) > MaxTable || len(r.Key) > MaxKey || len(r.Value) > MaxValue {
		k.errors.Add(1) // nothing that is kept is as long
		return
	}
	k.put.Add(1)
	k.mu.Lock()
	k.pending = append(k.pending, r)
	k.fresh++
	k.mu.Unlock()
}

// Flush implements Sink.
func (k *Keeper) Flush() {
	k.mu.Lock()
	some := k.fresh > 0
	k.flush()
	k.mu.Unlock()
	if some {
		k.wake()
	}
}

// flush is Flush; k.mu is held.
func (k *Keeper) flush() {
	rows := k.pending[len(k.pending)-k.fresh:]
	k.fresh = 0
	if k.log != nil && len(rows) > 0 && k.log.add(rows) != nil {
		k.lose()
	}
}

// Later keeps a row for which nobody waits and that a kill may lose: it is made by the
// writer. Any goroutine may call it.
func (k *Keeper) Later(row func() Row) {
	k.mu.Lock()
	k.later = append(k.later, row)
	k.mu.Unlock()
	k.wake()
}

// Wait waits until all that was put and flushed before is on the disk, or says why it could not be
// written. It needs Run. Any goroutine may call it.
func (k *Keeper) Wait(ctx context.Context) error {
	if why := k.failed.Load(); why != nil {
		return errors.New(*why) // tried again later
	}
	done := make(chan error, 1)
	k.mu.Lock()
	k.waiting = append(k.waiting, done)
	k.mu.Unlock()
	k.wake()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *Keeper) wake() {
	select {
	case k.work <- struct{}{}:
	default:
	}
}

// lose gives the unsaved files up; k.mu is held.
func (k *Keeper) lose() {
	k.lost.Add(1)
	k.log.giveUp(k.cfg.unsaved())
	k.log = nil
}

// Close has everything written that is pending; clean says that nothing can come after. Run ends
// then.
func (k *Keeper) Close(clean bool) {
	select {
	case k.end <- clean:
	default:
	}
}

// Abandon ends a Keeper that did not come to run: what the last process kept is as good as before.
func (k *Keeper) Abandon() {
	if !k.found.Whole && !k.found.None {
		k.mu.Lock()
		k.pending = append(k.pending, Row{Table: own, Key: keyDoubt, Value: []byte{1}})
		k.mu.Unlock()
	}
	k.finish(true)
}

// Run writes until Close; it does not end with its context, so that the last rows are
// written too.
func (k *Keeper) Run(context.Context) error {
	for {
		select {
		case clean := <-k.end:
			k.finish(clean)
			return nil
		case <-k.work:
		}
		if k.ends(aside) {
			return nil
		}
		pause := k.cfg.Interval
		if k.save() != nil {
			pause = k.cfg.Retry
		}
		if k.ends(pause) {
			return nil
		}
		if k.failed.Load() != nil {
			k.wake()
		}
	}
}

// ends reports whether Close came within d; all is written then.
func (k *Keeper) ends(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case clean := <-k.end:
		k.finish(clean)
		return true
	case <-timer.C:
		return false
	}
}

func (k *Keeper) String() string { return "state" }

func (k *Keeper) finish(clean bool) {
	if clean {
		k.mu.Lock()
		k.flush()
		k.pending = append(k.pending, Row{Table: own, Key: keyClean, Value: []byte{1}})
		k.mu.Unlock()
	}
	err := k.save()
	if k.db != nil {
		k.db.close()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.log != nil {
		k.log.close()
		if err == nil && clean {
			k.log.giveUp(k.cfg.unsaved())
		}
		k.log = nil
	}
}

// save writes what is pending, and tells those who wait for it.
func (k *Keeper) save() error {
	k.mu.Lock()
	waiting := k.waiting
	k.waiting = nil
	k.mu.Unlock()
	err := k.savePending()
	for _, w := range waiting {
		w <- err
	}
	return err
}

func (k *Keeper) savePending() error {
	k.mu.Lock()
	k.flush()
	rows, later := k.pending, k.later
	k.pending, k.later = nil, nil
	if k.log != nil {
		k.log.turn()
	}
	k.mu.Unlock()
	for _, make := range later {
		rows = append(rows, make())
	}
	rows = latest(rows)
	if len(rows) == 0 && k.db != nil {
		return nil
	}
	err := k.write(rows)
	if err != nil {
		k.errors.Add(1)
		text := err.Error()
		if k.failed.Swap(&text) == nil {
			k.tell(err)
		}
		k.mu.Lock()
		k.pending = append(append(k.rescued, rows...), k.pending...) // fresh ones stay at the end
		k.mu.Unlock()
		k.rescued = nil
		return err
	}
	k.commits.Add(1)
	k.written.Add(uint64(len(rows)))
	if k.failed.Swap(nil) != nil {
		k.tell(nil)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.log == nil:
		k.begin()
	case k.log.committed() != nil:
		k.lose()
	}
	return nil
}

func (k *Keeper) tell(err error) {
	if k.cfg.Tell != nil {
		k.cfg.Tell(err)
	}
}

// begin makes the unsaved files, once the database is there; k.mu is held. What is pending already
// goes into them first.
func (k *Keeper) begin() {
	log, err := openUnsaved(k.cfg.unsaved(), k.found.incarnation, k.found.generation)
	if err == nil {
		k.log, k.fresh = log, 0
		err = log.add(k.pending)
	}
	if err != nil {
		k.lost.Add(1)
		if k.log != nil {
			k.log.giveUp(k.cfg.unsaved())
			k.log = nil
		}
	}
	k.found.generation += 4
}

// write brings rows to the disk, if need be into another file.
func (k *Keeper) write(rows []Row) error {
	if k.db == nil {
		if err := k.open(rows); err != nil || !k.found.usable {
			return err
		}
	}
	if err := k.moved(); err != nil {
		return err
	}
	n, err := k.db.commit(rows)
	if errors.Is(err, errBroken) {
		return errors.Join(err, k.replace())
	}
	k.bytes.Add(uint64(n))
	return err
}

// open opens the database, or makes one with these rows.
func (k *Keeper) open(rows []Row) (err error) {
	if k.found.usable {
		k.db, err = openDatabase(k.cfg.Dir)
		if errors.Is(err, errBroken) {
			return errors.Join(err, k.replace())
		}
		return err
	}
	if k.found.aside {
		if _, err := setAside(k.cfg.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("a damaged database cannot be set aside: %w", err)
		}
		k.found.aside = false
		k.aside.Add(1)
	}
	db, n, err := createDatabase(k.cfg.Dir, rows)
	if err == nil {
		k.db = db
		k.bytes.Add(uint64(n))
	}
	return err
}

// moved reports whether the open file is no longer where it was, so that the next process would
// not find it. Where its directory is still there it is written anew from the open one.
func (k *Keeper) moved() error {
	there, err := os.Stat(filepath.Join(k.cfg.Dir, FileName))
	switch {
	case err == nil && os.SameFile(there, k.db.file):
		return nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	if _, dirErr := os.Stat(k.cfg.Dir); dirErr != nil {
		return dirErr
	}
	rows, lost := k.db.all()
	k.db.close()
	k.db, k.found.usable, k.found.aside = nil, false, err == nil
	k.rescued = rows
	if lost != nil {
		k.rescued = append(rows, Row{Table: own, Key: keyDoubt, Value: []byte{1}})
	}
	return errors.New("the database was taken away; it is written anew")
}

// replace gives up a file that has become unusable while it was open: what can still be read
// of it goes into a new one, before the rows that were to be written.
func (k *Keeper) replace() error {
	if k.db != nil {
		k.db.close()
		k.db = nil
	}
	c, err := readFile(filepath.Join(k.cfg.Dir, FileName))
	if err != nil {
		return err
	}
	if k.found.usable = c.old && c.file == nil && len(c.bad) == 0; k.found.usable {
		return nil // it was the disk that failed for a moment
	}
	k.bad.Add(uint64(len(c.bad)))
	k.found.aside = c.old
	k.rescued = append(append(c.rows, k.found.beginning(k.cfg)...), Row{Table: own, Key: keyDoubt, Value: []byte{1}})
	return nil
}

// Warning says what an operator should look at; empty: all is saved.
func (k *Keeper) Warning() string {
	if why := k.failed.Load(); why != nil {
		return *why
	}
	return ""
}

// Counters may be called by any goroutine.
func (k *Keeper) Counters() Counters {
	c := Counters{Put: k.put.Load(), Commits: k.commits.Load(), Written: k.written.Load(), Bytes: k.bytes.Load(), Errors: k.errors.Load(),
		Rows: uint64(len(k.found.Rows)), RowsBad: k.bad.Load(), SetAside: k.aside.Load(), Lost: k.lost.Load()}
	k.mu.Lock()
	if k.log != nil {
		c.Unsaved = k.log.bytes
	}
	k.mu.Unlock()
	return c
}
