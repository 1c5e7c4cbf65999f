package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"
)

// comer is a connection from an address, of which nothing else is used.
type comer struct {
	net.Conn
	from   string
	closed bool
}

func (c *comer) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.from))
}
func (c *comer) Close() error { c.closed = true; return nil }

type comers struct {
	net.Listener
	next *comer
}

func (l *comers) Accept() (net.Conn, error) { return l.next, nil }

// Strangers of one address, or of many, end so that others have room; who was let in stays.
func TestStrangersMakeRoom(t *testing.T) {
	in := &comers{}
	d := &Door{Gate: &Gate{}}
	l := d.Watch(in, 0)
	come := func(from string) (*comer, net.Conn) {
		t.Helper()
		c := &comer{from: from}
		in.next = c
		v, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c, v
	}
	known, v := come("192.0.2.1:1")
	LetIn(v.RemoteAddr())
	var flood []*comer
	for i := range maxStrangers + 3 {
		c, _ := come(fmt.Sprintf("[2001:db8:1::%x]:99", i))
		flood = append(flood, c)
	}
	for i, c := range flood {
		if c.closed != (i < 3) {
			t.Errorf("connection %d from one address: closed %t", i, c.closed)
		}
	}
	for i := range maxVisits - 1 - maxStrangers {
		come(fmt.Sprintf("198.51.%d.1:1", i))
	}
	if n := d.Counters().Full; n != 3 {
		t.Errorf("%d closed with %d places taken, want 3", n, maxVisits)
	}
	honest, _ := come("203.0.113.9:1")
	if !flood[3].closed || flood[4].closed || honest.closed || known.closed {
		t.Error("not the oldest stranger has made room")
	}
}

// Idle connections from one address do not keep the API from another: it answers at once.
func TestIdleStrangersDoNotKeepTheAPIShut(t *testing.T) {
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &Door{Gate: &Gate{}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, d.Watch(inner, 0), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "here") }))
	}()
	defer func() { stop(); <-ended }()
	var last net.Conn
	for range 200 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		last = c
	}
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	c := &http.Client{Transport: &http.Transport{DialContext: other.DialContext}, Timeout: time.Minute}
	defer c.CloseIdleConnections()
	resp, err := c.Get("http://" + inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(b) != "here" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if n := d.Counters().Full; n != 200-maxStrangers {
		t.Errorf("%d were closed, want %d", n, 200-maxStrangers)
	}
	_ = last.SetReadDeadline(time.Unix(1, 0))
	if _, err := last.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the newest idle one: %v", err)
	}
}
