package link

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/openinof/inof/inof/wire"
)

const (
	openReadBuffer  = 2 << 10  // before Established: what speakers of another protocol begin with fits
	firstReadBuffer = 256      // grows to the largest message on its way, and back
	quickReadBuffer = 16 << 10 // grows to this where reads fill it
	smallReads      = 3        // after so many in a row it is small again
)

// msgReader takes whole messages from a connection. A length is checked before
// anything is allocated for it.
type msgReader struct {
	c        *conn
	buf      []byte
	from, to int       // unread bytes of buf
	deadline time.Time // set on the connection
	at       time.Time // when the newest bytes were read
	small    int       // reads in a row that brought little
	filled   bool      // the last read filled buf: there may be more
	rest     resting
}

func newMsgReader(c *conn) *msgReader {
	return &msgReader{c: c, buf: make([]byte, openReadBuffer)}
}

// message is next, counted.
func (r *msgReader) message() ([]byte, error) {
	frame, err := r.next()
	if err == nil {
		r.c.host.tally.msgIn.Add(1)
		r.c.out.msgIn.Add(1)
	}
	return frame, err
}

// next gives a message that is valid until the next call.
func (r *msgReader) next() ([]byte, error) {
	// The first byte of the length is zero: anything else is another protocol and
	// may never send as much as a header.
	if err := r.fill(1); err != nil {
		return nil, err
	}
	want := wire.HeaderLen
	if r.buf[r.from] != 0 {
		want = min(wire.HeaderLen, max(8, r.to-r.from))
	}
	if err := r.fill(want); err != nil {
		return nil, err
	}
	if r.buf[r.from] != 0 {
		var b [wire.HeaderLen]byte
		copy(b[:], r.buf[r.from:r.to])
		_, err := wire.ParseHeader(b[:], r.c.limit)
		return nil, err
	}
	h, err := wire.ParseHeader(r.buf[r.from:r.to], r.c.limit)
	if err != nil {
		return nil, err
	}
	if err := r.fill(h.Length); err != nil {
		return nil, err
	}
	frame := r.buf[r.from : r.from+h.Length]
	r.from += h.Length
	return frame, nil
}

// fill reads until n unread bytes are there.
func (r *msgReader) fill(n int) error {
	for r.to-r.from < n {
		switch {
		case r.from == r.to:
			r.from, r.to = 0, 0
			r.fit(n)
		case r.from > 0 && len(r.buf)-r.from < n:
			r.to = copy(r.buf, r.buf[r.from:r.to])
			r.from = 0
		}
		if len(r.buf)-r.from < n {
			// Doubling keeps a peer that only announces a long message from
			// occupying memory for it.
			b := make([]byte, min(max(2*len(r.buf), wire.HeaderLen), max(n, firstReadBuffer)))
			r.to = copy(b, r.buf[r.from:r.to])
			r.buf, r.from = b, 0
		}
		if err := r.arm(); err != nil {
			return r.c.expired(err)
		}
		got, err := r.c.nc.Read(r.buf[r.to:])
		if got > 0 {
			r.at = time.Now()
		}
		if err := r.take(got, err); err != nil {
			return err
		}
	}
	return nil
}

// take notes what a read has brought to the end of buf.
func (r *msgReader) take(got int, err error) error {
	r.to += got
	r.filled = r.to == len(r.buf)
	if r.to > firstReadBuffer {
		r.small = 0
	} else if r.small < smallReads {
		r.small++
	}
	r.c.host.tally.bytesIn.Add(uint64(got))
	r.c.out.bytesIn.Add(uint64(got))
	if got > 0 || err == nil || r.early(err) {
		return nil
	}
	return r.c.expired(err)
}

// fit makes the empty buffer larger where that saves reads, and small again when
// little comes: most of the time a session is silent.
func (r *msgReader) fit(n int) {
	switch {
	case n > firstReadBuffer:
	case len(r.buf) > quickReadBuffer, len(r.buf) > firstReadBuffer && r.small >= smallReads:
		r.buf = make([]byte, firstReadBuffer)
	case r.filled && len(r.buf) < quickReadBuffer:
		r.buf = make([]byte, 2*len(r.buf))
	}
}

// arm sets the read deadline where it has moved by enough to matter.
func (r *msgReader) arm() error {
	want := r.c.sess.Deadline()
	if d := want.Sub(r.deadline); d >= 0 && d < wire.MinKeepalive/4 {
		return nil
	}
	r.deadline = want
	if err := r.c.nc.SetReadDeadline(want); err != nil {
		return err
	}
	// shut sets stopping first and then a deadline in the past: either it is seen
	// here, or that deadline replaces the one just set.
	if r.c.out.stopping.Load() {
		return ErrClosed
	}
	return nil
}

// early reports whether the deadline fired before the session's own: arm passes over
// small moves.
func (r *msgReader) early(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	if !ok || !ne.Timeout() || r.c.out.stopping.Load() || r.c.sess.Expired(time.Now()) != nil {
		return false
	}
	r.deadline = time.Time{}
	return true
}

// expired maps the reader's deadline to the session's word for it.
func (c *conn) expired(err error) error {
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		if e := c.sess.Expired(time.Now()); e != nil {
			return e
		}
	}
	if closed(err) {
		return fmt.Errorf("connection to %s was closed: %w", c.view.Address, err)
	}
	return err
}

// closed tells an end without a reason from others.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed)
}

// readError is the error of a read system call as package net gives it.
func readError(nc net.Conn, err error) error {
	return &net.OpError{Op: "read", Net: "tcp", Source: nc.LocalAddr(), Addr: nc.RemoteAddr(), Err: os.NewSyscallError("read", err)}
}
