package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/openinof/inof/zone"
)

// view is what operators were told of the leader.
type view struct {
	leader string
	since  time.Time // of the leader, or of its loss
	lost   bool      // the loss was told
}

// watch follows the leader and the members it reaches.
func (n *Node) watch(ctx context.Context) {
	n.mu.Lock()
	n.view.since = time.Now()
	n.mu.Unlock()
	seen := make(chan raft.Observation, 64)
	observer := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.LeaderObservation, raft.RaftState, raft.FailedHeartbeatObservation, raft.ResumedHeartbeatObservation:
			return true
		}
		return false
	})
	n.raft.RegisterObserver(observer)
	defer n.raft.DeregisterObserver(observer)
	tick := time.NewTicker(max(n.cfg.Heartbeat/2, minTimer))
	defer tick.Stop()
	failing := map[raft.ServerID]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-seen:
			n.observed(o, failing)
		case <-tick.C:
		}
		n.look(time.Now())
		n.lookAtMembers()
	}
}

// lookAtMembers tells the reader of the feed who the members are, when that is new.
func (n *Node) lookAtMembers() {
	members := n.Members()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.machine.Cluster() == 0 || slices.Equal(members, n.told) {
		return
	}
	n.told = members
	n.publish(Edit{Index: n.machine.Index()})
}

// duties forms the cluster at its first start and promotes members that have caught
// up; both wait for others.
func (n *Node) duties(ctx context.Context) {
	tick := time.NewTicker(max(n.cfg.Heartbeat/2, minTimer))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n.form(ctx)
		n.inquire(ctx, n.raft)
		if n.raft.State() == raft.Leader {
			n.genesis()
			n.promote(ctx, n.raft)
		}
	}
}

// observed tells of members that the leader does not reach, and reaches again.
func (n *Node) observed(o raft.Observation, failing map[raft.ServerID]bool) {
	switch d := o.Data.(type) {
	case raft.FailedHeartbeatObservation:
		if !failing[d.PeerID] && n.isServer(d.PeerID) {
			failing[d.PeerID] = true
			n.tell("unreachable", fmt.Sprintf("member %s of the cluster does not answer the leader", device(d.PeerID)), "member", device(d.PeerID))
		}
	case raft.ResumedHeartbeatObservation:
		if failing[d.PeerID] {
			delete(failing, d.PeerID)
			n.tell("reachable", fmt.Sprintf("member %s of the cluster answers again", device(d.PeerID)), "member", device(d.PeerID))
		}
	case raft.RaftState:
		clear(failing) // whoever leads now tells of them
	}
}

func (n *Node) tell(change, text string, more ...string) {
	e := Event{Text: text, Fields: map[string]string{"change": change}}
	for i := 0; i+1 < len(more); i += 2 {
		e.Fields[more[i]] = more[i+1]
	}
	n.cfg.Event(e)
}

// look compares who leads with what was told.
func (n *Node) look(now time.Time) {
	_, id := n.raft.LeaderWithID()
	leader := string(id)
	n.mu.Lock()
	v := &n.view
	changed := leader != v.leader
	if changed {
		if v.leader != "" || leader == "" {
			v.since = now
		}
		v.leader = leader
		if leader != "" {
			n.counters.LeaderChanges++
		}
	}
	lost := leader == "" && !v.lost && now.Sub(v.since) > 2*(n.cfg.Heartbeat+n.cfg.Election) && len(n.configuration().Servers) > 0
	if lost {
		v.lost = true
		n.counters.QuorumLost++
	}
	back := leader != "" && v.lost
	if leader != "" {
		v.lost, n.strayed = false, false
	}
	n.mu.Unlock()
	switch {
	case lost:
		n.tell("no-leader", "this member reaches no majority of its cluster: no zone change is accepted here; host and fault reflection goes on")
	case changed && leader != "":
		text := fmt.Sprintf("the leader of the cluster is %s, term %d", device(id), n.raft.CurrentTerm())
		if back {
			text += ": zone changes are accepted again"
		}
		n.tell("leader", text, "leader", device(id))
	}
}

