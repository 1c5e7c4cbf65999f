package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
)

// transportConfig is what the connections of a member need.
type transportConfig struct {
	Self    MemberID
	Address netip.AddrPort // where the others reach this member
	Auth    func() link.Auth
	Listen  func(ctx context.Context, addr netip.AddrPort) (net.Listener, error)
	Dial    func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
	Timeout time.Duration // of one small request
	// state says what the own hello tells; member whether a peer is one; leads whether one that
	// is none for all that is known here is the leader, as known members say.
	state  func() (cluster uint64, fresh bool)
	member func(MemberID) bool
	leads  func(context.Context, MemberID) bool
	// stands reports whether one that is no member, for all this one knows, may be a candidate.
	stands func(MemberID) bool
	votes  func(MemberID) bool // it has a vote, for all this one knows
	// applied is how far Raft has applied the log, and its term.
	applied func() (index, term uint64)
	// strayed is told that the cluster knows this device by another incarnation.
	strayed func(from MemberID)
	// serve answers a request that is none of Raft.
	serve func(ctx context.Context, from MemberID, o op, r *reader) ([]byte, error)
}

// Limits of connections.
const (
	maxConns       = 128 // accepted ones
	maxPending     = 32  // of these, whose handshake is not done
	maxConnsDevice = 16  // of one device
	maxIdle        = 4   // kept for the next request, for each peer
	idleDialed     = 30 * time.Second
	idleAccepted   = 90 * time.Second
	handshakeTime  = 5 * time.Second
	// bytesPerSecond is the least rate at which large requests must move.
	bytesPerSecond = 1 << 20
)

// TransportCounters count what happened on the connections between members.
type TransportCounters struct {
	Accepted     uint64 `json:"accepted"`
	Refused      uint64 `json:"refused"` // too many connections
	HandshakeBad uint64 `json:"handshakes_failed"`
	AuthFailed   uint64 `json:"auth_failed"`
	NotMember    uint64 `json:"not_member"` // requests of those who are none
	Malformed    uint64 `json:"malformed"`  // peers that were cut because of what they said
	Dials        uint64 `json:"dials"`
	DialErrors   uint64 `json:"dial_errors"`
	RequestsIn   uint64 `json:"requests_in"`
	RequestsOut  uint64 `json:"requests_out"`
	Errors       uint64 `json:"request_errors"`
}

// transport carries the requests between members, of Raft and our own, each answered
// before the next on its connection. It implements raft.Transport.
type transport struct {
	cfg     transportConfig
	consume chan raft.RPC
	closed  chan struct{}
	ready   chan struct{} // closed once it listens

	mu        sync.Mutex
	guesses   link.Guesses
	listener  net.Listener
	heartbeat func(raft.RPC)
	idle      map[poolKey][]*conn
	conns     map[*conn]struct{} // all that are open
	pending   int
	devices   map[netip.Addr]int // accepted connections by device
	accepted  int
	counters  TransportCounters
	shut      bool
	running   sync.WaitGroup
}

type poolKey struct {
	id   MemberID
	addr netip.AddrPort
}

func newTransport(cfg transportConfig) *transport {
	return &transport{cfg: cfg, consume: make(chan raft.RPC), closed: make(chan struct{}), ready: make(chan struct{}),
		idle: map[poolKey][]*conn{}, conns: map[*conn]struct{}{}, devices: map[netip.Addr]int{}}
}

func (t *transport) count(f func(*TransportCounters)) {
	t.mu.Lock()
	f(&t.counters)
	t.mu.Unlock()
}

// Counters returns a copy.
func (t *transport) Counters() TransportCounters {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counters
}

// track keeps an open connection, to close it with the transport.
func (t *transport) track(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut {
		return false
	}
	t.conns[c] = struct{}{}
	return true
}

func (t *transport) drop(c *conn) {
	_ = c.nc.Close()
	t.mu.Lock()
	delete(t.conns, c)
	t.mu.Unlock()
}

// Close ends all connections and waits for what serves them. It implements raft.WithClose.
func (t *transport) Close() error {
	t.mu.Lock()
	if t.shut {
		t.mu.Unlock()
		return nil
	}
	t.shut = true
	close(t.closed)
	if t.listener != nil {
		_ = t.listener.Close()
	}
	for c := range t.conns {
		_ = c.nc.Close()
	}
	t.mu.Unlock()
	t.running.Wait()
	return nil
}

// ours is the hello of a new connection.
func (t *transport) ours(mode wire.AuthMode, target MemberID) *hello {
	h := &hello{Mode: mode, Self: t.cfg.Self, Target: target}
	h.Cluster, h.Fresh = t.cfg.state()
	_, _ = rand.Read(h.Nonce[:]) // never fails
	return h
}

