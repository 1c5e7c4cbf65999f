package bfdd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/openinof/inof/bfd"
)

// owner is one connection to a Server. Its reader obeys, its writer tells; what is to
// be told waits in pending, the latest state of each path, so that a slow owner holds
// up nobody and costs no more than there are paths.
type owner struct {
	s    *Server
	conn net.Conn
	pid  int

	mu      sync.Mutex
	ready   sync.Cond
	pending []bfd.Event
	at      map[bfd.Key]int // of pending
	answers []message       // go first
	closing bool
}

// maxAnswers bounds what an owner may have asked without reading the answers.
const maxAnswers = 1024

func newOwner(s *Server, conn net.Conn, pid int) *owner {
	o := &owner{s: s, conn: conn, pid: pid, at: make(map[bfd.Key]int)}
	o.ready.L = &o.mu
	return o
}

// serve talks to one that has connected.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	in := newLines(conn)
	m, err := in.next()
	if err == nil {
		err = send(conn, message{Hello: &hello{Protocol: Protocol, Build: s.cfg.Build, PID: os.Getpid(), Started: s.since, Device: s.cfg.Device}})
	}
	if err != nil {
		s.broken(err)
		return
	}
	h := m.Hello
	if h.Protocol != Protocol || h.Device != s.cfg.Device {
		s.successor(in, h)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	o := newOwner(s, conn, h.PID)
	s.take(o)
	var writer sync.WaitGroup
	writer.Go(o.write)
	err = o.read(in)
	s.release(o)
	o.leave("")
	writer.Wait()
	s.broken(err)
}

// successor waits for the word of one with another protocol or device to make room.
func (s *Server) successor(in *lines, h *hello) {
	m, err := in.next()
	switch {
	case err != nil:
		s.broken(err)
	case m.Stop == nil:
		s.broken(fmt.Errorf("%w: protocol %d, build %q, device %s: want stop", ErrMessage, h.Protocol, h.Build, h.Device))
	default:
		s.stop(fmt.Errorf("%w: build %q takes the place of %q: %s", errStop, h.Build, s.cfg.Build, m.Stop.Why))
	}
}

// broken counts a connection that ended because of what came.
func (s *Server) broken(err error) {
	if errors.Is(err, ErrLine) || errors.Is(err, ErrMessage) {
		s.mu.Lock()
		s.errs++
		s.mu.Unlock()
		s.cfg.Log.Warn("BFD owner", "error", err)
	}
}

// read obeys until the connection ends.
func (o *owner) read(in *lines) error {
	var set []bfd.Peer
	for {
		m, err := in.next()
		if err != nil {
			return err
		}
		switch {
		case m.Want != nil:
			if set = append(set, m.Want.Peers...); len(set) > maxPeers {
				return fmt.Errorf("%w: more than %d sessions", ErrMessage, maxPeers)
			}
			if len(m.Want.Ignore) > maxIgnored {
				return fmt.Errorf("%w: more than %d interfaces", ErrMessage, maxIgnored)
			}
			if m.Want.More {
				continue
			}
			d := done{Seq: m.Want.Seq}
			if err := o.s.want(set, m.Want.Ignore); err != nil {
				d.Error = short(err)
			}
			set = nil
			err = o.answer(message{Done: &d})
		case m.Ask != nil:
			err = o.report(m.Ask.ID)
		case m.Stop != nil:
			o.s.stop(fmt.Errorf("%w: %s", errStop, m.Stop.Why))
			return nil
		default:
			err = fmt.Errorf("%w: not for a process", ErrMessage)
		}
		if err != nil {
			return err
		}
	}
}

// short bounds an error text: each wrong session has a line of it.
func short(err error) string {
	s := err.Error()
	if len(s) > 4096 {
		s = s[:4096] + " ..."
	}
	return s
}

// report answers an ask.
func (o *owner) report(id uint64) error {
	sessions, p := o.s.status()
	for len(sessions) > maxBatch {
		if err := o.answer(message{Status: &status{ID: id, Sessions: sessions[:maxBatch], More: true}}); err != nil {
			return err
		}
		sessions = sessions[maxBatch:]
	}
	return o.answer(message{Status: &status{ID: id, Sessions: sessions, Process: &p}})
}

// answer has a message written before any report.
func (o *owner) answer(m message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.answers) >= maxAnswers {
		return fmt.Errorf("%w: %d answers were not read", ErrMessage, maxAnswers)
	}
	o.answers = append(o.answers, m)
	o.ready.Signal()
	return nil
}

// changed has a report written; it takes the place of one of the same path that was
// not written yet, which is counted. It never waits.
func (o *owner) changed(e bfd.Event) (lost uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i, waits := o.at[e.Key]; waits {
		o.pending[i] = e
		return 1
	}
	o.at[e.Key] = len(o.pending)
	o.pending = append(o.pending, e)
	o.ready.Signal()
	return 0
}

// leave ends the connection, with a last word if there is a reason to give.
func (o *owner) leave(why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return
	}
	o.closing = true
	if why != "" {
		o.answers = append(o.answers, message{Bye: &bye{Why: why}})
		_ = o.conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	} else {
		o.conn.Close()
	}
	o.ready.Signal()
}

// write tells until the connection ends.
func (o *owner) write() {
	defer o.conn.Close()
	for {
		m, last := o.next()
		for _, one := range m {
			if err := send(o.conn, one); err != nil {
				if !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, net.ErrClosed) {
					o.s.broken(err)
				}
				return
			}
		}
		if last {
			return
		}
	}
}

// next waits for something to tell and takes it.
func (o *owner) next() (out []message, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.answers) == 0 && len(o.pending) == 0 && !o.closing {
		o.ready.Wait()
	}
	out = append(out, o.answers...)
	o.answers = o.answers[:0]
	if n := min(len(o.pending), maxBatch); n > 0 {
		now, mono := time.Now(), o.s.cfg.monotonic()
		p := &paths{Events: make([]event, n)}
		for i, e := range o.pending[:n] {
			p.Events[i] = toWire(e, now, mono)
			delete(o.at, e.Key)
		}
		o.pending = append(o.pending[:0], o.pending[n:]...)
		for i := range o.pending {
			o.at[o.pending[i].Key] = i
		}
		out = append(out, message{Paths: p})
	}
	return out, o.closing
}
