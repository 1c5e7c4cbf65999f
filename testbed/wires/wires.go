// Package wires is TCP in memory, for several devices in one process: listeners by
// address, connections that can be cut, and pairs of devices that do not reach each other.
// In a bubble of testing/synctest it runs in virtual time.
package wires

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Net is one network. Its zero value is ready.
type Net struct {
	mu        sync.Mutex
	listeners map[netip.AddrPort]*listener
	apart     map[[2]netip.Addr]bool
	conns     []conn
}

// conn is one connection; from is the zero Addr when Dial made it.
type conn struct {
	from, to netip.Addr
	ends     [2]net.Conn
}

func (c *conn) close() {
	for _, e := range c.ends {
		_ = e.Close()
	}
}

var errRefused = errors.New("connection refused")

// Listen opens a listener; an address that another one has is an error.
func (n *Net) Listen(_ context.Context, addr netip.AddrPort) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, fmt.Errorf("address %s is in use", addr)
	}
	l := &listener{n: n, addr: addr, queue: make(chan net.Conn), done: make(chan struct{})}
	if n.listeners == nil {
		n.listeners = map[netip.AddrPort]*listener{}
	}
	n.listeners[addr] = l
	return l, nil
}

// Dial connects from nowhere in particular, which nothing is apart from.
func (n *Net) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return n.dial(ctx, netip.Addr{}, to)
}

// From gives the Dial of a device. Towards one that it is apart from nothing ever comes
// back, as on a real network.
func (n *Net) From(from netip.Addr) func(context.Context, netip.AddrPort) (net.Conn, error) {
	return func(ctx context.Context, to netip.AddrPort) (net.Conn, error) { return n.dial(ctx, from, to) }
}

func (n *Net) dial(ctx context.Context, from netip.Addr, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	l, apart := n.listeners[to], n.apart[pair(from, to.Addr())]
	n.mu.Unlock()
	switch {
	case apart:
		<-ctx.Done()
		return nil, ctx.Err()
	case l == nil:
		return nil, errRefused
	}
	a, b := net.Pipe()
	var far net.Conn = b
	if from.IsValid() {
		far = &remote{b, netip.AddrPortFrom(from, firstPort)}
	}
	select {
	case l.queue <- far:
	case <-l.done:
		return nil, errRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, conn{from, to.Addr(), [2]net.Conn{a, b}})
	return a, nil
}

// firstPort is the port that all connections come from.
const firstPort = 49152

// remote is an end of a connection with the address of the other one.
type remote struct {
	net.Conn
	addr netip.AddrPort
}

// RemoteAddr implements net.Conn.
func (r *remote) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(r.addr) }

func pair(a, b netip.Addr) [2]netip.Addr {
	if b.Less(a) {
		a, b = b, a
	}
	return [2]netip.Addr{a, b}
}

// Part sets two devices apart, which ends all connections between them, or joins them.
func (n *Net) Part(a, b netip.Addr, apart bool) {
	n.mu.Lock()
	if n.apart == nil {
		n.apart = map[[2]netip.Addr]bool{}
	}
	n.apart[pair(a, b)] = apart
	n.mu.Unlock()
	if apart {
		n.cut(func(c conn) bool { return pair(c.from, c.to) == pair(a, b) })
	}
}

// Join ends every Part.
func (n *Net) Join() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.apart)
}

// Cut ends all connections.
func (n *Net) Cut() { n.cut(func(conn) bool { return true }) }

// Drop takes a device off the network: its connections end, and its listeners.
func (n *Net) Drop(dev netip.Addr) {
	n.mu.Lock()
	var gone []*listener
	for addr, l := range n.listeners {
		if addr.Addr() == dev {
			gone = append(gone, l)
		}
	}
	n.mu.Unlock()
	for _, l := range gone {
		_ = l.Close()
	}
	n.cut(func(c conn) bool { return c.from == dev || c.to == dev })
}

func (n *Net) cut(which func(conn) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = slices.DeleteFunc(n.conns, func(c conn) bool {
		if which(c) {
			c.close()
			return true
		}
		return false
	})
}

type listener struct {
	n     *Net
	addr  netip.AddrPort
	queue chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.n.mu.Lock()
		defer l.n.mu.Unlock()
		if l.n.listeners[l.addr] == l {
			delete(l.n.listeners, l.addr)
		}
	})
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.addr) }
