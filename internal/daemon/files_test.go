package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A state directory is new until a daemon has used it, however it ended.
func TestADirectoryIsUnusedOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for _, unused := range []bool{true, false, false} {
			l, err := lockDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			if l.unused != unused {
				t.Errorf("unused is %v, want %v", l.unused, unused)
			}
			if _, err := lockDir(dir); !errors.Is(err, errLocked) {
				t.Errorf("a second daemon gets %v", err)
			}
			l.release()
		}
	})
}

// A daemon that was killed may leave a child that has the lock for a moment longer: the
// next daemon waits for it.
func TestTheLockOfAKilledDaemonIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l, err := lockDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		child, err := syscall.Dup(int(l.f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		l.release()
		go func() {
			time.Sleep(lockPatience / 2)
			syscall.Close(child)
		}()
		next, err := lockDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		next.release()
	})
}

// A directory that was used stays one when there is no room to write who has it.
func TestTheLockIsNeverCut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	if err := os.WriteFile(path, []byte("12345678901234\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.release()
	b, err := os.ReadFile(path)
	if err != nil || len(b) < 15 || strings.TrimSpace(string(b)) != strconv.Itoa(os.Getpid()) {
		t.Errorf("the lock has %q, error %v; want the process number, and no less than was there", b, err)
	}
	if l.unused {
		t.Error("a directory that was used is taken for a new one")
	}
}
