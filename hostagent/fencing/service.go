package fencing

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits of a Service. Handshakes and callers are counted apart, so that callers that prove nothing
// cannot keep out those that do.
const (
	maxHandshakes  = 32
	maxCallers     = 64
	maxPerAddress  = 4
	handshakeTime  = 5 * time.Second // also for the request behind it
	answerTime     = 5 * time.Second // to write an answer
	acceptRestTime = 100 * time.Millisecond
)

// ServiceCounters count connections to a Service that were turned away.
type ServiceCounters struct {
	Connections uint64 `json:"connections"`
	TooMany     uint64 `json:"too-many"`   // beyond a limit: closed without a word
	Handshakes  uint64 `json:"handshakes"` // that failed: no TLS 1.3, or no identity
	Malformed   uint64 `json:"malformed"`  // requests
	Denied      uint64 `json:"denied"`     // for paths of another host
}

// Service lets hosts ask a Target.
type Service struct {
	target *Target
	creds  Credentials
	report func(Event)

	mu    sync.Mutex
	count ServiceCounters
	of    map[netip.Addr]int // connections by address
	open  [2]int             // handshakes, callers
}

// NewService returns a Service for a Target.
func NewService(target *Target, creds Credentials, report func(Event)) *Service {
	for _, addrs := range creds.hosts() {
		target.Know(addrs)
	}
	return &Service{target: target, creds: creds, report: report, of: make(map[netip.Addr]int)}
}

// Run serves the connections of a listener until ctx ends.
func (s *Service) Run(ctx context.Context, ln net.Listener) error {
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	cfg := s.creds.server()
	for {
		conn, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // such as too many open files
			select {
			case <-time.After(acceptRestTime):
			case <-ctx.Done():
			}
			continue
		}
		from := remote(conn)
		if !s.enter(from) {
			conn.Close()
			continue
		}
		conns.Go(func() {
			stage := s.serve(ctx, tls.Server(conn, cfg), from)
			s.leave(from, stage)
		})
	}
}

func remote(conn net.Conn) netip.Addr {
	a, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return a.AddrPort().Addr().Unmap().WithZone("")
}

// enter counts a connection in, if there is room.
func (s *Service) enter(from netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.Connections++
	if s.open[0] >= maxHandshakes || s.of[from] >= maxPerAddress {
		s.count.TooMany++
		return false
	}
	s.open[0]++
	s.of[from]++
	return true
}

func (s *Service) leave(from netip.Addr, stage int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[stage]--
	if s.of[from]--; s.of[from] == 0 {
		delete(s.of, from)
	}
}

// promote moves a connection from handshakes to callers, if there is room.
func (s *Service) promote() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[1] >= maxCallers {
		s.count.TooMany++
		return false
	}
	s.open[0]--
	s.open[1]++
	return true
}

func (s *Service) add(c *uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*c++
}

// serve answers the one request of a connection. It returns the stage in which it ended.
func (s *Service) serve(ctx context.Context, conn *tls.Conn, from netip.Addr) (stage int) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(handshakeTime))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		s.add(&s.count.Handshakes)
		s.report(Event{Path: Path{Host: from}, Text: "refused to fence", Error: err.Error()})
		return 0
	}
	who, err := s.creds.caller(conn.ConnectionState())
	if err != nil {
		s.add(&s.count.Handshakes)
		s.report(Event{Path: Path{Host: from}, Text: "refused to fence", Error: err.Error()})
		return 0
	}
	if !s.promote() {
		return 0
	}
	q, err := readRequest(conn)
	if err != nil {
		s.add(&s.count.Malformed)
		s.answer(conn, answer{}, err)
		return 1
	}
	// Nothing may follow the request: the end of the connection ends the waiting.
	_ = conn.SetDeadline(time.Time{})
	go func() {
		_, _ = io.ReadFull(conn, make([]byte, 1))
		cancel()
	}()
	a, err := s.do(ctx, who, from, q)
	s.answer(conn, a, err)
	return 1
}

func (s *Service) answer(conn net.Conn, a answer, err error) {
	a.Version = Version
	if err != nil {
		r := refusal(err)
		a.Code, a.Error = r.Code, r.Text[:min(len(r.Text), maxMessage/8)] // JSON may make six bytes of one
	}
	_ = conn.SetWriteDeadline(time.Now().Add(answerTime))
	_ = writeMessage(conn, a) // a caller that is gone asks again
}

// do does what a caller asks for.
func (s *Service) do(ctx context.Context, who Caller, from netip.Addr, q request) (answer, error) {
	p := Path{q.Host, q.Array}
	if !slices.Contains(who.Addrs, q.Host) || !slices.Contains(who.Addrs, from) {
		s.add(&s.count.Denied)
		err := refuse(CodeDenied, "%v asks for %v: %q has proven %v", from, q.Host, who.Name, who.Addrs)
		s.report(Event{Path: p, Text: "refused to fence", Error: err.Error()})
		return answer{}, err
	}
	s.target.Know(who.Addrs)
	if q.Op == OpConfirm {
		s.target.Confirm(p)
		return answer{}, nil
	}
	if err := s.target.Check(q.Array); err != nil || q.Op == OpCheck {
		return answer{}, err
	}
	f, err := s.target.Fence(ctx, p, HoldOf(time.Duration(q.KeepAliveMS)*time.Millisecond))
	return answer{TookMS: f.Took.Milliseconds(), HoldMS: f.Hold.Milliseconds()}, err
}

// Counters returns what was counted.
func (s *Service) Counters() ServiceCounters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}
