package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func openIn(t testing.TB, dir string) (*Store, Found) {
	t.Helper()
	s, found, err := Open(Config{Dir: dir, Owner: "192.0.2.11"})
	if err != nil {
		t.Fatal(err)
	}
	return s, found
}

// kill ends a process: nothing is written that was not before.
func kill(s *Store) { s.closeLog() }

func text(rows []Row) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s/%s=%s ", r.Table, r.Key, r.Value)
	}
	return strings.TrimSpace(b.String())
}

func want(t *testing.T, f Found, is string) {
	t.Helper()
	if got := text(f.Rows); got != is {
		t.Errorf("rows %q, want %q", got, is)
	}
}

// What was written outlives the process, in whatever way it ends, and is readable by its owner only.
func TestRowsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	s, found := openIn(t, dir)
	want(t, found, "")
	s.Put("zone", []byte("a"), []byte("1"))
	s.Put("zone", []byte("b"), nil)
	s.Put("host", []byte("c"), []byte("3"))
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	s.Put("zone", []byte("a"), []byte("2"))
	s.Delete("host", []byte("c"))
	s.Delete("host", []byte("never there"))
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	s.Put("zone", []byte("lost"), []byte("with the process"))
	kill(s)
	_, found = openIn(t, dir)
	want(t, found, "zone/a=2 zone/b=")
	for _, name := range []string{LogName, SnapshotName} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
}

// A writer that is ended writes what is pending first.
func TestRunWritesWhatIsPending(t *testing.T) {
	dir := t.TempDir()
	s, _ := openIn(t, dir)
	done := make(chan error)
	go func() { done <- s.Run(context.Background()) }()
	s.Put("zone", []byte("a"), []byte("1"))
	s.Flush()
	for end := time.Now().Add(10 * time.Second); s.Counters().Snapshots == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was written")
		}
	}
	s.Put("zone", []byte("b"), []byte("2"))
	s.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	_, found := openIn(t, dir)
	want(t, found, "zone/a=1 zone/b=2")
}

// A log that has grown is replaced by a snapshot, and a crash at any moment of that loses nothing.
func TestALogThatHasGrownIsReplaced(t *testing.T) {
	dir := t.TempDir()
	s, _ := openIn(t, dir)
	value := bytes.Repeat([]byte("x"), 300_000)
	for i := range 12 {
		s.Put("zone", []byte("a"), append(value, byte(i)))
		if err := s.save(); err != nil {
			t.Fatal(err)
		}
	}
	c := s.Counters()
	if c.Snapshots < 2 || c.Batches < 6 {
		t.Errorf("%d snapshots, %d batches", c.Snapshots, c.Batches)
	}
	old, err := os.ReadFile(filepath.Join(dir, LogName))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.compact(); err != nil {
		t.Fatal(err)
	}
	kill(s)
	if err := os.WriteFile(filepath.Join(dir, LogName), old, 0o600); err != nil { // the crash came before the new log
		t.Fatal(err)
	}
	s, found := openIn(t, dir)
	if len(found.Rows) != 1 || found.Rows[0].Value[len(value)] != 11 || found.Damaged != 0 {
		t.Errorf("%d rows, %v", len(found.Rows), found.Problems)
	}
	kill(s)
}

// filled makes a log of three rows behind an empty snapshot.
func filled(t testing.TB) (dir string, log []byte) {
	dir = t.TempDir()
	s, _ := openIn(t, dir)
	if err := s.compact(); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"a", "b", "c"} {
		s.Put("zone", []byte(k), []byte("value of "+k))
		if err := s.save(); err != nil {
			t.Fatal(err)
		}
	}
	kill(s)
	log, err := os.ReadFile(filepath.Join(dir, LogName))
	if err != nil {
		t.Fatal(err)
	}
	return dir, log
}

// Wherever the log was cut, the rows before stand, nothing is reported, and what is written next
// is read again.
func TestATornEndIsCut(t *testing.T) {
	dir, log := filled(t)
	row := len(appendRow(nil, &Row{"zone", []byte("a"), []byte("value of a")}, 0))
	head := len(log) - 3*row
	snapshot, err := os.ReadFile(filepath.Join(dir, SnapshotName))
	if err != nil {
		t.Fatal(err)
	}
	for n := head; n <= len(log); n++ {
		if err := os.WriteFile(filepath.Join(dir, SnapshotName), snapshot, 0o600); err != nil {
			t.Fatal(err)
		}
		torn := append(bytes.Clone(log[:n]), make([]byte, n%5)...) // a file system may leave zeros
		if err := os.WriteFile(filepath.Join(dir, LogName), torn, 0o600); err != nil {
			t.Fatal(err)
		}
		s, found := openIn(t, dir)
		filled := 0 // zeros in place of the end of a row: that one is named
		if in := (n - head) % row; in > 0 && in+n%5 == row {
			filled = 1
		}
		if whole := (n - head) / row; len(found.Rows) != whole || found.Damaged != filled {
			t.Fatalf("cut at %d: %q, %v", n, text(found.Rows), found.Problems)
		}
		s.Put("zone", []byte("new"), []byte("1"))
		if err := s.save(); err != nil {
			t.Fatal(err)
		}
		kill(s)
		if after, err := Look(s.cfg); err != nil || !strings.Contains(text(after.Rows), "zone/new=") || len(after.Rows) != len(found.Rows)+1 || after.Damaged != 0 {
			t.Fatalf("cut at %d, then written to: %q, %v, %v", n, text(after.Rows), after.Problems, err)
		}
	}
}

