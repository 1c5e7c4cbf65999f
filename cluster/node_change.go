package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// changeState is what is known of a change that was tried.
type changeState struct {
	uncertain bool  // an attempt may be applied yet
	last      error // of the last attempt
}

// Change makes a change and returns when it is committed and in force at this
// member. The error is a *Refusal of the cluster, ErrNoLeader (nothing was changed)
// or ErrUncertain, wrapped. ID and Since of the entry are set here.
func (n *Node) Change(ctx context.Context, e Entry) (Result, error) {
	select {
	case n.changes <- struct{}{}:
		defer func() { <-n.changes }()
	default:
		return Result{}, refuse(CodeLimit, "%d changes are under way at this member already", cap(n.changes))
	}
	e.ID = RequestID{n.session, n.number.Add(1)}
	n.mu.Lock()
	e.Since = n.machine.Index()
	n.mu.Unlock()
	data, err := e.Encode()
	if err != nil {
		return Result{}, err
	}
	res, err := n.try(ctx, data)
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

// try repeats an entry at whoever is the leader until its outcome is known.
func (n *Node) try(ctx context.Context, data []byte) (Result, error) {
	var st changeState
	ctx, cancel := context.WithTimeout(ctx, changePatience*n.patience())
	defer cancel()
	for first := true; ; first = false {
		if !first {
			n.count(func(c *Counters) { c.Repeated++ })
		}
		res, err := n.attempt(ctx, data, &st)
		if err == nil {
			return res, nil
		}
		st.last = err
		if !n.worthWaiting() || !pause(ctx, n.cfg.Heartbeat/10) {
			return Result{}, st.failed(n)
		}
	}
}

// failed says how the change ended, as far as it is known.
func (st *changeState) failed(n *Node) error {
	if st.uncertain {
		return fmt.Errorf("%w: %s (%v)", ErrUncertain, n.lack(), st.last)
	}
	return n.noLeader(st.last)
}

// attempt tries an entry once.
func (n *Node) attempt(ctx context.Context, data []byte, st *changeState) (Result, error) {
	r := n.up()
	if r == nil {
		return Result{}, errors.New("the member is starting")
	}
	addr, id := r.LeaderWithID()
	switch {
	case id == "":
		return Result{}, errors.New("no leader is known")
	case string(id) == n.self.String():
		return n.lead(ctx, r, data, st)
	}
	target, at, err := peerOf(id, addr)
	if err != nil {
		return Result{}, err
	}
	n.count(func(c *Counters) { c.Forwarded++ })
	ctx, cancel := context.WithTimeout(ctx, n.patience()+time.Duration(len(data))*time.Second/bytesPerSecond)
	defer cancel()
	b, err := n.trans.request(ctx, target, at, []byte{byte(opChange)}, data)
	if err != nil {
		var told *toldError
		if !errors.As(err, &told) || told.text == ErrUncertain.Error() {
			st.uncertain = true // the answer was lost, maybe
		}
		return Result{}, err
	}
	var res Result
	if err := json.Unmarshal(b, &res); err != nil {
		st.uncertain = true
		return Result{}, fmt.Errorf("answer of the leader %s: %w", target.Device, err)
	}
	return res, nil
}

// lead has the entry committed by this member, which is the leader, as far as it knows.
func (n *Node) lead(ctx context.Context, r *raft.Raft, data []byte, st *changeState) (Result, error) {
	if err := n.fit(); err != nil {
		return Result{}, err
	}
	f := r.Apply(data, n.patience())
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		if err == nil {
			return f.Response().(Result), nil
		}
		st.uncertain = st.uncertain || !errors.Is(err, raft.ErrNotLeader) && !errors.Is(err, raft.ErrEnqueueTimeout) &&
			!errors.Is(err, raft.ErrLeadershipTransferInProgress)
		return Result{}, err
	case <-ctx.Done():
		st.uncertain = true
		return Result{}, ctx.Err()
	}
}

// worthWaiting reports whether a leader may come soon: it was lost not long ago.
func (n *Node) worthWaiting() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view.leader != "" || time.Since(n.view.since) < n.patience()
}