// connect opens a connection to a member; a target without incarnation is whoever is
// there under that device id.
func (t *transport) connect(ctx context.Context, target MemberID, addr netip.AddrPort) (*conn, error) {
	t.count(func(c *TransportCounters) { c.Dials++ })
	c, err := t.tryConnect(ctx, target, addr)
	if err != nil {
		t.count(func(c *TransportCounters) { c.DialErrors++ })
		return nil, fmt.Errorf("member %s at %s: %w", target.Device, addr, err)
	}
	return c, nil
}

func (t *transport) tryConnect(ctx context.Context, target MemberID, addr netip.AddrPort) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, min(handshakeTime, t.cfg.Timeout))
	defer cancel()
	nc, err := t.cfg.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{nc: nc, since: time.Now()}
	if !t.track(c) {
		_ = nc.Close()
		return nil, ErrStopped
	}
	deadline, _ := ctx.Deadline()
	_ = nc.SetDeadline(deadline)
	if err := c.greet(t.cfg.Auth(), t.ours, target); err != nil {
		t.drop(c)
		return nil, err
	}
	_ = nc.SetDeadline(time.Time{})
	return c, nil
}

// get gives an idle connection to a member or a new one.
func (t *transport) get(ctx context.Context, target MemberID, addr netip.AddrPort) (*conn, error) {
	key := poolKey{target, addr}
	for {
		t.mu.Lock()
		list := t.idle[key]
		if len(list) == 0 {
			t.mu.Unlock()
			return t.connect(ctx, target, addr)
		}
		c := list[len(list)-1]
		if t.idle[key] = list[:len(list)-1]; len(list) == 1 {
			delete(t.idle, key)
		}
		t.mu.Unlock()
		if time.Since(c.used) < idleDialed && c.current(t.cfg.Auth()) {
			return c, nil
		}
		t.drop(c)
	}
}

// put keeps a connection for the next request.
func (t *transport) put(target MemberID, addr netip.AddrPort, c *conn) {
	c.used = time.Now()
	key := poolKey{target, addr}
	t.mu.Lock()
	keep := !t.shut && len(t.idle[key]) < maxIdle
	if keep {
		t.idle[key] = append(t.idle[key], c)
	}
	t.mu.Unlock()
	if !keep {
		t.drop(c)
	}
}

// request sends one request and gives what the peer answers. The deadline is that of
// the context, and no later than the timeout for its size.
func (t *transport) request(ctx context.Context, target MemberID, addr netip.AddrPort, body ...[]byte) ([]byte, error) {
	c, err := t.get(ctx, target, addr)
	if err != nil {
		return nil, err
	}
	t.count(func(c *TransportCounters) { c.RequestsOut++ })
	stop := context.AfterFunc(ctx, func() { _ = c.nc.SetDeadline(time.Now()) })
	defer stop()
	size := 0
	for _, b := range body {
		size += len(b)
	}
	deadline := time.Now().Add(t.cfg.Timeout + time.Duration(size)*time.Second/bytesPerSecond)
	if d, ok := ctx.Deadline(); ok && op(body[0][0]) >= opChange { // it waits for a majority
		deadline = d
	}
	_ = c.nc.SetDeadline(deadline)
	answer, err := c.ask(body...)
	var told *toldError
	if err != nil && !errors.As(err, &told) {
		t.count(func(c *TransportCounters) { c.Errors++ })
		t.drop(c)
		return nil, fmt.Errorf("member %s at %s: %w", target.Device, addr, err)
	}
	if !stop() {
		t.drop(c) // its deadline may be in the past
		return answer, err
	}
	_ = c.nc.SetDeadline(time.Time{})
	t.put(target, addr, c)
	return answer, err
}

// toldError is an error that the peer has sent as its answer.
type toldError struct{ text string }

func (e *toldError) Error() string { return e.text }

// ask sends a request and reads the answer: 0 and what it is, or 1 and an error.
func (c *conn) ask(body ...[]byte) ([]byte, error) {
	if err := c.write(recordRequest, body...); err != nil {
		return nil, err
	}
	return c.answer()
}

func (c *conn) answer() ([]byte, error) {
	typ, b, err := c.read()
	switch {
	case err != nil:
		return nil, err
	case typ == recordRefusal:
		return nil, fmt.Errorf("refused: %q", b)
	case typ != recordResponse || len(b) == 0:
		return nil, broken("record", "type %d of %d bytes is no answer", typ, len(b))
	case b[0] != 0:
		return nil, &toldError{string(b[1:])}
	}
	return b[1:], nil
}

// probe asks who is there under a device id.
func (t *transport) probe(ctx context.Context, device netip.Addr, addr netip.AddrPort) (*hello, error) {
	c, err := t.connect(ctx, MemberID{Device: device}, addr)
	if err != nil {
		return nil, err
	}
	t.drop(c)
	return c.peer, nil
}

// closedError tells an end without a reason from others.
func closedError(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed)
}
