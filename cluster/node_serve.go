package cluster

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/raft"
)

// serve answers requests of other members that are none of Raft.
func (n *Node) serve(ctx context.Context, _ MemberID, o op, r *reader) ([]byte, error) {
	switch o {
	case opChange:
		return n.serveChange(ctx, r.b)
	case opStatus:
		return json.Marshal(n.report())
	case opConfigure:
		var q configure
		if err := json.Unmarshal(r.b, &q); err != nil {
			return nil, broken("request", "%v", err)
		}
		if err := n.configureHere(ctx, q); err != nil {
			return nil, err
		}
		return json.Marshal(n.up().LastIndex())
	}
	return nil, broken("request", "%d is unknown", o)
}

func (n *Node) serveChange(ctx context.Context, data []byte) ([]byte, error) {
	if _, err := DecodeEntry(data); err != nil {
		return nil, err
	}
	r := n.up()
	if r == nil || r.State() != raft.Leader {
		return nil, raft.ErrNotLeader
	}
	n.count(func(c *Counters) { c.Served++ })
	ctx, cancel := context.WithTimeout(ctx, n.patience())
	defer cancel()
	var st changeState
	res, err := n.lead(ctx, r, data, &st)
	switch {
	case err != nil && st.uncertain:
		return nil, ErrUncertain
	case err != nil:
		return nil, err
	}
	return json.Marshal(res)
}
