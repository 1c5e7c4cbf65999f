package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// What changes of members fail of.
var (
	ErrMemberExists   = errors.New("it is a member already")
	ErrMemberNotFound = errors.New("there is no such member")
	ErrMemberLimit    = fmt.Errorf("a cluster has at most %d members", MaxMembers)
	ErrMemberState    = errors.New("it cannot join")
)

// configure is a change of members.
type configure struct {
	Do      string         `json:"do"` // add, remove or replace
	Device  netip.Addr     `json:"device"`
	Address netip.AddrPort `json:"address"`
}

// Add makes the device that listens at an address a member: first without a vote,
// and with one when it has caught up.
func (n *Node) Add(ctx context.Context, device netip.Addr, address netip.AddrPort) error {
	return n.configure(ctx, configure{"add", device, address})
}

// Remove ends the membership of a device. What it has on its disk stays there.
func (n *Node) Remove(ctx context.Context, device netip.Addr) error {
	return n.configure(ctx, configure{Do: "remove", Device: device})
}

// Replace puts the device as it is now, with an empty disk or at another address, in
// the place of the member that it was.
func (n *Node) Replace(ctx context.Context, device netip.Addr, address netip.AddrPort) error {
	return n.configure(ctx, configure{"replace", device, address})
}

// configure has the leader change the members.
func (n *Node) configure(ctx context.Context, q configure) error {
	r := n.up()
	if r == nil {
		return fmt.Errorf("%w: the member is starting", ErrNoLeader)
	}
	addr, id := r.LeaderWithID()
	if string(id) == n.self.String() {
		return n.configureHere(ctx, q)
	}
	target, at, err := peerOf(id, addr)
	if err != nil {
		return n.noLeader(errors.New("no leader is known"))
	}
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	reply, err := n.trans.request(ctx, target, at, []byte{byte(opConfigure)}, body)
	if err == nil {
		n.follow(ctx, r, q, reply)
		return nil
	}
	var told *toldError
	if errors.As(err, &told) {
		if told.text == raft.ErrNotLeader.Error() {
			return n.noLeader(err)
		}
		for _, kind := range []error{ErrMemberExists, ErrMemberNotFound, ErrMemberLimit, ErrMemberState, ErrNoLeader} {
			if len(told.text) >= len(kind.Error()) && told.text[:len(kind.Error())] == kind.Error() {
				return fmt.Errorf("%w%s", kind, told.text[len(kind.Error()):])
			}
		}
	}
	return err
}

// follow waits until this member has the entry of a change that the leader has made, so
// that who asks here next is shown it. The change stands whatever comes of that, and
// one that was removed hears no more.
func (n *Node) follow(ctx context.Context, r *raft.Raft, q configure, reply []byte) {
	var index uint64
	if json.Unmarshal(reply, &index) != nil || (q.Device == n.self.Device && q.Do == "remove") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, n.patience())
	defer cancel()
	for r.LastIndex() < index && pause(ctx, n.cfg.Heartbeat/10) {
	}
}

// configureHere does it as the leader.
func (n *Node) configureHere(ctx context.Context, q configure) error {
	select {
	case n.configuring <- struct{}{}:
		defer func() { <-n.configuring }()
	case <-ctx.Done():
		return fmt.Errorf("another change of members is under way: %w", ctx.Err())
	}
	r := n.up()
	if r == nil || r.State() != raft.Leader {
		return fmt.Errorf("%w: the leader has changed; try again", ErrNoLeader)
	}
	servers := n.configuration().Servers
	present := slices.DeleteFunc(slices.Clone(servers), func(s raft.Server) bool {
		id, err := ParseMemberID(string(s.ID))
		return err != nil || id.Device != q.Device
	})
	switch q.Do {
	case "remove":
		return n.removeHere(r, q, servers, present)
	case "add", "replace":
		if q.Do == "add" && len(present) == 0 && len(servers) >= MaxMembers {
			return fmt.Errorf("%w", ErrMemberLimit)
		}
		if q.Do == "replace" && len(present) == 0 {
			return fmt.Errorf("%w: %s; add it", ErrMemberNotFound, q.Device)
		}
		return n.admit(ctx, r, q, present)
	}
	return broken("request", "%q is none of add, remove, replace", q.Do)
}

func (n *Node) removeHere(r *raft.Raft, q configure, all, gone []raft.Server) error {
	switch {
	case len(gone) == 0:
		return fmt.Errorf("%w: %s", ErrMemberNotFound, q.Device)
	case len(gone) == len(all):
		return fmt.Errorf("%w: %s is the last member", ErrMemberState, q.Device)
	}
	for _, s := range gone {
		if err := r.RemoveServer(s.ID, 0, n.patience()).Error(); err != nil {
			return fmt.Errorf("removing %s: %w", q.Device, err)
		}
	}
	return nil
}

