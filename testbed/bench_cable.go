package testbed

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// benchCable pulls a cable in one system call, as Lab.Fault does in several.
type benchCable struct {
	fd int // a socket in the namespace of its far end
	at Endpoint
}

// openCable finds the cable at a port.
func (l *Lab) openCable(node, port string) (*benchCable, error) {
	end, _, err := l.findLink(node, port)
	if err != nil {
		return nil, err
	}
	c := &benchCable{fd: -1, at: end}
	err = l.Do(end.Node, func() (err error) {
		c.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return os.NewSyscallError("socket", err)
	})
	return c, err
}

func (c *benchCable) close() { unix.Close(c.fd) }

// pull takes the carrier of the port; at is right before the system call.
//
// In production a processor notices that in a moment and goes on with other work; here the system
// call that does it keeps its processor for another 0.1 ms, and a kernel without preemption lets
// nobody else in. So with realtime the daemons stand below this thread as long as the call lasts:
// the kernel wakes them on the other processor. Right after it they have both.
func (c *benchCable) pull(above bool) (at time.Time, err error) {
	req, err := unix.NewIfreq(c.at.Port)
	if err != nil {
		return at, err
	}
	if err := unix.IoctlIfreq(c.fd, unix.SIOCGIFFLAGS, req); err != nil {
		return at, fmt.Errorf("flags of %s: %w", c.at, err)
	}
	req.SetUint16(req.Uint16() &^ unix.IFF_UP)
	down := func() error {
		at = time.Now()
		if err := unix.IoctlIfreq(c.fd, unix.SIOCSIFFLAGS, req); err != nil {
			return fmt.Errorf("%s down: %w", c.at, err)
		}
		return nil
	}
	if !above {
		err = down()
		return at, err
	}
	err = onOwnThread(func() error {
		if err := realtime(benchPuller); err != nil {
			return err
		}
		err := down()
		normal := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
		if err := unix.SchedSetAttr(0, &normal, 0); err != nil {
			return os.NewSyscallError("sched_setattr SCHED_NORMAL", err)
		}
		return err
	})
	return at, err
}
