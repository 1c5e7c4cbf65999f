package api

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"
)

// Watch has a door know the connections of a listener: one that ends before a request of it was
// read is counted in DoorCounters.Handshakes, whatever it has sent, and one of which nobody has
// been let in within a time (0: no bound here) is closed.
//
// Strangers take few places, and the oldest of them makes room: see room.go.
func (d *Door) Watch(l net.Listener, within time.Duration) net.Listener {
	return &watched{Listener: l, door: d, within: within}
}

// Nothing counts a connection that came to nothing before a request, or a log-in, could be read.
func (d *Door) Nothing() { d.handshakes.Add(1) }

// Asked notes that a request was read of the connection with a remote address, if it is one that is
// watched.
func Asked(remote net.Addr) { note(remote, func(v *visit) { v.asked.Store(true) }) }

// LetIn notes that somebody was let in by the connection with a remote address, if it is one that
// is watched.
func LetIn(remote net.Addr) {
	note(remote, func(v *visit) {
		v.in.Store(true)
		if v.bound != nil {
			v.bound.Stop()
		}
	})
}

func note(remote net.Addr, do func(*visit)) {
	if a, ok := remote.(visitAddr); ok {
		do(a.visit)
	}
}

type watched struct {
	net.Listener
	door   *Door
	within time.Duration
	places places
}

func (l *watched) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		v := &visit{Conn: c, door: l.door, places: &l.places, source: sourceOf(c.RemoteAddr())}
		gone := l.places.enter(v)
		if gone != nil {
			l.door.full.Add(1)
			_ = gone.end()
		}
		if gone == v {
			continue
		}
		if l.within > 0 {
			v.bound = time.AfterFunc(l.within, func() { _ = v.end() })
		}
		return v, nil
	}
}

// visit is a connection of a door.
type visit struct {
	net.Conn
	door          *Door
	bound         *time.Timer
	places        *places
	source        netip.Prefix
	asked, closed atomic.Bool
	in            atomic.Bool // somebody was let in by it
}

// visitAddr is a remote address by which its connection is found: what reads requests hands on
// nothing else of it.
type visitAddr struct {
	net.Addr
	visit *visit
}

func (v *visit) RemoteAddr() net.Addr { return visitAddr{v.Conn.RemoteAddr(), v} }

// Close implements net.Conn.
func (v *visit) Close() error {
	if v.bound != nil {
		v.bound.Stop()
	}
	return v.end()
}

func (v *visit) end() error {
	v.places.leave(v)
	if v.closed.CompareAndSwap(false, true) && !v.asked.Load() {
		v.door.Nothing()
	}
	return v.Conn.Close()
}

type remoteKey struct{}

// withRemote keeps by which address the requests of a connection come.
func withRemote(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, remoteKey{}, conn.RemoteAddr())
}

// asking notes each request of connections that are watched.
func asking(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remote, _ := r.Context().Value(remoteKey{}).(net.Addr)
		Asked(remote)
		h.ServeHTTP(w, r)
	})
}
