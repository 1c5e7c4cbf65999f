package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Names of the two files.
const (
	LogName      = "store.log"
	SnapshotName = "store.snapshot"
)

// Found is what the last process kept.
type Found struct {
	Rows     []Row // one a key, sorted
	Problems []Problem
	Damaged  int // rows, or stretches of bytes, that are none

	log   contents
	whole bool // the log may be appended to
}

// maxFile bounds what is read of one file, in bytes: rows of Config.Max, and the log that may
// follow them.
func (c *Config) maxFile() int64 { return 3*c.Max + minLog }

// Look reads what is kept in a directory without changing anything. The error says that it must
// not be written to: it is of a newer version, or cannot be read.
func Look(cfg Config) (Found, error) {
	cfg = cfg.withDefaults()
	var f Found
	rows := map[id][]byte{}
	snapshot, found, err := f.read(&cfg, SnapshotName)
	if err != nil {
		return f, err
	}
	if found && !snapshot.ended && len(snapshot.faults) == 0 {
		f.add(filepath.Join(cfg.Dir, SnapshotName), ErrMissing, "look for a failing disk")
	}
	log, found, err := f.read(&cfg, LogName)
	if err != nil {
		return f, err
	}
	f.log, f.whole = log, found && f.Damaged == 0
	for _, c := range []contents{snapshot, log} {
		apply(rows, c.rows)
	}
	for k, v := range rows {
		f.Rows = append(f.Rows, Row{k.table, []byte(k.key), v})
	}
	slices.SortFunc(f.Rows, Compare)
	return f, nil
}

// apply brings rows into a table of tables.
func apply(to map[id][]byte, rows []Row) (grown int64) {
	for i := range rows {
		r := &rows[i]
		k := r.id()
		if old, had := to[k]; had {
			grown -= (&Row{r.Table, r.Key, old}).size()
		}
		if r.Value == nil {
			delete(to, k)
			continue
		}
		to[k] = r.Value
		grown += r.size()
	}
	return grown
}

// read reads one file. What makes it useless, but harmless to replace, is a Problem.
func (f *Found) read(cfg *Config, name string) (c contents, found bool, err error) {
	path := filepath.Join(cfg.Dir, name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, false, nil
	case err != nil:
		return c, false, err
	case info.Size() > cfg.maxFile():
		f.add(path, fmt.Errorf("%d bytes are above the limit of %d", info.Size(), cfg.maxFile()), "it is replaced")
		return c, false, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return c, false, err
	}
	c, err = parse(b, cfg.Owner)
	switch {
	case errors.Is(err, ErrFormat):
		return c, false, fmt.Errorf("%s: %w; start that version, or remove the file: the device then learns from its reflectors what was in it", path, err)
	case err != nil:
		f.add(path, err, "it is replaced")
		return contents{}, false, nil
	}
	for _, x := range c.faults {
		f.add(fmt.Sprintf("%s: the row at byte %d (table %.32q, key %.40q)", path, x.at, x.row.Table, x.row.Key), x.err, "look for a failing disk")
	}
	return c, true, nil
}

func (f *Found) add(where string, err error, do string) {
	if f.Damaged++; len(f.Problems) < maxProblems {
		f.Problems = append(f.Problems, Problem{Where: where, Err: err, Lost: "what it said is not known until a reflector says it again", Do: do})
	}
}

// maxProblems is how many are named; all are counted.
const maxProblems = 8

// Open reads what was kept and makes ready to keep more. It waits for the disk. After an error
// nothing is written, and what is there stays as it is.
func Open(cfg Config) (*Store, Found, error) {
	cfg = cfg.withDefaults()
	s := &Store{cfg: cfg, rows: map[id][]byte{}, dirty: map[id]struct{}{}, work: make(chan struct{}, 1), end: make(chan struct{}, 1)}
	found, err := Look(cfg)
	if err != nil {
		s.refused = err
		return s, Found{}, err
	}
	s.damaged.Store(uint64(found.Damaged))
	s.read.Store(uint64(len(found.Rows)))
	s.bytes = apply(s.rows, found.Rows)
	if found.whole {
		s.resume(found.log)
	}
	left, _ := filepath.Glob(filepath.Join(cfg.Dir, ".store.*")) // of a process that was killed
	for _, path := range left {
		_ = os.Remove(path)
	}
	return s, found, nil
}

// resume goes on with the log that is there, behind its last sound row.
func (s *Store) resume(c contents) {
	f, err := os.OpenFile(filepath.Join(s.cfg.Dir, LogName), os.O_WRONLY, 0)
	if err != nil {
		return // it is replaced
	}
	if info, err := f.Stat(); err != nil || f.Truncate(int64(c.end)) != nil {
		f.Close()
	} else {
		s.torn.Store(uint64(info.Size() - int64(c.end)))
		s.log, s.info, s.salt, s.at = f, info, c.salt, int64(c.end)
	}
}

// all are the rows that are known, for a snapshot.
func (s *Store) all() []Row {
	rows := make([]Row, 0, len(s.rows))
	for k := range s.rows {
		rows = append(rows, Row{k.table, []byte(k.key), s.rows[k]})
	}
	slices.SortFunc(rows, Compare)
	return rows
}
