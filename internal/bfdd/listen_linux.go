package bfdd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrTaken says that another process has the socket.
var ErrTaken = errors.New("another BFD process has the socket")

// Listen opens the unix socket at path for its owner alone (mode 0600). A lock beside
// it makes sure that there is one process; where another one has it, it is waited for:
// as long as ctx lasts, which is ErrTaken then. The lock is held until the process ends.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("BFD socket: %w", err)
	}
	for {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			lock.Close()
			return nil, fmt.Errorf("BFD socket %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			lock.Close()
			return nil, fmt.Errorf("%s: %w", path, ErrTaken)
		case <-time.After(20 * time.Millisecond):
		}
	}
	_ = os.Remove(path) // of one that was killed: nobody else has the lock
	old := unix.Umask(0o177)
	l, err := net.Listen("unix", path)
	unix.Umask(old)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("BFD socket: %w", err)
	}
	return &locked{l, lock}, nil
}

// locked is a listener that keeps its lock alive.
type locked struct {
	net.Listener
	lock *os.File // closed by the end of the process
}
