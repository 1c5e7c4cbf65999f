package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/hashicorp/raft"
)

// Run accepts connections until ctx ends.
func (t *transport) Run(ctx context.Context, listen netip.AddrPort) error {
	l, err := t.cfg.Listen(ctx, listen)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.listener = l
	t.mu.Unlock()
	close(t.ready)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		nc, err := l.Accept()
		if ctx.Err() != nil || t.isShut() {
			if err == nil {
				_ = nc.Close()
			}
			return nil
		}
		if err != nil {
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-ctx.Done():
				return nil
			}
		}
		t.take(ctx, nc)
	}
}

func (t *transport) isShut() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shut
}

// take begins to serve a connection unless there are too many.
func (t *transport) take(ctx context.Context, nc net.Conn) {
	c := &conn{nc: nc, since: time.Now()}
	t.mu.Lock()
	t.counters.Accepted++
	if t.shut || t.accepted >= maxConns || t.pending >= maxPending {
		t.counters.Refused++
		t.mu.Unlock()
		_ = nc.Close()
		return
	}
	t.accepted++
	t.pending++
	t.conns[c] = struct{}{}
	t.running.Add(1)
	t.mu.Unlock()
	go func() {
		defer t.running.Done()
		defer func() {
			t.drop(c)
			t.mu.Lock()
			t.accepted--
			t.mu.Unlock()
		}()
		t.converse(ctx, c)
	}()
}

func (t *transport) converse(ctx context.Context, c *conn) {
	_ = c.nc.SetDeadline(time.Now().Add(handshakeTime))
	from := c.nc.RemoteAddr().String()
	t.mu.Lock()
	_, err := t.guesses.Check(from, time.Now())
	t.mu.Unlock()
	if err != nil {
		err = c.refuse(err.Error())
	} else {
		err = c.welcome(t.cfg.Auth(), t.ours)
	}
	t.mu.Lock()
	t.pending--
	switch {
	case err == nil:
		t.guesses.Right(from)
	case errors.Is(err, errTag):
		t.counters.AuthFailed++
		t.guesses.Failed(from, time.Now())
	case errors.Is(err, errGuesses):
		t.counters.Refused++
	case !closedError(err):
		t.counters.HandshakeBad++
	}
	t.mu.Unlock()
	if err != nil {
		return
	}
	dev := c.peer.Self.Device
	if inc := c.peer.Target.Incarnation; inc != 0 && inc != t.cfg.Self.Incarnation {
		t.cfg.strayed(c.peer.Self)
	}
	t.mu.Lock()
	full := t.devices[dev] >= maxConnsDevice
	if full {
		t.counters.Refused++
	} else {
		t.devices[dev]++
	}
	t.mu.Unlock()
	if full {
		_ = c.write(recordRefusal, []byte("too many connections of this device"))
		return
	}
	defer func() {
		t.mu.Lock()
		if t.devices[dev]--; t.devices[dev] == 0 {
			delete(t.devices, dev)
		}
		t.mu.Unlock()
	}()
	t.requests(ctx, c)
}

// requests serves the requests of a connection one after the other.
func (t *transport) requests(ctx context.Context, c *conn) {
	for ctx.Err() == nil {
		_ = c.nc.SetDeadline(time.Now().Add(idleAccepted))
		typ, b, err := c.read()
		if err != nil {
			var bad *DecodeError
			if errors.As(err, &bad) {
				t.count(func(c *TransportCounters) { c.Malformed++ })
			}
			return
		}
		if typ != recordRequest || len(b) == 0 {
			t.count(func(c *TransportCounters) { c.Malformed++ })
			return
		}
		t.count(func(c *TransportCounters) { c.RequestsIn++ })
		if !c.current(t.cfg.Auth()) {
			t.count(func(c *TransportCounters) { c.AuthFailed++ })
			_ = c.write(recordRefusal, []byte("the certificate is not taken any more"))
			return
		}
		o := op(b[0])
		if why := t.mayAsk(ctx, c, o); why != "" {
			t.count(func(c *TransportCounters) { c.NotMember++ })
			_ = c.nc.SetDeadline(time.Now().Add(t.cfg.Timeout))
			_ = c.write(recordRefusal, []byte(why))
			return
		}
		if err := t.serve(ctx, c, o, &reader{b: b[1:], where: "request"}); err != nil {
			var bad *DecodeError
			if errors.As(err, &bad) {
				t.count(func(c *TransportCounters) { c.Malformed++ })
				_ = c.write(recordRefusal, []byte(printable(bad.Error())))
			}
			return
		}
	}
}