// form starts a cluster that has never been: the member with the least device id does
// it once all the others answer and have no state either. So a member that has lost
// its disk never begins a second cluster beside the first.
func (n *Node) form(ctx context.Context) {
	if len(n.configuration().Servers) > 0 {
		return
	}
	members := slices.SortedFunc(slices.Values(n.cfg.Members), func(a, b Member) int { return a.Device.Compare(b.Device) })
	waiting := fmt.Sprintf("it waits for %s to form it, or to be added", members[0].Device)
	if members[0].Device == n.self.Device {
		var servers []raft.Server
		if servers, waiting = n.muster(ctx, members); waiting == "" {
			err := n.raft.BootstrapCluster(raft.Configuration{Servers: servers}).Error()
			switch {
			case err == nil:
				n.tell("formed", fmt.Sprintf("the cluster is formed with %d member(s)", len(servers)))
			case errors.Is(err, raft.ErrCantBootstrap):
			default:
				waiting = err.Error()
			}
		}
	}
	n.mu.Lock()
	n.waiting = waiting
	n.mu.Unlock()
}

// muster asks all members of the configuration whether they are new; if not all are,
// it says what is waited for.
func (n *Node) muster(ctx context.Context, members []Member) (servers []raft.Server, waiting string) {
	var lacking []string
	for _, m := range members {
		id := n.self
		if m.Device != n.self.Device {
			peer, err := n.trans.probe(ctx, m.Device, m.Address)
			switch {
			case err != nil:
				lacking = append(lacking, fmt.Sprintf("the first start needs all members: %v", err))
				continue
			case !peer.Fresh:
				return nil, fmt.Sprintf("%s has a cluster already: have this member added or replaced there", m.Device)
			}
			id = peer.From
		}
		servers = append(servers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(id.String()), Address: raft.ServerAddress(m.Address.String())})
	}
	return servers, strings.Join(lacking, "; ")
}

// genesis makes the first entry: identity, rules and first zones.
func (n *Node) genesis() {
	n.mu.Lock()
	formed := n.machine.Cluster() != 0
	n.mu.Unlock()
	if formed {
		return
	}
	// What the first entry is may be in the log of a former leader, not yet applied.
	if n.raft.Barrier(n.patience()).Error() != nil {
		return
	}
	n.mu.Lock()
	formed = n.machine.Cluster() != 0
	n.mu.Unlock()
	if formed {
		return
	}
	set, err := n.seed()
	var data []byte
	if err == nil {
		e := Entry{Kind: KindGenesis, Member: n.self.Device, ID: RequestID{n.session, n.number.Add(1)}, Cluster: random(), Rules: n.rules(), Set: set, Zones: set.Zones}
		data, err = e.Encode()
	}
	if err == nil {
		f := n.raft.Apply(data, n.patience())
		if f.Error() != nil {
			return
		}
		if res, ok := f.Response().(Result); ok && res.Refused != nil {
			err = res.Refused
		}
	}
	// Without its first zones a cluster would end every pair of hosts in the fabric.
	n.mu.Lock()
	told := n.unseeded
	if n.unseeded = ""; err != nil {
		n.unseeded = err.Error()
	}
	again := told == n.unseeded
	n.mu.Unlock()
	if err != nil && !again {
		n.tell("seed", fmt.Sprintf("the cluster does not begin: its first zones cannot be used: %v", err))
	}
}

func (n *Node) seed() (zone.Set, error) {
	if n.cfg.Seed == nil {
		return zone.Set{}, nil
	}
	set, err := n.cfg.Seed()
	if err == nil {
		err = n.rules().Check(set)
	}
	return set.Canonical(), err
}

// rules are the own ones with every default written out: an entry must mean the same
// to versions with other defaults.
func (n *Node) rules() zone.Rules {
	r := n.cfg.Rules
	if r.MaxZones == 0 {
		r.MaxZones = zone.DefaultMaxZones
	}
	if r.MaxMembers == 0 {
		r.MaxMembers = zone.DefaultMaxMembers
	}
	return r
}
