package daemon

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openinof/inof/internal/config"
)

// Whatever the clock does between starts, each epoch is greater than those before.
func TestEpochsOnlyGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "epoch")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		last := uint64(0)
		for range rapid.IntRange(1, 8).Draw(t, "starts") {
			now := time.Unix(0, rapid.Int64Range(math.MinInt64, math.MaxInt64/2).Draw(t, "clock"))
			epoch, err := claimEpoch(dir, now)
			if err != nil {
				t.Fatal(err)
			}
			if epoch <= last {
				t.Fatalf("clock %v: epoch %d after %d", now, epoch, last)
			}
			if last != 0 && epoch>>16 == last>>16 {
				t.Fatalf("clock %v: the notices of epoch %d begin with the number of those of %d", now, epoch, last)
			}
			last = epoch
		}
	})
}

func TestNextEpoch(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ns := uint64(at.UnixNano())
	for _, c := range []struct {
		name         string
		now          time.Time
		last         uint64
		random       uint16
		least, most  uint64
		epochOfClock bool
	}{
		{"the first start", at, 0, 0, ns &^ 0xffff, ns | 0xffff, true},
		{"a later start", at, ns - 1e9, 0xffff, ns &^ 0xffff, ns | 0xffff, true},
		{"at once", at, ns&^0xffff | 5, 0, ns&^0xffff | 6, ns + 2*epochStep, false},
		{"the clock was set back an hour", at, ns + 3600e9, 7, ns + 3600e9 + 1, ns + 3600e9 + 2*epochStep, false},
		{"no clock", time.Unix(0, 0), 0, 0, 1, 0xffff, true},
		{"a clock before 1970", time.Unix(-5, 0), 0, 0, 1, 0xffff, true},
		{"the last epoch there is", at, maxEpoch, 0, maxEpoch, maxEpoch, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := nextEpoch(c.now, c.last, c.random)
			if got < c.least || got > c.most || got == 0 {
				t.Errorf("%d, want %d..%d", got, c.least, c.most)
			}
			if c.epochOfClock && uint16(got) != c.random|1 {
				t.Errorf("%#x does not end with the random bits %#x", got, c.random)
			}
		})
	}
}

// A file that is not what was written is told, and replaced; the next start is right again.
func TestEpochFileThatCannotBeUsed(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, content := range map[string]string{
		"empty": "", "no number": "garbage\n", "zero": "0\n", "negative": "-5\n", "too large": "9223372036854775808\n",
		"more than a number": "12 34\n", "binary": "\x00\x01\x02", "endless": strings.Repeat("1", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, epochName), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			first, err := claimEpoch(dir, at)
			if err == nil || !strings.Contains(err.Error(), "is no epoch") || len(err.Error()) > 500 {
				t.Errorf("error %v", err)
			}
			second, err := claimEpoch(dir, at.Add(-time.Hour))
			if err != nil || second <= first {
				t.Errorf("epoch %d after %d, %v", second, first, err)
			}
		})
	}
}

// Where nothing can be written the daemon starts all the same, with an epoch of the
// clock that hardly repeats, and says what that means.
func TestEpochWithoutAPlaceToKeepIt(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// No directory at all, a file in its place, and one where the name is taken by a
	// directory: root may write to a directory of mode 0500.
	taken := t.TempDir()
	if err := os.MkdirAll(filepath.Join(taken, epochName, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"no directory": filepath.Join(t.TempDir(), "x"), "a file": file, "the name is taken": taken} {
		t.Run(name, func(t *testing.T) {
			seen := map[uint64]bool{}
			for range 100 {
				epoch, err := claimEpoch(dir, at)
				if err == nil || !strings.Contains(err.Error(), "cannot be kept") {
					t.Fatalf("error %v", err)
				}
				seen[epoch] = true
			}
			if len(seen) < 90 { // of 32,768 values
				t.Errorf("%d different epochs of 100 at the same time", len(seen))
			}
		})
	}
	if left, _ := filepath.Glob(filepath.Join(taken, epochName+".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestDaemonKeepsItsEpoch starts the whole daemon twice with a clock that goes back.
func TestDaemonKeepsItsEpoch(t *testing.T) {
	dir := t.TempDir()
	start := func(now time.Time) *Daemon {
		cfg, err := config.Parse("x", []byte("device: {id: 10.0.0.1, roles: [reflector]}\nsession: {auth: none}\nstate-directory: "+dir+"\n"), func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		d, err := New(cfg, Env{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		d.lock.release()
		return d
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	first, second := start(at), start(at.Add(-24*time.Hour))
	if second.epoch <= first.epoch {
		t.Errorf("epoch %d, then %d", first.epoch, second.epoch)
	}
	b, err := os.ReadFile(filepath.Join(dir, epochName))
	if err != nil || string(b) != strconv.FormatUint(second.epoch, 10)+"\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	if info, err := os.Stat(filepath.Join(dir, epochName)); err != nil || info.Mode() != fs.FileMode(0o600) {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := readEpoch(filepath.Join(dir, "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
