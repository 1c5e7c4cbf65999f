package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/openinof/inof/fabric"
)

// dirLock keeps a second daemon off a state directory.
type dirLock struct {
	f *os.File
	// unused tells that no daemon has ever used the directory: the lock was not there.
	unused bool
}

// lockState makes the state directory and locks it. A directory that another
// daemon uses is an error; one that cannot be written is a warning, since the
// daemon can work without, but for restarts.
func (d *Daemon) lockState(dir string) (warning, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("state directory: %w: until it can be made a restart may repeat notices", err), nil
	}
	lock, err := lockDir(dir)
	if errors.Is(err, errLocked) {
		return nil, err
	}
	d.lock = lock
	return err, nil
}

var errLocked = errors.New("another inofd is using it; stop that one or configure another state-directory")

// lockPatience is how long a lock that is taken is waited for. A daemon that is killed
// while it starts its BFD process leaves a child that has every open file, the lock too,
// until it has become that process; on a busy machine that takes a while.
const lockPatience = 3 * time.Second

// lockDir locks a state directory. An error that wraps errLocked comes after lockPatience.
func lockDir(dir string) (*dirLock, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory cannot be locked: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for end := time.Now().Add(lockPatience); errors.Is(err, syscall.EWOULDBLOCK) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond) // a lock that is given free tells nobody
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		pid := make([]byte, 16)
		n, _ := f.Read(pid)
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("state directory %s (pid %s): %w", dir, strings.TrimSpace(string(pid[:n])), errLocked)
		}
		return nil, fmt.Errorf("state directory %s cannot be locked: %w", dir, err)
	}
	info, err := f.Stat()
	l := &dirLock{f: f, unused: err == nil && info.Size() == 0}
	// Who holds it is only for people; the lock itself is what counts, and that the file is not
	// empty: it is written over and never cut, which a full disk would not take back.
	_, _ = fmt.Fprintf(io.NewOffsetWriter(f, 0), "%-15d\n", os.Getpid())
	return l, nil
}

// release gives the directory free. A nil lock is none.
func (l *dirLock) release() {
	if l != nil && l.f != nil {
		l.f.Close()
		l.f = nil
	}
}

// noPorts is the dataplane of a device without access ports.
type noPorts struct{ ready chan struct{} }

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (n noPorts) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (n noPorts) Ready() <-chan struct{}        { return n.ready }
func (n noPorts) Events() <-chan fabric.Event   { return nil }
func (n noPorts) Frames() <-chan fabric.Frame   { return nil }
func (n noPorts) Send(port string, _ []byte) error {
	return fmt.Errorf("port %s: %w", port, fabric.ErrNoPort)
}
func (n noPorts) SetAdmin(port string, _ bool) error {
	return fmt.Errorf("port %s: %w", port, fabric.ErrNoPort)
}
func (n noPorts) Counters(port string) (fabric.Counters, error) {
	return fabric.Counters{}, fmt.Errorf("port %s: %w", port, fabric.ErrNoPort)
}
func (n noPorts) String() string { return "no ports" }
