package bfdd

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/openinof/inof/bfd"
)

// link is a Client's connection: its reader takes reports and answers, its writer
// tells what is wanted when that has changed, and asks.
type link struct {
	c    *Client
	conn net.Conn
	todo chan struct{}
	done chan struct{}
	once sync.Once

	mu      sync.Mutex
	asks    []uint64
	waiting map[uint64]*answer
}

// answer collects the parts of a status.
type answer struct {
	sessions []bfd.Status
	process  Process
	ready    chan struct{}
}

func newLink(c *Client, conn net.Conn) *link {
	return &link{c: c, conn: conn, todo: make(chan struct{}, 1), done: make(chan struct{}), waiting: make(map[uint64]*answer)}
}

// signal has the writer look what there is to be told.
func (l *link) signal() {
	select {
	case l.todo <- struct{}{}:
	default:
	}
}

func (l *link) close() {
	l.once.Do(func() { close(l.done); l.conn.Close() })
}

// write tells until the connection ends.
func (l *link) write() {
	told := uint64(0)
	for {
		select {
		case <-l.done:
			return
		case <-l.todo:
		}
		l.mu.Lock()
		asks := l.asks
		l.asks = nil
		l.mu.Unlock()
		err := l.want(&told)
		for _, id := range asks {
			if err == nil {
				err = send(l.conn, message{Ask: &ask{ID: id}})
			}
		}
		if err != nil {
			l.conn.Close() // the reader says so
			return
		}
	}
}

// want tells the present set of sessions if the process does not know it.
func (l *link) want(told *uint64) error {
	c := l.c
	c.mu.Lock()
	seq := c.seq
	list := make([]bfd.Peer, len(c.wanted))
	copy(list, c.wanted)
	ignore := c.ignore
	for i := range list {
		if last, known := c.last[list[i].Key]; known {
			list[i].Last = last
		}
	}
	c.mu.Unlock()
	if seq == *told { // zero before anything is wanted: then the process goes on as it is
		return nil
	}
	*told = seq
	for len(list) > maxBatch {
		if err := send(l.conn, message{Want: &want{Seq: seq, Peers: list[:maxBatch], More: true}}); err != nil {
			return err
		}
		list = list[maxBatch:]
	}
	return send(l.conn, message{Want: &want{Seq: seq, Peers: list, Ignore: ignore}})
}

// read takes what comes until the connection ends.
func (l *link) read(in *lines) error {
	for {
		m, err := in.next()
		if err != nil {
			return err
		}
		switch {
		case m.Paths != nil:
			err = l.reports(m.Paths.Events)
		case m.Done != nil:
			l.refused(m.Done)
		case m.Status != nil:
			err = l.status(m.Status)
		case m.Bye != nil:
			return fmt.Errorf("%w: %s", errDisplaced, m.Bye.Why)
		default:
			err = fmt.Errorf("%w: not for an owner", ErrMessage)
		}
		if err != nil {
			return err
		}
	}
}

// reports hands reports on, and remembers them for the next process.
func (l *link) reports(events []event) error {
	c := l.c
	now, mono := time.Now(), c.cfg.monotonic()
	c.mu.Lock()
	for _, e := range events {
		if err := e.check(); err != nil {
			c.mu.Unlock()
			return err
		}
		if e.Report != bfd.ReportUnknown && len(c.last) < maxPeers {
			c.last[e.Key] = e.Report
		}
		c.counters.Reports++
	}
	c.mu.Unlock()
	for _, e := range events {
		c.cfg.Sink(e.fromWire(now, mono))
	}
	return nil
}

func (l *link) refused(d *done) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.c.info.Refused = d.Error
	if d.Error != "" {
		l.c.counters.Refused++
	}
}

// status collects an answer. One that nobody waits for any more is passed over.
func (l *link) status(s *status) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.waiting[s.ID]
	if a == nil {
		return nil
	}
	if a.sessions = append(a.sessions, s.Sessions...); len(a.sessions) > 2*maxPeers {
		return fmt.Errorf("%w: more than %d sessions", ErrMessage, 2*maxPeers)
	}
	if s.More {
		return nil
	}
	if s.Process != nil {
		a.process = *s.Process
	}
	delete(l.waiting, s.ID)
	close(a.ready)
	return nil
}

// Status asks the process for all sessions and its counters.
func (c *Client) Status(ctx context.Context) ([]bfd.Status, Process, error) {
	c.mu.Lock()
	l := c.conn
	c.asked++
	id := c.asked
	c.mu.Unlock()
	if l == nil {
		return nil, Process{}, ErrNoProcess
	}
	a := &answer{ready: make(chan struct{})}
	l.mu.Lock()
	l.waiting[id] = a
	l.asks = append(l.asks, id)
	l.mu.Unlock()
	l.signal()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, id)
		l.mu.Unlock()
	}()
	select {
	case <-a.ready:
		return a.sessions, a.process, nil
	case <-l.done:
		return nil, Process{}, ErrNoProcess
	case <-ctx.Done():
		return nil, Process{}, fmt.Errorf("the BFD process does not answer: %w", ctx.Err())
	}
}
