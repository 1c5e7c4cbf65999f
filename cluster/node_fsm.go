package cluster

import (
	"context"
	"io"

	"github.com/hashicorp/raft"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// fsm is a Node as Raft sees it: the one that applies.
type fsm Node

// Apply implements raft.FSM.
func (f *fsm) Apply(l *raft.Log) any {
	n := (*Node)(f)
	n.mu.Lock()
	before := n.machine.Index()
	res, edit := n.machine.Apply(l.Index, l.Data)
	e := n.machine.last
	n.counters.Applied++
	n.cluster.Store(n.machine.Cluster())
	if edit.Index == l.Index {
		n.publish(edit)
	}
	n.mu.Unlock()
	if l.Index > before {
		n.cfg.Applied(Applied{Entry: e, Result: res})
	}
	return res
}

// Snapshot implements raft.FSM.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.machine.Snapshot()
	if err != nil {
		return nil, err
	}
	return persister{s}, nil
}

// Restore implements raft.FSM: a snapshot of the leader takes the place of what this
// member has, unless that is further already.
func (f *fsm) Restore(from io.ReadCloser) error {
	defer from.Close()
	m, err := ReadSnapshot(from)
	if err != nil {
		return err
	}
	n := (*Node)(f)
	n.mu.Lock()
	n.counters.Restored++
	further := m.Cluster() != n.machine.Cluster() || m.Index() > n.machine.Index()
	if further {
		n.machine = m
		n.cluster.Store(m.Cluster())
		n.publish(Edit{Index: m.Index(), All: true})
	}
	n.mu.Unlock()
	if further {
		n.cfg.Applied(Applied{Snapshot: true, Result: Result{Index: m.Index()}})
	}
	return nil
}

// persister writes a snapshot to the disk.
type persister struct{ s *Snapshot }

// Persist implements raft.FSMSnapshot.
func (p persister) Persist(sink raft.SnapshotSink) error {
	if err := p.s.Write(sink); err != nil {
		_ = sink.Cancel()
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (persister) Release() {}

// maxFeed is how many edits wait for the reader of the feed one by one; more become
// one whole set.
const maxFeed = 1024

// publish puts an edit into the feed. n.mu is held.
func (n *Node) publish(e Edit) {
	if e.All || len(n.feed) >= maxFeed {
		n.feed = append(n.feed[:0], Edit{Index: e.Index, All: true})
	} else {
		n.feed = append(n.feed, e)
	}
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// Batch is what has been committed since the last one, in order.
type Batch struct {
	Stamp   wire.ClusterStamp // the state after it
	Members []Member          // of the cluster at present
	Set     *zone.Set         // everything anew; nil: Edits
	Edits   []Edit
}

// batchEdits bounds a batch: whoever brings it into force is busy meanwhile.
const batchEdits = 32

// Next waits for what is committed next, which it notes on the disk as in force. The reader
// says with Done that it is.
func (n *Node) Next(ctx context.Context) (Batch, error) {
	for {
		n.mu.Lock()
		if len(n.feed) > 0 {
			b := n.take()
			further := b.Stamp.Index > n.done
			n.mu.Unlock()
			if further {
				if err := n.cfg.Storage.setInForce(b.Stamp.Index); err != nil {
					n.count(func(c *Counters) { c.DiskErrors++ })
				}
			}
			b.Members = n.Members()
			return b, nil
		}
		n.mu.Unlock()
		select {
		case <-n.kick:
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
	}
}

// take takes the first edits from the feed. n.mu is held.
func (n *Node) take() Batch {
	if n.feed[0].All {
		set := n.machine.Set() // all that follows in the feed is in it
		n.feed = n.feed[:0]
		return Batch{Stamp: n.stamp(), Set: &set}
	}
	k := min(len(n.feed), batchEdits)
	b := Batch{Edits: append([]Edit(nil), n.feed[:k]...)}
	n.feed = append(n.feed[:0], n.feed[k:]...)
	b.Stamp = wire.ClusterStamp{ID: n.machine.Cluster(), Index: b.Edits[k-1].Index}
	return b
}

// Done says that everything up to an index is in force.
func (n *Node) Done(index uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if index > n.done {
		n.done = index
		close(n.applied)
		n.applied = make(chan struct{})
	}
}

// inForce waits until an index is in force here.
func (n *Node) inForce(ctx context.Context, index uint64) error {
	for {
		n.mu.Lock()
		reached, changed := n.done >= index, n.applied
		n.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
