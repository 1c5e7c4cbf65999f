package cluster

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/openinof/inof/inof/link"
)

// transportConfig is what the connections of a member need.
type transportConfig struct {
	Self    MemberID
	Address netip.AddrPort // where the others reach this member
	TLS     func() *link.CredentialStore
	Dial    func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
	Timeout time.Duration // of a small message
	Log     hclog.Logger

	// state is what the own answers say; trusts reports whether a device is a member, votes
	// whether a member has a vote, both for all that is known here.
	state  func() (cluster uint64, fresh bool)
	trusts func(netip.Addr) bool
	votes  func(MemberID) bool
	// applied is how far Raft has applied the log, and its term.
	applied func() (index, term uint64)
	// strayed is called when a member knows this device by another incarnation.
	strayed func()
	// serve answers a request other than doRaft; entry is that of a change.
	serve func(ctx context.Context, q *request, entry []byte) (any, error)
	// refused is called with the remote address of a connection that is refused, and why.
	refused func(from string, why error)
}

// Limits of connections.
const (
	maxConns       = 128 // accepted ones
	maxPending     = 32  // of these, whose peer is not known yet
	maxPendingFrom = 8   // of these, of one address (an IPv6 /64)
	maxConnsDevice = 16  // of one device
	maxIdle        = 3   // kept for the next message of Raft, for each member
	handshakeTime  = 5 * time.Second
	// bytesPerSecond is the least rate at which large messages must move.
	bytesPerSecond = 1 << 20
)

// TransportCounters count what happened on the connections between members.
type TransportCounters struct {
	Accepted     uint64 `json:"accepted"`
	Refused      uint64 `json:"refused"`           // too many connections
	HandshakeBad uint64 `json:"handshakes_failed"` // no TLS, or no request in time
	AuthFailed   uint64 `json:"auth_failed"`       // a certificate that is not taken
	NotMember    uint64 `json:"not_member"`        // a good certificate of a device that is no member
	Impostors    uint64 `json:"impostors"`         // a member in the name of another one
	Malformed    uint64 `json:"malformed"`         // messages that cannot be right
	Dials        uint64 `json:"dials"`
	DialErrors   uint64 `json:"dial_errors"`
	RequestsIn   uint64 `json:"requests_in"`
	RequestsOut  uint64 `json:"requests_out"`
	Errors       uint64 `json:"request_errors"`
}

// transport is the connections of a member: the library's transport over TLS with certificates
// of both sides, and requests of our own on the same port.
type transport struct {
	*raft.NetworkTransport // of what this member sends
	cfg                    transportConfig
	consume                chan raft.RPC
	closed                 chan struct{}

	mu        sync.Mutex
	heartbeat func(raft.RPC)
	conns     map[io.Closer]struct{} // all that are open, and the listener
	pending   map[netip.Prefix]int   // accepted connections whose peer is not known yet, by source
	devices   map[netip.Addr]int     // accepted connections by device
	waiting   int                    // sum of pending
	accepted  int
	counters  TransportCounters
	shut      bool
	running   sync.WaitGroup
}

var (
	_ raft.Transport   = (*transport)(nil)
	_ raft.WithPreVote = (*transport)(nil)
	_ raft.WithClose   = (*transport)(nil)
)

func newTransport(cfg transportConfig) *transport {
	return &transport{cfg: cfg, consume: make(chan raft.RPC), closed: make(chan struct{}),
		conns: map[io.Closer]struct{}{}, pending: map[netip.Prefix]int{}, devices: map[netip.Addr]int{}}
}

// Open begins to send.
func (t *transport) Open() { t.NetworkTransport = t.library(nil, t.closed) }

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

// track keeps what is open, to close it with the transport.
func (t *transport) track(c io.Closer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.shut {
		t.conns[c] = struct{}{}
	}
	return !t.shut
}

// newConn makes one that has done no handshake yet.
func (t *transport) newConn(nc net.Conn, dialer bool) *conn {
	c := &conn{t: t, dialer: dialer, raw: &paced{Conn: nc}, usage: x509.ExtKeyUsageClientAuth, since: time.Now(), closed: make(chan struct{}), forget: t.forget}
	if dialer {
		c.usage = x509.ExtKeyUsageServerAuth
	}
	c.raw.limit(maxMessage)
	return c
}

func (t *transport) forget(c io.Closer) {
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
	var open []io.Closer
	for c := range t.conns {
		open = append(open, c)
	}
	t.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
	t.CloseStreams()
	err := t.NetworkTransport.Close()
	t.running.Wait()
	return err
}

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.consume }

// LocalAddr implements raft.Transport.
func (t *transport) LocalAddr() raft.ServerAddress {
	return raft.ServerAddress(t.cfg.Address.String())
}

// SetHeartbeatHandler implements raft.Transport.
func (t *transport) SetHeartbeatHandler(fast func(raft.RPC)) {
	t.mu.Lock()
	t.heartbeat = fast
	t.mu.Unlock()
}

