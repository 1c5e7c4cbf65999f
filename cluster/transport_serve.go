package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/hashicorp/raft"

	"github.com/openinof/inof/inof/wire"
)

// Serve accepts connections until ctx ends or the transport is closed.
func (t *transport) Serve(ctx context.Context, l net.Listener) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	if !t.track(l) {
		_ = l.Close()
	}
	for {
		nc, err := l.Accept()
		select {
		case <-t.closed:
		case <-ctx.Done():
		default:
			if err == nil {
				t.take(ctx, nc)
			} else {
				pause(ctx, 100*time.Millisecond)
			}
			continue
		}
		if err == nil {
			_ = nc.Close()
		}
		return
	}
}

// sourceOf is the address of a peer (an IPv6 /64); invalid where connections have none.
func sourceOf(nc net.Conn) netip.Prefix {
	at, err := netip.ParseAddrPort(nc.RemoteAddr().String())
	if err != nil {
		return netip.Prefix{}
	}
	bits := 64
	if at.Addr().Unmap().Is4() {
		bits = 32
	}
	p, _ := at.Addr().Unmap().WithZone("").Prefix(bits)
	return p
}

// take begins to serve a connection unless there are too many.
func (t *transport) take(ctx context.Context, nc net.Conn) {
	c, from := t.newConn(nc, false), sourceOf(nc)
	t.mu.Lock()
	t.counters.Accepted++
	if t.shut || t.accepted >= maxConns || t.waiting >= maxPending || from.IsValid() && t.pending[from] >= maxPendingFrom {
		t.counters.Refused++
		t.mu.Unlock()
		_ = nc.Close()
		return
	}
	t.accepted++
	t.waiting++
	t.pending[from]++
	t.conns[c] = struct{}{}
	t.running.Add(1)
	t.mu.Unlock()
	go func() {
		defer t.running.Done()
		defer func() {
			_ = c.Close()
			t.mu.Lock()
			t.accepted--
			t.mu.Unlock()
		}()
		t.converse(ctx, c, from)
	}()
}

// Why a peer is refused.
var (
	errNotMember = errors.New("is no member of this cluster, as far as the device knows that it asks (one that is to join needs all members in its reflector.cluster.members)")
	errFull      = errors.New("too many connections of this device")
)

// converse serves one connection.
func (t *transport) converse(ctx context.Context, c *conn, from netip.Prefix) {
	_ = c.raw.Conn.SetDeadline(time.Now().Add(handshakeTime))
	q, err := t.welcome(c)
	dev := c.peer.Device
	t.mu.Lock()
	t.waiting--
	if t.pending[from]--; t.pending[from] == 0 {
		delete(t.pending, from)
	}
	if err == nil && t.devices[dev] >= maxConnsDevice {
		err = errFull
	}
	if err == nil {
		t.devices[dev]++
	}
	t.mu.Unlock()
	if err != nil {
		t.refuse(c, err)
		if q != nil {
			_ = c.reply(nil, err)
		}
		return
	}
	defer func() {
		t.mu.Lock()
		if t.devices[dev]--; t.devices[dev] == 0 {
			delete(t.devices, dev)
		}
		t.mu.Unlock()
	}()
	c.raw.pace(t.cfg.Timeout, q.Do == doRaft)
	if q.Do == doRaft {
		if c.reply(nil, nil) == nil {
			t.serveRaft(c)
		}
		return
	}
	t.count(func(c *TransportCounters) { c.RequestsIn++ })
	if err := t.serve(ctx, c, q); err != nil {
		t.refuse(c, err)
		_ = c.reply(nil, err)
	}
}

// welcome returns what a peer asks for, also with the error that says why it may not.
func (t *transport) welcome(c *conn) (*request, error) {
	if err := c.shake(); err != nil {
		return nil, err
	}
	var q request
	if err := readMessage(c, &q); err != nil {
		return nil, err
	}
	if err := c.identify(q.From); err != nil {
		return &q, err
	}
	return &q, t.mayAsk(&q)
}

// mayAsk returns why a device, which has shown that it is the one it says, may not ask for
// something.
func (t *transport) mayAsk(q *request) error {
	self, from := t.cfg.Self, q.From.Device
	cluster, _ := t.cfg.state()
	switch {
	case from == self.Device:
		return &impostorError{fmt.Sprintf("device id %s is this member's own", from)}
	case q.To.Device != self.Device:
		return fmt.Errorf("this is device %s, not %s", self.Device, q.To.Device)
	case !t.cfg.trusts(from):
		return fmt.Errorf("device %s %w", from, errNotMember)
	case q.Do != doStatus && cluster != 0 && q.Cluster != 0 && cluster != q.Cluster:
		return errors.New("this member is of another cluster")
	}
	if q.To.Incarnation != 0 && q.To != self {
		t.cfg.strayed() // the answer says who is here, and the peer goes no further
	}
	return nil
}