// Each bit that changes costs the one row in which it lies, which is counted and named.
func TestAFlippedBitCostsItsRow(t *testing.T) {
	dir, log := filled(t)
	row := len(appendRow(nil, &Row{"zone", []byte("a"), []byte("value of a")}, 0))
	head := len(log) - 3*row
	for at := head; at < len(log)-row; at++ { // the last row may be one that was being written
		bad := bytes.Clone(log)
		bad[at] ^= 1 << (at % 8)
		if err := os.WriteFile(filepath.Join(dir, LogName), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := Look(Config{Dir: dir, Owner: "192.0.2.11"})
		if err != nil || len(found.Rows) != 2 || found.Damaged != 1 || len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Error(), fmt.Sprintf("at byte %d", head+(at-head)/row*row)) {
			t.Fatalf("byte %d: %q, %v, %v", at, text(found.Rows), found.Problems, err)
		}
	}
	s, found := openIn(t, dir)
	s.Put("zone", []byte("new"), []byte("1"))
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	kill(s)
	if after, err := Look(s.cfg); err != nil || len(after.Rows) != len(found.Rows)+1 || after.Damaged != 0 || s.Counters().Damaged != 1 {
		t.Errorf("written anew: %q, %v, %v", text(after.Rows), after.Problems, err)
	}
}

// A snapshot that was cut short says so.
func TestASnapshotThatWasCutShort(t *testing.T) {
	dir, _ := filled(t)
	s, _ := openIn(t, dir)
	if err := s.compact(); err != nil {
		t.Fatal(err)
	}
	kill(s)
	path := filepath.Join(dir, SnapshotName)
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if found, err := Look(s.cfg); err != nil || found.Damaged == 0 || len(found.Rows) == 3 {
		t.Errorf("%q, %v, %v", text(found.Rows), found.Problems, err)
	}
}

// What a row says cannot pass for another row, though the row around it is damaged.
func TestAValueIsNoRow(t *testing.T) {
	dir := t.TempDir()
	s, _ := openIn(t, dir)
	s.Put("zone", []byte("a"), appendRow(nil, &Row{"zone", []byte("b"), []byte("forged")}, 0))
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	kill(s)
	path := filepath.Join(dir, SnapshotName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, mark)+8] ^= 0x80 // the length
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := Look(s.cfg); err != nil || found.Damaged == 0 || len(found.Rows) != 0 {
		t.Errorf("%q, %v, %v", text(found.Rows), found.Problems, err)
	}
}

// Files of a newer version are refused and stay as they are; those of another device are replaced.
func TestFilesOfOthers(t *testing.T) {
	dir, log := filled(t)
	newer := bytes.Clone(log)
	newer[9] = Format + 1
	path := filepath.Join(dir, LogName)
	if err := os.WriteFile(path, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	s, found, err := Open(Config{Dir: dir, Owner: "192.0.2.11"})
	if !errors.Is(err, ErrFormat) || len(found.Rows) != 0 || !strings.Contains(err.Error(), "format is 2") || s.Warning() == "" {
		t.Fatalf("%v, %q", err, text(found.Rows))
	}
	s.Put("zone", []byte("new"), []byte("1"))
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, newer) {
		t.Errorf("it was written to: %v", err)
	}
	if err := os.WriteFile(path, log, 0o600); err != nil {
		t.Fatal(err)
	}
	s, found, err = Open(Config{Dir: dir, Owner: "192.0.2.12"})
	if err != nil || len(found.Rows) != 0 || found.Damaged != 2 || !strings.Contains(found.Problems[0].Error(), "belongs to another device: 192.0.2.11") {
		t.Fatalf("%v, %v", err, found.Problems)
	}
	s.Put("zone", []byte("new"), []byte("1"))
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	if found, err := Look(s.cfg); err != nil || text(found.Rows) != "zone/new=1" || found.Damaged != 0 {
		t.Errorf("%q, %v, %v", text(found.Rows), found.Problems, err)
	}
}

