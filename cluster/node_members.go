package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
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

// configure has the leader change the members. Like a change of zones it waits for a leader while
// one may come soon. Of ErrNoLeader nothing was changed; of ErrUncertain nobody knows.
func (n *Node) configure(ctx context.Context, q configure) error {
	q.Device, q.Address = q.Device.Unmap(), netip.AddrPortFrom(q.Address.Addr().Unmap(), q.Address.Port())
	lost := false // an answer was, maybe
	err := n.atLeader(ctx, func(ctx context.Context, _ *raft.Raft) error { return n.configureHere(ctx, q) },
		func(ctx context.Context, r *raft.Raft, target MemberID, at netip.AddrPort) error {
			var index uint64
			_, err := n.trans.ask(ctx, request{Do: doConfigure, To: target, Members: &q}, at, nil, &index)
			if err == nil {
				n.follow(ctx, r, q, index)
			} else if !errors.As(err, new(*toldError)) {
				lost = true
			}
			return err
		})
	if told := (*toldError)(nil); errors.As(err, &told) {
		for _, kind := range []error{ErrMemberExists, ErrMemberNotFound, ErrMemberLimit, ErrMemberState} {
			if rest, is := strings.CutPrefix(told.text, kind.Error()); is {
				err = fmt.Errorf("%w%s", kind, rest)
			}
		}
	}
	if lost && errors.Is(err, q.madeAlready()) {
		return nil
	}
	return err
}

// madeAlready is what a change fails of that was made.
func (q configure) madeAlready() error {
	if q.Do == "remove" {
		return ErrMemberNotFound
	}
	return ErrMemberExists
}

// follow waits until this member has the entry of a change that the leader has made, so
// that who asks here next is shown it. The change stands whatever comes of that, and
// one that was removed hears no more.
func (n *Node) follow(ctx context.Context, r *raft.Raft, q configure, index uint64) {
	if q.Device == n.self.Device && q.Do == "remove" {
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
		id = peer.From
	}
	server, address := raft.ServerID(id.String()), raft.ServerAddress(q.Address.String())
	for _, s := range present {
		switch {
		case s.ID == server && s.Address == address && s.Suffrage == raft.Voter:
			return fmt.Errorf("%w: %s at %s", ErrMemberExists, q.Device, q.Address)
		case s.ID == server && s.Suffrage == raft.Voter:
			return addVoter(r, server, address, n.patience()) // its address changes
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

// addVoter gives a member a vote and waits until that is in force. Raft hands the change to the
// members before it counts the new vote: an answer that comes in between is not counted, and where
// the majority needs it nothing is in force until there is another entry. So there is one.
func addVoter(r *raft.Raft, id raft.ServerID, address raft.ServerAddress, patience time.Duration) error {
	change := r.AddVoter(id, address, 0, patience)
	r.Barrier(patience)
	return change.Error()
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
		if err := addVoter(r, s.ID, s.Address, n.patience()); err == nil {
			n.cfg.Event(Event{Text: fmt.Sprintf("member %s has caught up and votes now", device(s.ID)), Fields: map[string]string{"change": "voter", "member": device(s.ID)}})
		}
	}
}

// inquire asks the other members for their lists of members while no leader is known: the list may
// have changed while this one was away, and the one that leads now may be unknown here.
func (n *Node) inquire(ctx context.Context, r *raft.Raft) {
	if _, leader := r.LeaderWithID(); leader != "" {
		return
	}
	ask := map[netip.Addr]netip.AddrPort{}
	for _, m := range slices.Concat(n.cfg.Members, n.Members()) {
		ask[m.Device] = m.Address
	}
	delete(ask, n.self.Device)
	ctx, cancel := context.WithTimeout(ctx, memberStatusWait)
	defer cancel()
	answers := make(chan []netip.Addr, len(ask))
	for dev, at := range ask {
		go func() {
			rep, _ := n.askAt(ctx, MemberID{Device: dev}, at)
			answers <- rep.Members
		}()
	}
	heard := map[netip.Addr]bool{}
	for range ask {
		for _, dev := range <-answers {
			heard[dev] = true
		}
	}
	n.heard.Store(&heard)
}
