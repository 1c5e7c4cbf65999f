package syslog

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// Times of a connection.
const (
	connectWithin = 5 * time.Second
	writeWithin   = 5 * time.Second  // a server that takes nothing for so long is left
	firstPause    = time.Second      // before the next attempt; doubled up to lastPause
	lastPause     = 30 * time.Second //
	goodbyeWithin = time.Second      // for what is left when the daemon stops
)

// Batch is a run of messages of a log.
type Batch struct {
	Messages []Message
	Missed   uint64 // messages before these that the log does not have any more
	Last     uint64 // the number of the newest message of the log
}

// Log is what is sent: numbered messages, of which it keeps the newest.
type Log interface {
	// After gives what there is behind a number.
	After(number uint64) Batch
	// Wait is After that waits until there is something, or ctx ends.
	Wait(ctx context.Context, number uint64) (Batch, error)
}

// Config sets a Sender.
type Config struct {
	Server Server
	From   Log
	Sent   uint64 // the number of the last message that is not to be sent
	// Lost is the message that says how many were not sent.
	Lost func(n uint64) Message
	// TLS gives what a connection of tls takes; asked before each, so that renewed files count.
	TLS func() (*tls.Config, error)
	// Dial is nil for the real network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Counters are totals since the start.
type Counters struct {
	Sent      uint64 `json:"sent"`      // messages that were written to the server
	Lost      uint64 `json:"lost"`      // messages that went out of the log before they could be
	Connected uint64 `json:"connected"` // connections that stood
	Failed    uint64 `json:"failed"`    // attempts to connect that failed, and connections that ended
}

// Sender sends messages to one server.
type Sender struct {
	cfg     Config
	mu      sync.Mutex
	n       Counters
	trouble string
}

// New makes a Sender.
func New(cfg Config) *Sender {
	if cfg.Dial == nil {
		d := net.Dialer{Timeout: connectWithin, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
		cfg.Dial = d.DialContext
	}
	return &Sender{cfg: cfg}
}

// String names the task.
func (s *Sender) String() string { return "syslog to " + s.cfg.Server.String() }

// Counters may be called by any goroutine.
func (s *Sender) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// Trouble is why the server is not reached; empty if it is, as far as that is known.
func (s *Sender) Trouble() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

// count changes the counters.
func (s *Sender) count(change func(*Counters)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.n)
}

func (s *Sender) setTrouble(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = text
}

// Run sends until ctx ends, and then for a second what is left.
func (s *Sender) Run(ctx context.Context) error {
	after, pause := s.cfg.Sent, firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := s.connection(ctx, &after)
		if ctx.Err() != nil {
			break
		}
		s.count(func(n *Counters) { n.Failed++ })
		s.setTrouble(err.Error())
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
	return nil
}

// connection opens one and sends on it until it fails or ctx ends. after is the number of the
// last message that was written.
func (s *Sender) connection(ctx context.Context, after *uint64) error {
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	s.count(func(n *Counters) { n.Connected++ })
	if s.cfg.Server.Network != "udp" {
		// Servers say nothing; that one has ended is seen by reading.
		broken, ended := context.WithCancelCause(ctx)
		defer ended(nil)
		go func() {
			_, err := io.Copy(io.Discard, io.LimitReader(conn, 64<<10))
			if err == nil {
				err = io.EOF
			}
			ended(fmt.Errorf("%s ended the connection: %w", s.cfg.Server, err))
		}()
		err = s.send(broken, conn, after)
		if cause := context.Cause(broken); cause != nil && ctx.Err() == nil {
			err = cause
		}
	} else {
		err = s.send(ctx, conn, after)
	}
	if ctx.Err() == nil {
		return err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(goodbyeWithin))
	_ = s.write(conn, s.cfg.From.After(*after), after)
	return nil
}

// send writes what comes until ctx ends or a write fails.
func (s *Sender) send(ctx context.Context, conn net.Conn, after *uint64) error {
	for {
		b, err := s.cfg.From.Wait(ctx, *after)
		if err != nil {
			return err
		}
		_ = conn.SetWriteDeadline(time.Now().Add(writeWithin))
		if err := s.write(conn, b, after); err != nil {
			return err
		}
		s.setTrouble("")
	}
}

// write sends a batch; of one that fails all is sent again, of datagrams what is left.
func (s *Sender) write(conn net.Conn, b Batch, after *uint64) error {
	if b.Missed > 0 {
		s.count(func(n *Counters) { n.Lost += b.Missed })
		if len(b.Messages) > 0 {
			*after = b.Messages[0].Number - 1 // what is lost is counted once
		}
		b.Messages = append([]Message{s.cfg.Lost(b.Missed)}, b.Messages...)
	}
	var line []byte
	if s.cfg.Server.Network == "udp" {
		for i := range b.Messages {
			m := &b.Messages[i]
			line = m.Append(line[:0], MaxDatagram)
			*after = max(*after, m.Number)
			if _, err := conn.Write(line); err != nil {
				s.count(func(n *Counters) { n.Lost++ })
				return err // told of an earlier one: nobody listens
			}
			s.count(func(n *Counters) { n.Sent++ })
		}
		*after = max(*after, b.Last)
		return nil
	}
	w := bufio.NewWriterSize(conn, 32<<10)
	for i := range b.Messages {
		line = b.Messages[i].Append(line[:0], MaxStream)
		_, _ = w.Write(strconv.AppendInt(nil, int64(len(line)), 10)) // an error is kept until Flush
		_ = w.WriteByte(' ')
		_, _ = w.Write(line)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	*after = max(*after, b.Last)
	s.count(func(n *Counters) { n.Sent += uint64(len(b.Messages)) })
	return nil
}

func (s *Sender) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	server := s.cfg.Server
	if server.Network != "tls" {
		return s.cfg.Dial(ctx, server.Network, server.address())
	}
	cfg, err := s.cfg.TLS()
	if err != nil {
		return nil, err
	}
	cfg.ServerName, cfg.MinVersion = server.Host, tls.VersionTLS12
	raw, err := s.cfg.Dial(ctx, "tcp", server.address())
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("%s: %w", server, err)
	}
	return conn, nil
}