// admit looks who is at an address and makes that a member without a vote.
func (n *Node) admit(ctx context.Context, r *raft.Raft, q configure, present []raft.Server) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	var id MemberID
	if q.Device == n.self.Device {
		id = n.self // its address changes
	} else {
		peer, err := n.trans.probe(ctx, q.Device, q.Address)
		if err != nil {
			return fmt.Errorf("%w: nothing was changed: %w", ErrMemberState, err)
		}
		own, _ := n.helloState()
		switch {
		case !peer.Fresh && peer.Cluster == 0:
			return fmt.Errorf("%w: %s has a log of which nothing was ever in force, of this cluster or another one; stop it, move its cluster directory away and start it", ErrMemberState, q.Device)
		case !peer.Fresh && peer.Cluster != own:
			return fmt.Errorf("%w: %s has the state of another cluster (%016x); stop it, move its cluster directory away and start it", ErrMemberState, q.Device, peer.Cluster)
		}
		id = peer.Self
	}
	server, address := raft.ServerID(id.String()), raft.ServerAddress(q.Address.String())
	for _, s := range present {
		switch {
		case s.ID == server && s.Address == address && s.Suffrage == raft.Voter:
			return fmt.Errorf("%w: %s at %s", ErrMemberExists, q.Device, q.Address)
		case s.ID == server && s.Suffrage == raft.Voter:
			return r.AddVoter(server, address, 0, n.patience()).Error() // its address changes
		case s.ID != server && q.Do == "add":
			return fmt.Errorf("%w: %s with another disk; replace it", ErrMemberExists, q.Device)
		case s.ID != server:
			if err := r.RemoveServer(s.ID, 0, n.patience()).Error(); err != nil {
				return fmt.Errorf("removing what %s was: %w", q.Device, err)
			}
		}
	}
	if err := r.AddNonvoter(server, address, 0, n.patience()).Error(); err != nil {
		return fmt.Errorf("adding %s: %w", q.Device, err)
	}
	return nil
}

// promote gives a vote to the members that have caught up. It is for the leader.
func (n *Node) promote(ctx context.Context, r *raft.Raft) {
	select {
	case n.configuring <- struct{}{}:
		defer func() { <-n.configuring }()
	default:
		return
	}
	for _, s := range n.configuration().Servers {
		if s.Suffrage == raft.Voter {
			continue
		}
		goal := r.CommitIndex()
		rep, err := n.ask(ctx, s)
		if err != nil || rep.Last < goal || r.State() != raft.Leader {
			continue
		}
		if err := r.AddVoter(s.ID, s.Address, 0, n.patience()).Error(); err == nil {
			n.cfg.Event(Event{Text: fmt.Sprintf("member %s has caught up and votes now", device(s.ID)), Fields: map[string]string{"change": "voter", "member": device(s.ID)}})
		}
	}
}

func device(id raft.ServerID) string {
	m, err := ParseMemberID(string(id))
	if err != nil {
		return string(id)
	}
	return m.Device.String()
}

// report is what a member says of itself.
type report struct {
	ID          string        `json:"id"`
	State       string        `json:"state"`
	Term        uint64        `json:"term"`
	Last        uint64        `json:"last"`
	Commit      uint64        `json:"commit"`
	Applied     uint64        `json:"applied"`
	Leader      string        `json:"leader"`
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
	b, err := n.trans.request(ctx, target, at, []byte{byte(opStatus)})
	if err != nil {
		return report{}, err
	}
	var rep report
	return rep, json.Unmarshal(b, &rep)
}

// devices gives the devices that are members as some incarnation, or are configured to be, and where
// they listen.
func (n *Node) devices() map[netip.Addr]netip.AddrPort {
	known := map[netip.Addr]netip.AddrPort{}
	for _, m := range slices.Concat(n.cfg.Members, n.Members()) {
		known[m.Device] = m.Address
	}
	return known
}

// stands reports whether one that is no member, for all this one knows, may ask for its vote: a device
// that is one as another incarnation, which was replaced while this one was away. It gets the vote
// if its log is not older.
func (n *Node) stands(id MemberID) bool {
	_, known := n.devices()[id.Device]
	return known
}

// leads reports whether one that is no member, for all this one knows, is the leader: the
// members may have changed while this one was away, and it learns that from the leader only.
// A device that is a member as another incarnation is taken at its word, of others the
// members that are known here are asked.
func (n *Node) leads(ctx context.Context, id MemberID) bool {
	known := n.devices()
	if _, ok := known[id.Device]; ok {
		return true
	}
	delete(known, n.self.Device)
	ctx, cancel := context.WithTimeout(ctx, memberStatusWait)
	defer cancel()
	answers := make(chan bool, len(known))
	for dev, at := range known {
		go func() {
			rep, err := n.askAt(ctx, MemberID{Device: dev}, at)
			answers <- err == nil && rep.Leader == id.String()
		}()
	}
	for range known {
		if <-answers {
			return true
		}
	}
	return false
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

// Status asks all members how they are.
func (n *Node) Status(ctx context.Context) Status {
	own := n.report()
	st := Status{Self: n.self, Term: own.Term, Last: own.Last, Commit: own.Commit, Applied: own.Applied, Lack: n.Trouble()}
	n.mu.Lock()
	st.Cluster, st.InForce = n.machine.Cluster(), n.done
	n.mu.Unlock()
	st.Quorum = own.Leader != "" && st.Lack == ""
	if id, err := ParseMemberID(own.Leader); err == nil {
		st.Leader = id.Device
	}
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

// Members are those of the cluster at present, sorted.
func (n *Node) Members() []Member {
	var out []Member
	for _, s := range n.configuration().Servers {
		if id, at, err := peerOf(s.ID, s.Address); err == nil {
			out = append(out, Member{id.Device, at})
		}
	}
	slices.SortFunc(out, func(a, b Member) int { return a.Device.Compare(b.Device) })
	return out
}