// refuse counts what a peer is refused for, and reports it with the peer's address.
func (t *transport) refuse(c *conn, err error) {
	var bad *DecodeError
	var claim *impostorError
	var protocol *wire.ProtocolError
	n := &t.counters.HandshakeBad
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed):
		return // an end without a reason
	case errors.As(err, &protocol):
		n = &t.counters.AuthFailed
	case errors.Is(err, errNotMember):
		n = &t.counters.NotMember
	case errors.As(err, &claim):
		n = &t.counters.Impostors
	case errors.As(err, &bad):
		n = &t.counters.Malformed
	case errors.Is(err, errFull):
		n = &t.counters.Refused
	}
	t.mu.Lock()
	*n++
	t.mu.Unlock()
	t.cfg.refused(c.raw.RemoteAddr().String(), err)
}

// serve answers a request of our own. An error here is a message that cannot be right.
func (t *transport) serve(ctx context.Context, c *conn, q *request) error {
	var entry []byte
	if q.Do == doChange {
		if err := c.reply(nil, nil); err != nil {
			return nil
		}
		c.raw.limit(maxRecord)
		var err error
		if entry, err = readBytes(c, MaxEntry); err != nil {
			return err
		}
	}
	answer, err := t.cfg.serve(ctx, q, entry)
	if bad := (*DecodeError)(nil); errors.As(err, &bad) {
		return err
	}
	body, failed := json.Marshal(answer)
	_ = c.reply(body, first(err, failed))
	return nil
}

// serveRaft hands to Raft what a member sends over one connection. Each has a transport of the
// library's of its own, so that it is known of every message whose certificate it comes with.
func (t *transport) serveRaft(c *conn) {
	c.raw.limit(maxRecord)
	in := make(chan net.Conn, 1)
	in <- c
	lib := t.library(in, c.closed)
	defer lib.Close()
	lib.SetHeartbeatHandler(func(rpc raft.RPC) { t.hand(c, rpc, true) })
	for {
		select {
		case rpc := <-lib.Consumer():
			t.hand(c, rpc, false)
		case <-c.closed:
			return
		case <-t.closed:
			return
		}
	}
}

// hand hands a message to Raft, a heartbeat on the fast path.
func (t *transport) hand(c *conn, rpc raft.RPC, heartbeat bool) {
	t.count(func(c *TransportCounters) { c.RequestsIn++ })
	index, term := t.cfg.applied()
	err := checkRPC(rpc.Command, c.peer, term)
	if err == nil && !t.cfg.trusts(c.peer.Device) {
		err = fmt.Errorf("device %s %w", c.peer.Device, errNotMember)
	}
	if err = first(err, c.current()); err != nil {
		t.refuse(c, err)
		c.last.Store(true)
		rpc.Respond(nil, err)
		return
	}
	t.present(c.peer, rpc.Command)
	if q, ok := rpc.Command.(*raft.InstallSnapshotRequest); ok {
		c.raw.limit(maxRecord + int(q.Size))
		c.last.Store(true) // the library sends what follows over another connection
		if q.LastLogIndex <= index && q.Term >= term {
			decline(q, rpc)
			return
		}
	}
	t.mu.Lock()
	fast := t.heartbeat
	t.mu.Unlock()
	if heartbeat && fast != nil {
		fast(rpc)
		return
	}
	select {
	case t.consume <- rpc:
	case <-t.closed:
		rpc.Respond(nil, ErrStopped)
	}
}

// present has Raft judge a candidate by its log. A voter must not ask its own list of members,
// which may be older than the candidate (Ongaro, Consensus: bridging theory and practice, section
// 4.1): the vote may be the one without which the cluster has no leader for ever. The library does
// ask, so who has no vote in that list is presented as ourselves. Who may stand at all mayAsk has
// looked at.
func (t *transport) present(from MemberID, q any) {
	if t.cfg.votes(from) {
		return
	}
	switch q := q.(type) {
	case *raft.RequestVoteRequest:
		q.ID = []byte(t.cfg.Self.String())
	case *raft.RequestPreVoteRequest:
		q.ID = []byte(t.cfg.Self.String())
	}
}

// decline takes a snapshot of what is in force here already, and says that it is: the leader began
// to send it before the member had caught up in another way, as one that was removed and added
// again. Raft would go back to it, with the members of then, and count itself as none until they
// change again.
func decline(q *raft.InstallSnapshotRequest, rpc raft.RPC) {
	if _, err := io.Copy(io.Discard, rpc.Reader); err != nil {
		rpc.Respond(nil, err)
		return
	}
	rpc.Respond(&raft.InstallSnapshotResponse{Term: q.Term, Success: true}, nil)
}
