package hostkernel

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
)

// connected joins two sockets: one side is looked at by the test.
func connected(t *testing.T, network, from, to string) (*net.TCPConn, Sockets) {
	t.Helper()
	ln, err := net.Listen(network, to)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}
	c, err := d.Dial(network, ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); far.Close() })
	target := ln.Addr().(*net.TCPAddr).AddrPort()
	return c.(*net.TCPConn), Sockets{Source: netip.MustParseAddr(from), Target: netip.AddrPortFrom(target.Addr().Unmap(), target.Port())}
}

// ended reports whether a connection has ended with an error, waiting a moment for it.
func ended(c *net.TCPConn) error {
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.EAGAIN) {
		return nil
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return nil
	}
	return err
}

// The sockets of one path are ended at once, with the error that a reset gives; those of
// another source, and of another port of the same target, go on.
func TestSocketsOfOnePathAreDestroyed(t *testing.T) {
	for _, c := range []struct{ network, from, to, other string }{
		{"tcp4", "127.0.0.11", "127.0.0.12:0", "127.0.0.13"},
		{"tcp6", "::1", "[::1]:0", ""},
	} {
		one, path := connected(t, c.network, c.from, c.to)
		samePort, _ := connected(t, c.network, c.from, c.to)
		var otherSource *net.TCPConn
		if c.other != "" {
			otherSource, _ = connected(t, c.network, c.other, path.Target.String()[:len(path.Target.Addr().String())]+":0")
		}
		n, err := DestroySockets(path)
		if errors.Is(err, ErrNoDestroy) || errors.Is(err, syscall.EPERM) {
			netnstest.Require(t, "destroying sockets (CAP_NET_ADMIN, INET_DIAG_DESTROY)", err)
		}
		if err != nil || n != 1 {
			t.Fatalf("%s: %d sockets, %v", c.network, n, err)
		}
		if err := ended(one); !errors.Is(err, syscall.ECONNABORTED) {
			t.Errorf("%s: the destroyed socket says %v", c.network, err)
		}
		for _, other := range []*net.TCPConn{samePort, otherSource} {
			if other != nil && ended(other) != nil {
				t.Errorf("%s: a socket of another path ended: %v", c.network, ended(other))
			}
		}
		if n, err := DestroySockets(path); n != 0 || err != nil {
			t.Errorf("%s: again: %d, %v", c.network, n, err)
		}
	}
}
