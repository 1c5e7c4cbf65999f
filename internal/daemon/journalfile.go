package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// The journal is a file beside the state file for each state that was handed over for
// writing: journal.N holds the entries since the state with journal N. They are in the
// page cache when a write returns, so a killed process loses at most what waited for
// its writer; nothing is flushed to the disk, and the owner goroutine never waits.

const (
	journalPrefix = "journal."
	// maxJournalFile bounds one file, in bytes: a state is written every second,
	// unless that fails.
	maxJournalFile = 64 << 20
	// maxJournalLine bounds one entry: a neighbour with its LLDPDU.
	maxJournalLine = 1 << 20
	// journalQueue is how many batches may wait for the disk.
	journalQueue = 4096
)

// journalWork is a batch for the file of one number. An empty one begins the file.
type journalWork struct {
	number  uint64
	entries []JournalEntry
}

// journal writes entries behind the owner's back.
type journal struct {
	dir    string
	number uint64 // of the present file; the owner's
	work   chan journalWork
	lost   atomic.Bool // an entry of the present file is missing

	entries atomic.Uint64
	errors  atomic.Uint64
	dropped atomic.Uint64
}

// JournalCounters count the writing of the journal.
type JournalCounters struct {
	Entries uint64 `json:"entries"`
	Errors  uint64 `json:"errors"`
	Dropped uint64 `json:"dropped"` // entries that could not be kept
}

func newJournal(dir string) *journal {
	return &journal{dir: dir, work: make(chan journalWork, journalQueue)}
}

// Counters may be called by any goroutine.
func (j *journal) Counters() JournalCounters {
	return JournalCounters{Entries: j.entries.Load(), Errors: j.errors.Load(), Dropped: j.dropped.Load()}
}

// put hands entries over. It never waits: entries for which there is no room are
// dropped, and the file with them, so that it is not taken for whole.
func (j *journal) put(entries []JournalEntry) {
	if len(entries) == 0 {
		return
	}
	select {
	case j.work <- journalWork{j.number, entries}:
	default:
		j.dropped.Add(uint64(len(entries)))
		j.lost.Store(true)
	}
}

// begin starts the next file, for a state that holds everything up to now, and
// returns its number.
func (j *journal) begin() uint64 {
	j.number++
	j.lost.Store(false)
	select {
	case j.work <- journalWork{number: j.number}:
	default: // a state without its journal is not whole: it says so
	}
	return j.number
}

// open makes the first file of a process at once, so that a directory that cannot be
// written is known at the start.
func (j *journal) open(number uint64) error {
	j.number = number
	f, err := createJournal(j.dir, number)
	if err != nil {
		return err
	}
	return f.Close()
}

func createJournal(dir string, number uint64) (*os.File, error) {
	return os.OpenFile(journalName(dir, number), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

func journalName(dir string, number uint64) string {
	return filepath.Join(dir, journalPrefix+strconv.FormatUint(number, 10))
}

// close ends the writer once all is written.
func (j *journal) close() { close(j.work) }

// Run writes until close was called; it does not end with ctx.
func (j *journal) Run(context.Context) error {
	var f journalFile
	defer f.close()
	for w := range j.work {
		err := f.write(j.dir, w, j.lost.Load())
		if err == nil {
			j.entries.Add(uint64(len(w.entries)))
			continue
		}
		j.dropped.Add(uint64(len(w.entries)))
		if !errors.Is(err, errJournalGone) {
			j.errors.Add(1)
		}
	}
	return nil
}

func (j *journal) String() string { return "journal" }

// journalFile is the file that is being written.
type journalFile struct {
	f      *os.File
	number uint64
	size   int
	gone   bool // it was removed because it could not be whole
	buf    []byte
}

var errJournalGone = errors.New("the journal is not written until the next state")

func (jf *journalFile) write(dir string, w journalWork, lost bool) error {
	if w.number != jf.number || jf.f == nil && !jf.gone {
		if err := jf.begin(dir, w.number); err != nil {
			return err
		}
	}
	if jf.gone {
		return errJournalGone
	}
	jf.buf = jf.buf[:0]
	for i := range w.entries {
		b, err := json.Marshal(&w.entries[i])
		if err != nil {
			return jf.abandon(dir, err)
		}
		jf.buf = append(append(jf.buf, b...), '\n')
	}
	jf.size += len(jf.buf)
	switch {
	case lost:
		return jf.abandon(dir, errors.New("entries were dropped because the disk is too slow"))
	case jf.size > maxJournalFile:
		return jf.abandon(dir, fmt.Errorf("more than %d bytes", maxJournalFile))
	case len(jf.buf) == 0:
		return nil
	}
	if _, err := jf.f.Write(jf.buf); err != nil {
		return jf.abandon(dir, err)
	}
	return nil
}

func (jf *journalFile) begin(dir string, number uint64) error {
	jf.close()
	f, err := createJournal(dir, number)
	jf.f, jf.number, jf.size, jf.gone = f, number, 0, err != nil
	return err
}

// abandon removes the file: a journal that lacks an entry must not be taken for whole.
func (jf *journalFile) abandon(dir string, why error) error {
	jf.close()
	jf.gone = true
	return errors.Join(why, os.Remove(journalName(dir, jf.number)))
}

func (jf *journalFile) close() {
	if jf.f != nil {
		jf.f.Close()
		jf.f = nil
	}
}

// journals lists the numbers of the files in a directory, sorted.
func journals(dir string) []uint64 {
	names, err := filepath.Glob(filepath.Join(dir, journalPrefix+"*"))
	if err != nil {
		return nil
	}
	var out []uint64
	for _, name := range names {
		n, err := strconv.ParseUint(strings.TrimPrefix(filepath.Base(name), journalPrefix), 10, 64)
		if err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// removeJournals removes the files before a number.
func removeJournals(dir string, before uint64) {
	for _, n := range journals(dir) {
		if n < before {
			_ = os.Remove(journalName(dir, n))
		}
	}
}

// replay adds to a state what the journals since it hold, and returns the number that
// comes after them. The error tells what is missing; all before it is taken.
func (st *State) replay(dir string) (next uint64, err error) {
	list := journals(dir)
	next = st.Journal + 1
	if len(list) > 0 {
		next = max(next, list[len(list)-1]+1)
	}
	want := st.Journal
	if want > 0 && !slices.Contains(list, want) {
		return next, fmt.Errorf("%s is missing", journalName(dir, want))
	}
	for _, n := range list {
		if n < want {
			continue // the state holds it
		}
		if n > want && want > 0 {
			return next, fmt.Errorf("%s is missing", journalName(dir, want))
		}
		entries, err := readJournal(journalName(dir, n))
		st.Clean = st.Clean && n == st.Journal // a process that made another one was killed
		st.Replay(entries)
		if err != nil {
			return next, err
		}
		want = n + 1
	}
	return next, nil
}

// readJournal reads one file. A last line that is cut short was being written when the
// process was killed: its entry had not taken effect for anybody who relies on it.
func readJournal(path string) ([]JournalEntry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decodeJournal(path, io.LimitReader(f, maxJournalFile))
}

func decodeJournal(name string, r io.Reader) ([]JournalEntry, error) {
	var out []JournalEntry
	lines := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		var e JournalEntry
		if err := json.Unmarshal(line, &e); err != nil {
			return out, fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		out = append(out, e)
	}
}

// readLine reads a whole line; what is left without an end is io.EOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxJournalLine:
			return nil, fmt.Errorf("longer than %d bytes", maxJournalLine)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
