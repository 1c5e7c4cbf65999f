package syslog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// log is a Log of which the newest size messages are kept.
type log struct {
	mu    sync.Mutex
	size  uint64
	last  uint64
	grown chan struct{}
}

func newLog(size uint64) *log { return &log{size: size, grown: make(chan struct{})} }

func (l *log) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last += uint64(n)
	close(l.grown)
	l.grown = make(chan struct{})
}

func (l *log) After(number uint64) Batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := Batch{Last: l.last}
	first := number + 1
	if l.last > l.size && first <= l.last-l.size {
		b.Missed = l.last - l.size + 1 - first
		first = l.last - l.size + 1
	}
	for n := first; n <= l.last; n++ {
		b.Messages = append(b.Messages, Message{Number: n, Data: "x", Text: fmt.Sprintf("m%d", n)})
	}
	return b
}

func (l *log) Wait(ctx context.Context, number uint64) (Batch, error) {
	for {
		l.mu.Lock()
		grown := l.grown
		l.mu.Unlock()
		if b := l.After(number); len(b.Messages) > 0 {
			return b, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
	}
}

// server takes connections of a Sender in the bubble of a test.
type server struct {
	mu    sync.Mutex
	down  bool
	conns []net.Conn
	got   []string // texts
}

func (s *server) dial(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errors.New("refused")
	}
	a, b := net.Pipe()
	s.conns = append(s.conns, b)
	go func() {
		r := bufio.NewReader(b)
		for {
			head, err := r.ReadString(' ')
			if err != nil {
				return
			}
			n, err := strconv.Atoi(strings.TrimSpace(head))
			line := make([]byte, n)
			if _, err2 := io.ReadFull(r, line); err != nil || err2 != nil {
				return
			}
			_, text, _ := strings.Cut(string(line), "] ")
			s.mu.Lock()
			s.got = append(s.got, text)
			s.mu.Unlock()
		}
	}()
	return a, nil
}

func (s *server) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
	if down {
		for _, c := range s.conns {
			c.Close()
		}
		s.conns = nil
	}
}

func (s *server) texts() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.got, " ")
}

func start(t *testing.T, l *log, s *server) (*Sender, func()) {
	ctx, stop := context.WithCancel(t.Context())
	sender := New(Config{Server: Server{Network: "tcp", Host: "log", Port: 514}, From: l, Dial: s.dial,
		Lost: func(n uint64) Message { return Message{Data: "x", Text: fmt.Sprintf("lost%d", n)} }})
	done := make(chan struct{})
	go func() { defer close(done); _ = sender.Run(ctx) }()
	return sender, func() { stop(); <-done }
}

func TestWhatHappensWhileAServerIsAwayIsSentWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newLog(4), &server{}
		sender, stop := start(t, l, s)
		l.add(2)
		synctest.Wait()
		s.set(true)
		l.add(1)
		time.Sleep(time.Minute)
		if sender.Trouble() == "" || sender.Counters().Failed < 2 {
			t.Errorf("the server is away: trouble %q, %+v", sender.Trouble(), sender.Counters())
		}
		s.set(false)
		time.Sleep(time.Minute)
		if got := s.texts(); got != "m1 m2 m3" {
			t.Errorf("got %s", got)
		}
		if sender.Trouble() != "" {
			t.Errorf("trouble after all: %s", sender.Trouble())
		}
		// More than the log keeps.
		s.set(true)
		time.Sleep(time.Second)
		l.add(6)
		time.Sleep(time.Minute)
		s.set(false)
		time.Sleep(time.Minute)
		if got := s.texts(); got != "m1 m2 m3 lost2 m6 m7 m8 m9" {
			t.Errorf("got %s", got)
		}
		if n := sender.Counters(); n.Lost != 2 || n.Connected != 3 {
			t.Errorf("%+v", n)
		}
		l.add(1)
		stop() // what is there is sent before the end
		synctest.Wait()
		if got := s.texts(); !strings.HasSuffix(got, " m10") {
			t.Errorf("got %s", got)
		}
	})
}

func TestAServerThatReadsNothingHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(100)
		var conns []net.Conn
		sender := New(Config{Server: Server{Network: "tcp"}, From: l, Lost: func(uint64) Message { return Message{} },
			Dial: func(context.Context, string, string) (net.Conn, error) {
				a, b := net.Pipe()
				conns = append(conns, b)
				return a, nil
			}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = sender.Run(ctx) }()
		l.add(50)
		time.Sleep(10 * time.Minute)
		if n := sender.Counters(); n.Sent != 0 || n.Failed < 5 || sender.Trouble() == "" {
			t.Errorf("%+v %q", n, sender.Trouble())
		}
		before := time.Now()
		stop()
		<-done
		if d := time.Since(before); d > goodbyeWithin+writeWithin {
			t.Errorf("the end took %s", d)
		}
		for _, c := range conns {
			c.Close()
		}
	})
}

func TestDatagramsThatNobodyTakesAreCounted(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	at := server.LocalAddr().(*net.UDPAddr)
	l := newLog(10)
	sender := New(Config{Server: Server{Network: "udp", Host: "127.0.0.1", Port: uint16(at.Port)}, From: l})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = sender.Run(ctx) }()
	l.add(2)
	buf := make([]byte, 4096)
	for i := range 2 {
		n, _, err := server.ReadFrom(buf)
		if want := fmt.Sprintf("] m%d", i+1); err != nil || !strings.HasSuffix(string(buf[:n]), want) {
			t.Errorf("%v %q", err, buf[:n])
		}
	}
	server.Close()
	for end := time.Now().Add(time.Minute); sender.Counters().Lost == 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		l.add(1) // the refusal of one datagram is told at the next
	}
	stop()
	<-done
	if n := sender.Counters(); n.Lost == 0 || n.Sent < 2 {
		t.Errorf("%+v", n)
	}
}
