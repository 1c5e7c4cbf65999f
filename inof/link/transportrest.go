package link

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Handling a message needs a deep stack, and a stack that has grown stays so for the
// life of its goroutine. Most of the time a session waits for its peer: on a socket of
// a server it does so in a goroutine that has done nothing else yet, whose stack is the
// smallest there is. That goroutine handles what comes, at once, and then leaves the
// waiting to a new one.

// errResting says that a session is to wait for its peer in a new goroutine.
var errResting = errors.New("the session rests")

// attend takes messages until the session rests or ends. It owns c and r.
func (s *Server) attend(c *conn, r *msgReader) {
	err := c.follow(r)
	if err == errResting {
		go s.rest(c, r)
		return
	}
	s.ended(c, c.end(err))
	s.wg.Done()
}

// rest waits until something comes, and attends to it. It owns c and r.
func (s *Server) rest(c *conn, r *msgReader) {
	r.rest.wait(c)
	s.attend(c, r)
}

// resting is a read that waits with a small stack.
type resting struct {
	try  func(fd uintptr) bool // nil: the session never rests
	came bool                  // the read is done and not looked at yet
	got  int                   // bytes, at the beginning of the reader's buffer
	err  error
}

// mayRest makes the reader leave its goroutine when nothing is there.
func (r *msgReader) mayRest() {
	if r.c.out.raw == nil {
		return
	}
	r.rest.try = func(fd uintptr) bool {
		n, err := syscall.Read(int(fd), r.buf)
		for err == syscall.EINTR {
			n, err = syscall.Read(int(fd), r.buf)
		}
		switch {
		case err == nil && n == 0:
			r.rest.err = io.EOF
		case err == nil:
			r.rest.got, r.at = n, time.Now()
		case err == syscall.EAGAIN:
			return false // wait
		default:
			r.rest.err = &net.OpError{Op: "read", Net: "tcp", Source: r.c.nc.LocalAddr(), Addr: r.c.nc.RemoteAddr(), Err: os.NewSyscallError("read", err)}
		}
		return true
	}
}

// wait reads once, as soon as there is something.
func (w *resting) wait(c *conn) {
	w.got, w.err = 0, nil
	if err := c.out.raw.Read(w.try); err != nil {
		w.err = err
	}
	w.came = true
}

// settle takes what a rest has brought, or gives errResting when it is time for one.
func (r *msgReader) settle() error {
	if r.rest.came {
		r.rest.came = false
		if err := r.take(r.rest.got, r.rest.err); err != nil {
			return err
		}
	}
	if r.rest.try == nil || r.from < r.to || r.filled {
		return nil
	}
	r.from, r.to = 0, 0
	r.fit(1)
	if err := r.arm(); err != nil {
		return r.c.expired(err)
	}
	return errResting
}
