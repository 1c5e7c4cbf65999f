package link

import (
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/openinof/inof/internal/nowait"
)

// Handling a message needs a deep stack, and a stack that has grown stays so for the
// life of its goroutine. Most of the time a session waits for its peer: on a socket of
// a server it does so in a goroutine that has done nothing else yet, whose stack is the
// smallest there is. That goroutine handles what comes, at once, and then leaves the
// waiting to a new one.

// errResting says that a session is to wait for its peer in a new goroutine.
var errResting = errors.New("the session rests")

// resting is how a session waits with a small stack.
type resting struct {
	raw  syscall.RawConn
	try  func(fd uintptr) bool // nil: the session never rests
	came bool                  // the wait is over and its outcome not looked at yet
	got  int                   // bytes that were read, at the beginning of the reader's buffer
	err  error
}

// mayRest makes the reader leave its goroutine when nothing is there.
func (r *msgReader) mayRest() {
	if t, ok := r.c.nc.(*tlsConn); ok {
		if t.raw.sys != nil {
			r.rest.raw, r.rest.try = t.raw.sys, r.look
		}
	} else if r.c.out.raw != nil {
		r.rest.raw, r.rest.try = r.c.out.raw, r.read
	}
}

// read takes what is there; false: nothing.
func (r *msgReader) read(fd uintptr) bool {
	n, err := nowait.Read(fd, r.buf)
	switch {
	case err == nil && n == 0:
		r.rest.err = io.EOF
	case err == nil:
		r.rest.got, r.at = n, time.Now()
	case err == syscall.EAGAIN:
		return false // wait
	default:
		r.rest.err = readError(r.c.nc, err)
	}
	return true
}

// look reports whether something is there, and leaves it for TLS. An error is told only once by
// the socket.
func (r *msgReader) look(fd uintptr) bool {
	var one [1]byte
	_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	for err == syscall.EINTR {
		_, _, err = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	}
	if err == syscall.EAGAIN {
		return false // wait
	}
	if err != nil {
		r.rest.err = readError(r.c.nc, err)
	}
	return true
}

// wait ends as soon as there is something.
func (w *resting) wait() {
	w.got, w.err = 0, nil
	if err := w.raw.Read(w.try); err != nil {
		w.err = err
	}
	w.came = true
}

// settle takes what a rest has brought, or gives errResting when it is time for one.
func (r *msgReader) settle() error {
	if r.rest.came {
		r.rest.came = false
		if r.rest.got > 0 || r.rest.err != nil {
			if err := r.take(r.rest.got, r.rest.err); err != nil {
				return err
			}
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
	t, ok := r.c.nc.(*tlsConn)
	if !ok {
		return errResting
	}
	// What TLS has read may be more than it has given: only it knows.
	got, err := t.readNow(r.buf)
	if err == errNothingYet {
		return errResting
	}
	if got > 0 {
		r.at = time.Now()
	}
	return r.take(got, err)
}