// AppendEntries implements raft.Transport. Entries that do not fit are left for the
// next message: the caller looks at the list again to see how far it has come.
func (t *transport) AppendEntries(id raft.ServerID, addr raft.ServerAddress, q *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	size := 0
	for i, l := range q.Entries {
		if size += len(l.Data) + 64; i > 0 && size > maxBatch {
			q.Entries = q.Entries[:i]
			break
		}
	}
	err := t.NetworkTransport.AppendEntries(id, route(id, addr), q, resp)
	return t.answered(err, q.Term, resp.Term)
}

// RequestVote implements raft.Transport.
func (t *transport) RequestVote(id raft.ServerID, addr raft.ServerAddress, q *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	err := t.NetworkTransport.RequestVote(id, route(id, addr), q, resp)
	return t.answered(err, q.Term, resp.Term)
}

// RequestPreVote implements raft.WithPreVote.
func (t *transport) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, q *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	err := t.NetworkTransport.RequestPreVote(id, route(id, addr), q, resp)
	return t.answered(err, q.Term, resp.Term)
}

// InstallSnapshot implements raft.Transport.
func (t *transport) InstallSnapshot(id raft.ServerID, addr raft.ServerAddress, q *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	err := t.NetworkTransport.InstallSnapshot(id, route(id, addr), q, resp, data)
	return t.answered(err, q.Term, resp.Term)
}

// answered checks the term of an answer, which Raft takes over.
func (t *transport) answered(err error, own, theirs uint64) error {
	t.count(func(c *TransportCounters) {
		if c.RequestsOut++; err != nil {
			c.Errors++
		} else if err = checkTerm(theirs, own); err != nil {
			c.Malformed++
		}
	})
	return err
}

// stream is a raft.StreamLayer: of what this member sends, or of one accepted connection.
type stream struct {
	t      *transport
	in     chan net.Conn // nil: nothing comes in
	closed <-chan struct{}
}

// Dial implements raft.StreamLayer, for a route.
func (s stream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, _, _ := strings.Cut(string(to), "@")
	target, at, err := peerOf(raft.ServerID(id), to)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, _, err := s.t.connect(ctx, request{Do: doRaft, To: target}, at)
	if err != nil {
		return nil, err
	}
	c.raw.pace(s.t.cfg.Timeout, false)
	return c, nil
}

// Accept implements net.Listener.
func (s stream) Accept() (net.Conn, error) {
	select {
	case c := <-s.in:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener: the connections are closed by the transport.
func (s stream) Close() error { return nil }

// Addr implements net.Listener.
func (s stream) Addr() net.Addr { return net.TCPAddrFromAddrPort(s.t.cfg.Address) }

// library makes the library's transport on a stream. Pipelining is off: each message is answered
// before the next.
func (t *transport) library(in chan net.Conn, closed <-chan struct{}) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: stream{t, in, closed}, MaxPool: maxIdle, MaxRPCsInFlight: 1, Timeout: t.cfg.Timeout, Logger: t.cfg.Log})
}

// incarnationError is a member that is another one than it was: its disk was lost.
type incarnationError struct{ want MemberID }

func (e *incarnationError) Error() string {
	return fmt.Sprintf("its state is not that of the member %s: it has lost its disk, or is another device; replace it", e.want)
}

// toldError is an error that the peer has sent as its answer.
type toldError struct{ text string }

func (e *toldError) Error() string { return e.text }

// connect opens a connection to a member and begins a request, to which this is the first answer.
func (t *transport) connect(ctx context.Context, q request, at netip.AddrPort) (c *conn, ans *answer, err error) {
	defer func() {
		t.count(func(n *TransportCounters) {
			if n.Dials++; err != nil {
				n.DialErrors++
				err = fmt.Errorf("member %s at %s: %w", q.To.Device, at, err)
			}
		})
	}()
	short, cancel := context.WithTimeout(ctx, min(handshakeTime, t.cfg.Timeout))
	defer cancel()
	nc, err := t.cfg.Dial(short, at)
	if err != nil {
		return nil, nil, err
	}
	c = t.newConn(nc, true)
	if !t.track(c) {
		_ = nc.Close()
		return nil, nil, ErrStopped
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if ans, err = c.greet(q, short, ctx); err != nil {
		_ = c.Close()
	}
	return c, ans, err
}

// ask makes a request and reads the body of the answer into v, nil: not. A change waits for a
// majority, and has the time of the context.
func (t *transport) ask(ctx context.Context, q request, at netip.AddrPort, entry []byte, v any) (*answer, error) {
	c, ans, err := t.connect(ctx, q, at)
	if err == nil {
		defer c.Close()
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	}
	if err == nil && q.Do == doChange {
		if err = writeBytes(c, entry); err == nil {
			ans, err = c.answer()
		}
	}
	var told *toldError
	t.count(func(c *TransportCounters) {
		if c.RequestsOut++; err != nil && !errors.As(err, &told) {
			c.Errors++
		}
	})
	if err == nil && v != nil {
		err = json.Unmarshal(ans.Body, v)
	}
	return ans, err
}

// probe returns the state and the incarnation of a device.
func (t *transport) probe(ctx context.Context, device netip.Addr, at netip.AddrPort) (*answer, error) {
	return t.ask(ctx, request{Do: doStatus, To: MemberID{Device: device}}, at, nil, nil)
}
