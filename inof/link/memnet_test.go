package link

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/testbed/wires"
)

// memNet is a network of one listener in memory.
type memNet struct {
	net.Listener
	wires wires.Net
	mu    sync.Mutex
	fail  []error // what the next Accepts give
}

var memAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 250}), wire.DefaultPort)

func newMemNet() *memNet {
	n := new(memNet)
	n.Listener, _ = n.wires.Listen(context.Background(), memAddr) // the only one
	return n
}

func (n *memNet) Accept() (net.Conn, error) {
	n.mu.Lock()
	if len(n.fail) > 0 {
		defer n.mu.Unlock()
		err := n.fail[0]
		n.fail = n.fail[1:]
		return nil, err
	}
	n.mu.Unlock()
	return n.Listener.Accept()
}

// fabricNet is a network that a reflector comes to and leaves.
type fabricNet struct {
	mu     sync.Mutex
	l      *memNet
	broken atomic.Bool // what clients write is lost
	tcp    bool        // over real sockets
	real   net.Listener
}

// lossy is a client's end of a connection over a path that can break.
type lossy struct {
	net.Conn
	broken *atomic.Bool
}

func (c lossy) Write(b []byte) (int, error) {
	if c.broken.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (f *fabricNet) listen(context.Context) (net.Listener, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tcp {
		var err error
		f.real, err = net.Listen("tcp", "127.0.0.1:0")
		return f.real, err
	}
	f.l = newMemNet()
	return f.l, nil
}

func (f *fabricNet) dial(ctx context.Context) (net.Conn, error) {
	f.mu.Lock()
	l, addr := f.l, f.real
	f.mu.Unlock()
	if addr != nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr.Addr().String())
	}
	if l == nil {
		return nil, errors.New("connection refused")
	}
	c, err := l.wires.Dial(ctx, memAddr)
	if err != nil {
		return nil, err
	}
	return lossy{c, &f.broken}, nil
}

// password is an Auth that changes while sessions come and go.
type password struct {
	mu sync.Mutex
	a  Auth
}

func newPassword(s string) *password { return &password{a: hmacAuth(s)} }

func (p *password) get() Auth { p.mu.Lock(); defer p.mu.Unlock(); return p.a }

func (p *password) set(s string) { p.mu.Lock(); defer p.mu.Unlock(); p.a = hmacAuth(s) }
