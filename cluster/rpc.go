package cluster

import (
	"net/netip"

	"github.com/hashicorp/raft"
)

// maxTermJump is how far a term may be ahead of the own one: an election every 50 ms for six
// years. A member that is away never sees that much; one message with a term near 2^64 would leave
// none for the elections that follow.
const maxTermJump = 1 << 32

// maxConfiguration bounds an encoded list of members, in bytes.
const maxConfiguration = 8 << 10

// impostorError is a member that claims to be another one.
type impostorError struct{ text string }

func (e *impostorError) Error() string { return e.text }

// checkRPC checks a message of the library before Raft has it: that it is in the name of the
// member whose certificate its connection has, that its term is possible, and that Raft, which
// trusts its peers, can use its contents. It adds the member to the sender's address, since Raft
// compares candidates by their addresses.
func checkRPC(q any, from MemberID, term uint64) error {
	switch q := q.(type) {
	case *raft.AppendEntriesRequest:
		return first(bind(&q.RPCHeader, from), checkTerm(q.Term, term), checkEntries(q))
	case *raft.RequestVoteRequest:
		if q.LeadershipTransfer {
			return broken("vote", "no member of this cluster hands over the leadership")
		}
		return first(bind(&q.RPCHeader, from), checkTerm(q.Term, term))
	case *raft.RequestPreVoteRequest:
		return first(bind(&q.RPCHeader, from), checkTerm(q.Term, term))
	case *raft.InstallSnapshotRequest:
		if q.Size < 0 || q.Size > MaxSnapshot {
			return broken("snapshot", "%d bytes, at most %d", q.Size, MaxSnapshot)
		}
		if q.SnapshotVersion != raft.SnapshotVersionMax {
			return broken("snapshot", "version %d, want %d", q.SnapshotVersion, raft.SnapshotVersionMax)
		}
		return first(bind(&q.RPCHeader, from), checkTerm(q.Term, term), checkConfiguration(q.Configuration))
	}
	return broken("message", "%T: no member sends it", q)
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// bind checks the sender in the header of a message, and completes its address.
func bind(h *raft.RPCHeader, from MemberID) error {
	if string(h.ID) != from.String() {
		return &impostorError{"it is a message in the name of " + printable(string(h.ID))}
	}
	if _, err := netip.ParseAddrPort(string(h.Addr)); err != nil {
		return broken("message", "address of the sender: %.100q", h.Addr)
	}
	h.Addr = []byte(route(raft.ServerID(h.ID), raft.ServerAddress(h.Addr)))
	return nil
}

// checkTerm checks the term of a peer against the own one.
func checkTerm(theirs, own uint64) error {
	if theirs > own && theirs-own > maxTermJump {
		return broken("message", "term %d, where this member is at %d: no cluster holds so many elections", theirs, own)
	}
	return nil
}

func checkEntries(q *raft.AppendEntriesRequest) error {
	for i, l := range q.Entries {
		switch {
		case l == nil || l.Index != q.PrevLogEntry+uint64(i)+1:
			return broken("message", "entry %d of it does not follow entry %d", i, q.PrevLogEntry+uint64(i))
		case l.Term > q.Term:
			return broken("message", "entry %d is of term %d, the leader of %d", l.Index, l.Term, q.Term)
		case len(l.Data) > MaxEntry:
			return broken("message", "entry %d has %d bytes, at most %d", l.Index, len(l.Data), MaxEntry)
		case l.Type == raft.LogConfiguration:
			if err := checkConfiguration(l.Data); err != nil {
				return err
			}
		case l.Type != raft.LogCommand && l.Type != raft.LogNoop && l.Type != raft.LogBarrier:
			return broken("message", "entry %d is of type %d, which no member makes", l.Index, l.Type)
		}
	}
	return nil
}

// checkConfiguration checks an encoded list of members, over which the library panics when it is
// none.
func checkConfiguration(data []byte) (err error) {
	if len(data) > maxConfiguration {
		return broken("list of members", "%d bytes, at most %d", len(data), maxConfiguration)
	}
	defer func() {
		if p := recover(); p != nil {
			err = broken("list of members", "%v", p)
		}
	}()
	c := raft.DecodeConfiguration(data)
	if len(c.Servers) > 2*MaxMembers {
		return broken("list of members", "%d members, at most %d", len(c.Servers), MaxMembers)
	}
	for _, s := range c.Servers {
		_, bad := ParseMemberID(string(s.ID))
		if _, err := netip.ParseAddrPort(string(s.Address)); bad != nil || err != nil {
			return broken("list of members", "%.100q at %.100q", s.ID, s.Address)
		}
	}
	return nil
}