// While a disk is full nothing that is known is lost, and operators know; then all is written.
func TestAFullDisk(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var told []error
	s, _, err := Open(Config{Dir: dir, Owner: "192.0.2.11", Tell: func(err error) { told = append(told, err) }})
	if err != nil {
		t.Fatal(err)
	}
	s.Put("zone", []byte("a"), []byte("1"))
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	full := limit
	full.Cur = uint64(s.at) + 20 // a part of the next row fits
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	s.Put("zone", []byte("b"), []byte("2"))
	err1 := s.save()
	s.Put("zone", []byte("b"), []byte("3"))
	s.Put("zone", []byte("c"), []byte("4"))
	err2 := s.save()
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err1 == nil || err2 == nil || len(told) != 1 || s.Warning() == "" || s.Counters().Errors != 2 {
		t.Fatalf("%v, %v, told %v, warning %q", err1, err2, told, s.Warning())
	}
	if found, err := Look(s.cfg); err != nil || text(found.Rows) != "zone/a=1" || found.Damaged != 0 {
		t.Errorf("meanwhile: %q, %v, %v", text(found.Rows), found.Problems, err)
	}
	if err := s.save(); err != nil || len(told) != 2 || told[1] != nil || s.Warning() != "" {
		t.Errorf("%v, told %v, warning %q", err, told, s.Warning())
	}
	kill(s)
	_, found := openIn(t, dir)
	want(t, found, "zone/a=1 zone/b=3 zone/c=4")
}

// A directory that was taken away and made anew holds all rows again with the next batch.
func TestFilesThatWereTakenAway(t *testing.T) {
	dir := t.TempDir()
	s, _ := openIn(t, dir)
	s.Put("zone", []byte("a"), []byte("1"))
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{LogName, SnapshotName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.Put("zone", []byte("b"), []byte("2"))
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	kill(s)
	_, found := openIn(t, dir)
	want(t, found, "zone/a=1 zone/b=2")
}

// What is kept is bounded: rows beyond are refused and counted, those that are known change.
func TestWhatIsKeptIsBounded(t *testing.T) {
	s, _, err := Open(Config{Dir: t.TempDir(), Max: 100})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		s.Put("zone", []byte{byte(i)}, []byte("0123456789"))
	}
	s.Put("zone", []byte{0}, []byte("changed"))
	s.Put("zone", bytes.Repeat([]byte("k"), MaxKey+1), nil)
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	if found, err := Look(s.cfg); err != nil || len(found.Rows) != 3 || s.Counters().Refused != 8 || string(found.Rows[0].Value) != "changed" || s.Warning() == "" {
		t.Errorf("%d rows, %+v, %v", len(found.Rows), s.Counters(), err)
	}
}

// Whatever is put, deleted, written and killed, what is read is what was true at some batch: the
// last one that was written.
func TestWhatIsReadIsTheLastBatch(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		for _, name := range []string{LogName, SnapshotName} {
			_ = os.Remove(filepath.Join(dir, name))
		}
		cfg := Config{Dir: dir, Max: 1 << 20}
		s, _, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		is, written := map[string]string{}, map[string]string{}
		key := rapid.SampledFrom([]string{"", "a", "b", "c", "d"})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.StringN(0, 30, -1).Draw(t, "value")
				s.Put("t", []byte(k), []byte(v))
				is[k] = v
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				s.Delete("t", []byte(k))
				delete(is, k)
			},
			"save": func(t *rapid.T) {
				if err := s.save(); err != nil {
					t.Fatal(err)
				}
				written = clone(is)
			},
			"compact": func(t *rapid.T) {
				if err := errors.Join(s.save(), s.compact()); err != nil {
					t.Fatal(err)
				}
				written = clone(is)
			},
			"kill": func(t *rapid.T) {
				kill(s)
				if s, _, err = Open(cfg); err != nil {
					t.Fatal(err)
				}
				is = clone(written)
			},
			"": func(t *rapid.T) {
				f, err := Look(cfg)
				if err != nil || len(f.Rows) != len(written) || f.Damaged != 0 {
					t.Fatalf("%d rows, want %d, %v, %v", len(f.Rows), len(written), f.Problems, err)
				}
				for _, r := range f.Rows {
					if v, ok := written[string(r.Key)]; !ok || v != string(r.Value) {
						t.Fatalf("%q is %q, want %q", r.Key, r.Value, v)
					}
				}
			},
		})
		kill(s)
	})
}

func clone(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func FuzzParse(f *testing.F) {
	_, log := filled(f)
	f.Add(log)
	f.Add(log[:30])
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parse(b, "192.0.2.11")
		if err == nil && (c.end > len(b) || len(c.rows)*rowHead > len(b)) {
			t.Errorf("%d rows up to byte %d of %d", len(c.rows), c.end, len(b))
		}
	})
}