// mayAsk tells why a peer may not ask for something; empty: it may.
func (t *transport) mayAsk(ctx context.Context, c *conn, o op) string {
	cluster, fresh := t.cfg.state()
	switch {
	case o == opStatus:
		return ""
	case o.consensus() && c.peer.Target != t.cfg.Self:
		return "this member has lost its state since: replace it"
	case cluster != 0 && c.peer.Cluster != 0 && cluster != c.peer.Cluster:
		return "this member is of another cluster"
	case o.consensus() && fresh:
		return "" // it was given our incarnation: by the first start, or by an operator
	case t.cfg.member(c.peer.Self):
	case o.leading() && t.cfg.leads(ctx, c.peer.Self): // it became a member while this one was away
	case o.voting() && t.cfg.stands(c.peer.Self): // likewise, and the others are gone
	default:
		return "the sender is no member of this cluster"
	}
	return ""
}

// serve does what a request asks for and answers.
func (t *transport) serve(ctx context.Context, c *conn, o op, r *reader) error {
	if !o.consensus() {
		_ = c.nc.SetDeadline(time.Time{})
		answer, err := t.cfg.serve(ctx, c.peer.Self, o, r)
		var bad *DecodeError
		if errors.As(err, &bad) {
			return err
		}
		return t.respond(c, answer, err)
	}
	q := decodeRPC(o, r)
	if err := r.end(); err != nil {
		return err
	}
	if o.voting() {
		t.present(c.peer.Self, q)
	}
	answers := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{Command: q, RespChan: answers}
	if install, ok := q.(*raft.InstallSnapshotRequest); ok {
		rpc.Reader = &chunkReader{c: c, left: install.Size, timeout: t.cfg.Timeout}
		if index, term := t.cfg.applied(); install.LastLogIndex <= index && install.Term >= term {
			return t.decline(c, install, rpc.Reader)
		}
	}
	if err := t.hand(rpc); err != nil {
		return err
	}
	select {
	case a := <-answers:
		b, err := encodeReply(a.Response)
		if a.Error != nil {
			b, err = nil, a.Error
		}
		return t.respond(c, b, err)
	case <-t.closed:
		return ErrStopped
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
func (t *transport) decline(c *conn, q *raft.InstallSnapshotRequest, data io.Reader) error {
	if _, err := io.Copy(io.Discard, data); err != nil {
		return err
	}
	b, err := encodeReply(&raft.InstallSnapshotResponse{Term: q.Term, Success: true})
	return t.respond(c, b, err)
}

// hand gives a request to Raft, heartbeats on the fast path.
func (t *transport) hand(rpc raft.RPC) error {
	if q, ok := rpc.Command.(*raft.AppendEntriesRequest); ok && q.Term != 0 && q.PrevLogEntry == 0 && q.PrevLogTerm == 0 &&
		len(q.Entries) == 0 && q.LeaderCommitIndex == 0 && len(q.RPCHeader.Addr) > 0 {
		t.mu.Lock()
		fast := t.heartbeat
		t.mu.Unlock()
		if fast != nil {
			fast(rpc)
			return nil
		}
	}
	select {
	case t.consume <- rpc:
		return nil
	case <-t.closed:
		return ErrStopped
	}
}

func (t *transport) respond(c *conn, answer []byte, err error) error {
	_ = c.nc.SetDeadline(time.Now().Add(t.cfg.Timeout))
	if err != nil {
		text := err.Error()
		return c.write(recordResponse, []byte{1}, []byte(text[:min(len(text), 2048)]))
	}
	return c.write(recordResponse, []byte{0}, answer)
}

// chunkReader gives the bytes of a snapshot that follow its request.
type chunkReader struct {
	c       *conn
	left    int64
	chunk   []byte
	timeout time.Duration
}

func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.chunk) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		_ = r.c.nc.SetDeadline(time.Now().Add(r.timeout + 10*time.Second))
		typ, b, err := r.c.read()
		switch {
		case err != nil:
			return 0, err
		case typ != recordChunk || len(b) == 0 || int64(len(b)) > r.left:
			r.left = 0
			return 0, broken("snapshot", "a record of type %d with %d bytes, %d are left", typ, len(b), r.left)
		}
		r.chunk, r.left = b, r.left-int64(len(b))
	}
	n := copy(p, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}
