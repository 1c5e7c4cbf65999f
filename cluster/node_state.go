package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/openinof/inof/inof/wire"
)

// What a member knows of itself and of who its members are, of which all else is made.

// up gives the Raft once it is there; nil before.
func (n *Node) up() *raft.Raft {
	select {
	case <-n.ready:
		return n.raft
	default:
		return nil
	}
}

// progress is how far Raft has applied the log, and its term; zero while Raft is starting.
func (n *Node) progress() (index, term uint64) {
	r := n.up()
	if r == nil {
		return 0, 0
	}
	return r.AppliedIndex(), r.CurrentTerm()
}

// configuration is the present list of members; empty while there is none.
func (n *Node) configuration() raft.Configuration {
	r := n.up()
	if r == nil {
		return raft.Configuration{}
	}
	f := r.GetConfiguration()
	if f.Error() != nil {
		return raft.Configuration{}
	}
	return f.Configuration()
}

func (n *Node) helloState() (cluster uint64, fresh bool) {
	return n.cluster.Load(), n.up() != nil && len(n.configuration().Servers) == 0
}

func (n *Node) isMember(id MemberID) bool { return n.isServer(raft.ServerID(id.String())) }

// trusts reports whether a device is a member, as any incarnation. A member that follows a leader
// of its own list has the whole list. Without one it may have missed a change: it trusts the
// members of its configuration too, and those that other members name.
func (n *Node) trusts(dev netip.Addr) bool {
	r := n.up()
	if r == nil {
		return false
	}
	_, leader := r.LeaderWithID()
	leads := false
	for _, s := range n.configuration().Servers {
		if id, err := ParseMemberID(string(s.ID)); err == nil && id.Device == dev {
			return true
		}
		leads = leads || s.ID == leader
	}
	if leads {
		return false
	}
	heard := n.heard.Load()
	return heard != nil && (*heard)[dev] || slices.ContainsFunc(n.cfg.Members, func(m Member) bool { return m.Device == dev })
}

// votes reports whether a member has a vote, for all this one knows.
func (n *Node) votes(id MemberID) bool {
	for _, s := range n.configuration().Servers {
		if string(s.ID) == id.String() {
			return s.Suffrage == raft.Voter
		}
	}
	return false
}

func (n *Node) noteStrayed() {
	n.mu.Lock()
	n.strayed = true
	n.mu.Unlock()
}

// Limits of events about refused connections.
const (
	refusedQuiet = 10 * time.Minute // between two of one address
	maxRefused   = 64               // addresses in that time
)

// noteRefused reports a connection that was refused.
func (n *Node) noteRefused(from string, why error) {
	host, now := from, time.Now()
	if at, err := netip.ParseAddrPort(from); err == nil {
		host = at.Addr().String()
	}
	n.mu.Lock()
	maps.DeleteFunc(n.refused, func(_ string, at time.Time) bool { return now.Sub(at) >= refusedQuiet })
	_, quiet := n.refused[host]
	if quiet = quiet || len(n.refused) >= maxRefused; !quiet {
		n.refused[host] = now
	}
	n.mu.Unlock()
	if !quiet {
		n.cfg.Event(Event{Text: fmt.Sprintf("a connection of %s to the cluster's port was refused: %s", from, printable(why.Error())),
			Fields: map[string]string{"change": "refused", "from": from}})
	}
}

func (n *Node) count(f func(*Counters)) {
	n.mu.Lock()
	f(&n.counters)
	n.mu.Unlock()
}

// stamp is the state of the machine as clients are told. n.mu is held.
func (n *Node) stamp() wire.ClusterStamp {
	return wire.ClusterStamp{ID: n.machine.Cluster(), Index: n.machine.Index()}
}

func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:]) | 1
}

// patience is how long a change waits for a leader.
func (n *Node) patience() time.Duration {
	return patienceWithoutLeader * (n.cfg.Heartbeat + n.cfg.Election)
}

// pause waits; false: ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
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

func device(id raft.ServerID) string {
	m, err := ParseMemberID(string(id))
	if err != nil {
		return string(id)
	}
	return m.Device.String()
}

func (n *Node) isServer(id raft.ServerID) bool {
	return slices.ContainsFunc(n.configuration().Servers, func(s raft.Server) bool { return s.ID == id })
}
