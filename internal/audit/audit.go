// Package audit keeps what operators did, and what they were refused, in files that show when
// somebody has changed them: a line of JSON for each, with the digest of the line before it. Lines
// are on the disk before the operator has an answer.
package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// FileName is the newest file; older ones have .1, .2 and so on behind it.
const FileName = "audit.jsonl"

// Bounds of what is kept.
const (
	MaxFile  = 8 << 20 // bytes, then a new file begins
	MaxFiles = 5       // with the newest
	MaxLine  = 64 << 10
)

// Record is what somebody did, or wanted to do.
type Record struct {
	Seq    uint64            `json:"seq"` // from 1 on
	Time   time.Time         `json:"time"`
	By     string            `json:"by"`   // user, uid and process, as the kernel says; or what made the change by itself
	From   string            `json:"from"` // the way it came: unix socket, signal
	What   string            `json:"what"` // what was asked for
	Detail map[string]string `json:"detail,omitempty"`
	Result string            `json:"result"`          // done, or the word of the refusal
	Error  string            `json:"error,omitempty"` // its text
	Prev   string            `json:"prev"`            // Hash of the record before; empty: there is none
	// Hash is the SHA-256 of this line without its hash, in hexadecimal.
	Hash string `json:"hash"`
}

// hash gives what Hash must be.
func (r Record) hash() string {
	r.Hash = ""
	b, _ := json.Marshal(r) // nothing in it can fail
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Counters count records.
type Counters struct {
	Records uint64 `json:"records"`
	Errors  uint64 `json:"errors"` // records that could not be written
}

// Log appends records to the files of a directory. Its methods are safe for concurrent use.
type Log struct {
	mu       sync.Mutex
	dir      string
	file     *os.File
	size     int64
	most     int64  // bytes of a file
	last     Record // Seq and Hash count
	counters Counters
}

// Open goes on behind the last record of a directory. Damage is told as an error beside a Log that
// works: it goes on behind the last line that can be read.
func Open(dir string) (*Log, error) {
	l := &Log{dir: dir, most: MaxFile}
	var damage error
	for n := 0; n < MaxFiles && l.last.Hash == ""; n++ {
		last, err := lastOf(path(dir, n))
		if l.last = last; err != nil && !errors.Is(err, fs.ErrNotExist) {
			damage = errors.Join(damage, err)
		}
	}
	return l, damage
}

func path(dir string, n int) string {
	p := filepath.Join(dir, FileName)
	if n > 0 {
		p += fmt.Sprintf(".%d", n)
	}
	return p
}

// lastOf gives the last record of a file.
func lastOf(name string) (last Record, err error) {
	f, err := os.Open(name)
	if err != nil {
		return last, err
	}
	defer f.Close()
	_, err = read(name, f, func(r Record) error { last = r; return nil })
	return last, err
}

// read calls do with each record; a line that is none is an error, after which it goes on.
func read(name string, from io.Reader, do func(Record) error) (n int, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 2*MaxLine)
	for line := 1; lines.Scan(); line++ {
		var r Record
		bad := json.Unmarshal(lines.Bytes(), &r)
		if bad == nil {
			n++
			bad = do(r)
		}
		if bad != nil && err == nil {
			err = fmt.Errorf("%s: line %d: %w", name, line, bad)
		}
	}
	return n, errors.Join(err, lines.Err())
}

// Append writes a record and waits for the disk. Seq, Prev and Hash are set here; what is too long
// is cut.
func (l *Log) Append(r Record) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		if err != nil {
			l.counters.Errors++
			err = fmt.Errorf("audit: %w", err)
		}
	}()
	r.Seq, r.Prev = l.last.Seq+1, l.last.Hash
	line := r.line()
	if len(line) > MaxLine {
		r.Detail = map[string]string{"cut": fmt.Sprintf("%d bytes were too long", len(line))}
		r.What, r.Error = clip(r.What), clip(r.Error)
		line = r.line()
	}
	if err := l.room(int64(len(line))); err != nil {
		return err
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		if n > 0 { // part of a line: what follows begins on a new one
			_, _ = l.file.Write([]byte("\n"))
		}
		return err
	}
	l.last = r
	l.last.Hash = r.hash()
	l.counters.Records++
	return nil
}

func clip(s string) string { return s[:min(len(s), 4096)] }

func (r Record) line() []byte {
	r.Hash = r.hash()
	b, _ := json.Marshal(r)
	return append(b, '\n')
}

// room opens the newest file, and begins another one when it is full.
func (l *Log) room(n int64) error {
	if l.file == nil {
		f, err := os.OpenFile(path(l.dir, 0), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o640)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			f.Close()
			return err
		}
		l.file, l.size = f, info.Size()
		end := make([]byte, 1)
		if l.size > 0 {
			if _, err := f.ReadAt(end, l.size-1); err == nil && !bytes.Equal(end, []byte("\n")) {
				_, _ = f.Write([]byte("\n")) // the last line was cut off by a crash
			}
		}
	}
	if l.size+n <= l.most || l.size == 0 {
		return nil
	}
	if err := l.file.Close(); err != nil {
		return err
	}
	l.file = nil
	for i := MaxFiles - 1; i > 0; i-- {
		if err := os.Rename(path(l.dir, i-1), path(l.dir, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.room(n)
}

// Counters may be called by any goroutine.
func (l *Log) Counters() Counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counters
}

// Newest gives the newest records, oldest first, at most limit, of those on the disk.
func (l *Log) Newest(limit int) ([]Record, error) {
	var out []Record
	_, err := walk(l.dir, func(r Record) error {
		if out = append(out, r); len(out) > 2*limit {
			out = append(out[:0], out[len(out)-limit:]...)
		}
		return nil
	})
	return out[max(0, len(out)-limit):], err
}

// walk reads all files of a directory, oldest first.
func walk(dir string, do func(Record) error) (n int, err error) {
	for i := MaxFiles - 1; i >= 0; i-- {
		f, openErr := os.Open(path(dir, i))
		if errors.Is(openErr, fs.ErrNotExist) {
			continue
		}
		if openErr != nil {
			err = errors.Join(err, openErr)
			continue
		}
		k, readErr := read(path(dir, i), f, do)
		f.Close()
		n += k
		err = errors.Join(err, readErr)
	}
	return n, err
}

// Verify says how many records there are, and the first thing that is wrong with their chain: a
// line that was changed, taken out or put in. Older files that were given up are no error.
func Verify(dir string) (int, error) {
	var last *Record
	return walk(dir, func(r Record) error {
		defer func() { last = &r }()
		switch {
		case r.Hash != r.hash():
			return fmt.Errorf("record %d is not what was written", r.Seq)
		case last != nil && (r.Prev != last.Hash || r.Seq != last.Seq+1):
			return fmt.Errorf("record %d does not follow record %d: something was taken out or put in between", r.Seq, last.Seq)
		case last == nil && r.Seq == 1 && r.Prev != "":
			return errors.New("the first record follows another one")
		}
		return nil
	})
}
