package cluster

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// report is what a member says of itself.
type report struct {
	ID          string        `json:"id"`
	State       string        `json:"state"`
	Term        uint64        `json:"term"`
	Last        uint64        `json:"last"`
	Commit      uint64        `json:"commit"`
	Applied     uint64        `json:"applied"`
	Leader      string        `json:"leader"`
	Members     []netip.Addr  `json:"members"`      // devices
	LastContact time.Duration `json:"last_contact"` // since a word of the leader; -1: never
}

func (n *Node) report() report {
	rep := report{ID: n.self.String(), State: "starting", LastContact: -1}
	n.mu.Lock()
	rep.Applied = n.machine.Index()
	n.mu.Unlock()
	r := n.up()
	if r == nil {
		return rep
	}
	rep.State, rep.Term, rep.Last, rep.Commit = stateName(r.State()), r.CurrentTerm(), r.LastIndex(), r.CommitIndex()
	_, leader := r.LeaderWithID()
	rep.Leader = string(leader)
	for _, m := range n.Members() {
		rep.Members = append(rep.Members, m.Device)
	}
	switch at := r.LastContact(); {
	case r.State() == raft.Leader:
		rep.LastContact = 0
	case !at.IsZero():
		rep.LastContact = time.Since(at)
	}
	return rep
}

func stateName(s raft.RaftState) string {
	switch s {
	case raft.Leader:
		return "leader"
	case raft.Candidate:
		return "candidate"
	case raft.Follower:
		return "follower"
	}
	return "stopped"
}

// ask gets the report of a member.
func (n *Node) ask(ctx context.Context, s raft.Server) (report, error) {
	target, at, err := peerOf(s.ID, s.Address)
	if err != nil {
		return report{}, err
	}
	if target == n.self {
		return n.report(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, memberStatusWait)
	defer cancel()
	return n.askAt(ctx, target, at)
}

func (n *Node) askAt(ctx context.Context, target MemberID, at netip.AddrPort) (report, error) {
	var rep report
	_, err := n.trans.ask(ctx, request{Do: doStatus, To: target}, at, nil, &rep)
	return rep, err
}

// MemberStatus is one member as operators see it.
type MemberStatus struct {
	Device    netip.Addr
	Address   string
	ID        string
	Voter     bool
	Self      bool
	Leader    bool
	Reachable bool
	State     string // as it says: leader, follower, candidate, starting
	Term      uint64
	Last      uint64 // entry of its log
	Commit    uint64
	Applied   uint64
	Contact   time.Duration // since it heard of the leader; -1: never
	Error     string        // why it is not reachable
}

// Leads reports whether this member is the leader, as far as it knows.
func (n *Node) Leads() bool {
	r := n.up()
	return r != nil && r.State() == raft.Leader
}

// Status is the cluster as this member sees it.
type Status struct {
	Cluster uint64
	Self    MemberID
	Leader  netip.Addr // invalid: none is known
	Term    uint64
	Last    uint64
	Commit  uint64
	Applied uint64
	InForce uint64 // at this member's reflector
	Quorum  bool   // changes are accepted here
	Lack    string // why not
	Members []MemberStatus
}

// Here is the cluster as this member sees it without asking the others: of these it has the device
// and the address.
func (n *Node) Here() Status {
	own := n.report()
	st := Status{Self: n.self, Term: own.Term, Last: own.Last, Commit: own.Commit, Applied: own.Applied, Lack: n.Trouble()}
	n.mu.Lock()
	st.Cluster, st.InForce = n.machine.Cluster(), n.done
	n.mu.Unlock()
	st.Quorum = own.Leader != "" && st.Lack == ""
	if id, err := ParseMemberID(own.Leader); err == nil {
		st.Leader = id.Device
	}
	for _, m := range n.Members() {
		st.Members = append(st.Members, MemberStatus{Device: m.Device, Address: m.Address.String()})
	}
	return st
}

// Status asks all members how they are.
func (n *Node) Status(ctx context.Context) Status {
	st := n.Here()
	servers := n.configuration().Servers
	st.Members = make([]MemberStatus, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { st.Members[i] = n.memberStatus(ctx, s) })
	}
	all.Wait()
	slices.SortFunc(st.Members, func(a, b MemberStatus) int { return a.Device.Compare(b.Device) })
	return st
}

func (n *Node) memberStatus(ctx context.Context, s raft.Server) MemberStatus {
	id, _ := ParseMemberID(string(s.ID))
	m := MemberStatus{Device: id.Device, Address: string(s.Address), ID: string(s.ID), Voter: s.Suffrage == raft.Voter, Self: id == n.self, State: "unreachable", Contact: -1}
	rep, err := n.ask(ctx, s)
	if err != nil {
		m.Error = err.Error()
		return m
	}
	m.Reachable, m.State, m.Leader = true, rep.State, rep.State == "leader"
	m.Term, m.Last, m.Commit, m.Applied, m.Contact = rep.Term, rep.Last, rep.Commit, rep.Applied, rep.LastContact
	return m
}
