package daemon

import (
	"errors"
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
