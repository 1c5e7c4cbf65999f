package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// errNoAnswer is the error of an attempt whose outcome is not known.
var errNoAnswer = errors.New("no answer of the leader")

// atLeader calls here if this member leads, and ask if another one does. It repeats an attempt that
// changed nothing (ErrNoLeader) or whose outcome is not known (errNoAnswer) while a leader may come
// soon. In the end the error is ErrNoLeader if nothing was changed, else ErrUncertain.
func (n *Node) atLeader(ctx context.Context, here func(context.Context, *raft.Raft) error, ask func(context.Context, *raft.Raft, MemberID, netip.AddrPort) error) error {
	ctx, cancel := context.WithTimeout(ctx, changePatience*n.patience())
	defer cancel()
	lost := false // an answer was, maybe
	for {
		err := n.attempt(ctx, here, ask)
		lost = lost || errors.Is(err, errNoAnswer)
		switch {
		case !errors.Is(err, errNoAnswer) && !errors.Is(err, ErrNoLeader):
			return err
		case n.worthWaiting() && pause(ctx, n.cfg.Heartbeat/10):
			n.count(func(c *Counters) { c.Repeated++ })
		case lost:
			return fmt.Errorf("%w: %s (%v)", ErrUncertain, n.lack(), err)
		default:
			return n.noLeader(err)
		}
	}
}

func (n *Node) attempt(ctx context.Context, here func(context.Context, *raft.Raft) error, ask func(context.Context, *raft.Raft, MemberID, netip.AddrPort) error) error {
	r := n.up()
	if r == nil {
		return n.noLeader(errors.New("the member is starting"))
	}
	addr, id := r.LeaderWithID()
	if string(id) == n.self.String() {
		return here(ctx, r)
	}
	target, at, err := peerOf(id, addr)
	if err != nil {
		return n.noLeader(errors.New("no leader is known"))
	}
	err = ask(ctx, r, target, at)
	var told *toldError
	switch {
	case err == nil:
	case !errors.As(err, &told) || told.text == ErrUncertain.Error():
		err = fmt.Errorf("%w: %w", errNoAnswer, err)
	case told.text == raft.ErrNotLeader.Error(), strings.HasPrefix(told.text, ErrNoLeader.Error()):
		err = n.noLeader(err)
	}
	return err
}

// Change makes a change and returns when it is committed and in force at this
// member. The error is a *Refusal of the cluster, ErrNoLeader (nothing was changed)
// or ErrUncertain, wrapped. ID, Since and Member of the entry are set here.
func (n *Node) Change(ctx context.Context, e Entry) (Result, error) {
	select {
	case n.changes <- struct{}{}:
		defer func() { <-n.changes }()
	default:
		return Result{}, refuse(CodeLimit, "%d changes are under way at this member already", cap(n.changes))
	}
	e.ID, e.Member = RequestID{n.session, n.number.Add(1)}, n.self.Device
	n.mu.Lock()
	e.Since = n.machine.Index()
	n.mu.Unlock()
	data, err := e.Encode()
	if err != nil {
		return Result{}, err
	}
	var res Result
	err = n.atLeader(ctx, func(ctx context.Context, r *raft.Raft) (err error) {
		res, err = n.lead(ctx, r, data)
		return err
	}, func(ctx context.Context, _ *raft.Raft, target MemberID, at netip.AddrPort) error {
		n.count(func(c *Counters) { c.Forwarded++ })
		ctx, cancel := context.WithTimeout(ctx, n.patience()+time.Duration(len(data))*time.Second/bytesPerSecond)
		defer cancel()
		_, err := n.trans.ask(ctx, request{Do: doChange, To: target}, at, data, &res)
		if told := (*toldError)(nil); errors.As(err, &told) && told.text != ErrUncertain.Error() {
			err = n.noLeader(err) // it was refused before it was in the log
		}
		return err
	})
	switch {
	case err == nil && res.Refused != nil:
		n.count(func(c *Counters) { c.Refused++ })
		return res, res.Refused
	case errors.Is(err, ErrUncertain):
		n.count(func(c *Counters) { c.Uncertain++ })
		return res, err
	case err != nil:
		n.count(func(c *Counters) { c.Unavailable++ })
		return res, err
	}
	n.count(func(c *Counters) { c.Changes++ })
	wait, cancel := context.WithTimeout(ctx, publishWait)
	defer cancel()
	_ = n.inForce(wait, res.Index) // it is committed; it comes into force when this member has caught up
	return res, nil
}

// lead has the entry committed by this member, which is the leader, as far as it knows.
func (n *Node) lead(ctx context.Context, r *raft.Raft, data []byte) (Result, error) {
	if err := n.fit(); err != nil {
		return Result{}, n.noLeader(err)
	}
	f := r.Apply(data, n.patience())
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		switch {
		case err == nil:
			return f.Response().(Result), nil
		case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout):
			return Result{}, n.noLeader(err)
		}
		return Result{}, fmt.Errorf("%w: %w", errNoAnswer, err)
	case <-ctx.Done():
		return Result{}, fmt.Errorf("%w: %w", errNoAnswer, ctx.Err())
	}
}

// worthWaiting reports whether a leader may come soon: it was lost not long ago.
func (n *Node) worthWaiting() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view.leader != "" || time.Since(n.view.since) < n.patience()
}
