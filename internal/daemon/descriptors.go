package daemon

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// descriptorReserve are the last descriptors of the process, which no connection from a network
// gets: the management socket is answered with them, and files are written.
const descriptorReserve = 64

// descriptors keep the reserve.
type descriptors struct {
	most    uint64 // a connection has a number below this; 0: no limit is known
	refused atomic.Uint64
	last    atomic.Int64 // Unix time of the last one, in ns
}

// descriptorCounters are theirs.
type descriptorCounters struct {
	Most    uint64 `json:"most_for_connections"`
	Refused uint64 `json:"refused"`
}

// mostDescriptors is how many connections from a network may use.
func mostDescriptors() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur <= 2*descriptorReserve {
		return 0
	}
	return limit.Cur - descriptorReserve
}

func (d *descriptors) counters() descriptorCounters {
	return descriptorCounters{Most: d.most, Refused: d.refused.Load()}
}

// refusedIn returns how many were refused so far if the last one was within a time, else 0.
func (d *descriptors) refusedIn(within time.Duration, now time.Time) uint64 {
	if now.Sub(time.Unix(0, d.last.Load())) > within {
		return 0
	}
	return d.refused.Load()
}

// listen wraps a function that opens listeners on a network.
func (d *descriptors) listen(open func(context.Context, netip.AddrPort) (net.Listener, error)) func(context.Context, netip.AddrPort) (net.Listener, error) {
	return func(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
		l, err := open(ctx, at)
		if err != nil || d.most == 0 {
			return l, err
		}
		return &sparing{l, d}, nil
	}
}

// sparing is a listener that closes connections which reach into the reserve: the kernel gives the
// lowest number that is free, so their number says how many are in use.
type sparing struct {
	net.Listener
	d *descriptors
}

func (s *sparing) Accept() (net.Conn, error) {
	for {
		c, err := s.Listener.Accept()
		if err != nil || numberOf(c) < s.d.most {
			return c, err
		}
		s.d.refused.Add(1)
		s.d.last.Store(time.Now().UnixNano())
		_ = c.Close()
	}
}

// numberOf is the descriptor of a connection; 0: it has none.
func numberOf(c net.Conn) (n uint64) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n = uint64(fd) })
	return n
}
