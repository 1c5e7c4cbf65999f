package cluster

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"
)

// serve answers requests of other members, except those of Raft.
func (n *Node) serve(ctx context.Context, q *request, entry []byte) (any, error) {
	switch {
	case q.Do == doChange:
		return n.serveChange(ctx, q.From, entry)
	case q.Do == doStatus:
		return n.report(), nil
	case q.Do == doConfigure && q.Members != nil:
		if err := n.configureHere(ctx, *q.Members); err != nil {
			return nil, err
		}
		return n.up().LastIndex(), nil
	}
	return nil, broken("request", "%.40q is unknown", q.Do)
}

func (n *Node) serveChange(ctx context.Context, from MemberID, data []byte) (any, error) {
	e, err := DecodeEntry(data)
	if err != nil {
		return nil, err
	}
	e.Member = from.Device // whatever it says
	if data, err = e.Encode(); err != nil {
		return nil, err
	}
	r := n.up()
	if r == nil || r.State() != raft.Leader {
		return nil, raft.ErrNotLeader
	}
	n.count(func(c *Counters) { c.Served++ })
	ctx, cancel := context.WithTimeout(ctx, n.patience())
	defer cancel()
	res, err := n.lead(ctx, r, data)
	if errors.Is(err, errNoAnswer) {
		return nil, ErrUncertain
	}
	return res, err
}
