package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/openinof/inof/zone"
)

func voters(r *running) (n int) {
	for _, m := range r.Status(context.Background()).Members {
		if m.Voter {
			n++
		}
	}
	return n
}

func TestMembersAreAddedAndRemoved(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		leader := l.awaitLeader(seq(3)...)
		mustChange(t, l.node(0), addZone("blue", "192.0.2.101"))
		l.start(3)
		l.start(4)
		time.Sleep(5 * time.Second)
		if text := l.node(3).Trouble(); !strings.Contains(text, "in no cluster yet") {
			t.Errorf("a device that waits to be added says %q", text)
		}
		follower := l.node((leader + 1) % 3)
		for _, i := range []int{3, 4} {
			if err := follower.Add(t.Context(), devAddr(i), memberAt(i).Address); err != nil {
				t.Fatal(err)
			}
			l.await("the new member has caught up", time.Minute, func() bool { return l.node(i).shown("blue") == "192.0.2.101" && voters(l.node(0)) == i+1 })
		}
		mapped := netip.AddrFrom16(devAddr(3).As16()) // the same device
		if err := follower.Add(t.Context(), mapped, memberAt(3).Address); !errors.Is(err, ErrMemberExists) {
			t.Errorf("added twice: %v", err)
		}
		if err := follower.Remove(t.Context(), devAddr(7)); !errors.Is(err, ErrMemberNotFound) {
			t.Errorf("one that is none: %v", err)
		}
		if err := follower.Add(t.Context(), devAddr(8), memberAt(8).Address); !errors.Is(err, ErrMemberState) {
			t.Errorf("nobody is there: %v", err)
		}
		// Five members outlive the loss of two.
		l.crash(leader)
		l.crash((leader + 1) % 3)
		rest := []int{(leader + 2) % 3, 3, 4}
		l.awaitLeader(rest...)
		mustChange(t, l.node(3), addZone("red"))
		for _, i := range []int{leader, (leader + 1) % 3} {
			if err := l.node(4).Remove(t.Context(), devAddr(i)); err != nil {
				t.Fatal(err)
			}
		}
		if got := voters(l.node(4)); got != 3 {
			t.Errorf("%d voters", got)
		}
		// The leader itself is removed: another takes over.
		at := l.awaitLeader(rest...)
		if err := l.node(at).Remove(t.Context(), devAddr(at)); err != nil {
			t.Fatal(err)
		}
		left := []int{}
		for _, i := range rest {
			if i != at {
				left = append(left, i)
			}
		}
		l.awaitLeader(left...)
		mustChange(t, l.node(left[0]), addZone("green"))
		if _, err := l.node(at).Change(t.Context(), addZone("x")); err == nil {
			t.Error("one that was removed makes a change")
		}
	})
}

// A change of members waits for the next leader, as a change of zones does; where none can come it
// says so, and soon.
func TestAChangeOfMembersWaitsForALeader(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		leader := l.awaitLeader(seq(3)...)
		mustChange(t, l.node(0), addZone("blue", "192.0.2.101"))
		l.start(3)
		time.Sleep(time.Second)
		l.crash(leader)
		other := l.node((leader + 1) % 3)
		if err := other.Replace(t.Context(), devAddr(leader), memberAt(leader).Address); !errors.Is(err, ErrMemberState) {
			t.Errorf("nobody is at the address of who led: %v", err)
		}
		if err := other.Add(t.Context(), devAddr(3), memberAt(3).Address); err != nil {
			t.Errorf("a leader was there: %v", err)
		}
		l.await("the new member votes", time.Minute, func() bool { return voters(other) == 4 })
		l.crash((leader + 2) % 3)
		l.crash(3)
		time.Sleep(time.Minute)
		began := time.Now()
		if err := other.Remove(t.Context(), devAddr(3)); !errors.Is(err, ErrNoLeader) {
			t.Errorf("alone: %v", err)
		}
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("alone it took %v to say so", d)
		}
	})
}

// The leader is cut off while it makes a change of members: the next one makes it, once.
func TestAChangeOfMembersGoesOnWithTheNextLeader(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 4 {
			l.start(i)
		}
		old := l.awaitLeader(seq(3)...)
		mustChange(t, l.node(0), addZone("blue"))
		other := (old + 1) % 3
		done := make(chan error, 1)
		go func() { done <- l.node(other).Add(context.Background(), devAddr(3), memberAt(3).Address) }()
		l.partition([]int{old}, []int{other, (old + 2) % 3, 3})
		if err := <-done; err != nil {
			t.Fatalf("the change did not find the new leader: %v", err)
		}
		l.await("the new member votes", time.Minute, func() bool { return voters(l.node(other)) == 4 })
	})
}

// A member that was away while another one joined and came to lead knows nothing of that one,
// and follows it all the same: members that it knows do.
func TestAMemberFollowsALeaderThatJoinedWhileItWasAway(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		l.awaitLeader(seq(3)...)
		mustChange(t, l.node(0), addZone("blue"))
		l.await("all have it", time.Minute, func() bool { return l.node(2).shown("blue") != "-" })
		l.crash(2)
		for _, i := range []int{3, 4} {
			l.start(i)
			time.Sleep(time.Second)
			if err := l.node(0).Add(t.Context(), devAddr(i), memberAt(i).Address); err != nil {
				t.Fatal(err)
			}
			l.await("it votes", time.Minute, func() bool { return voters(l.node(0)) == i+1 })
		}
		if err := l.node(1).Remove(t.Context(), devAddr(0)); err != nil {
			t.Fatal(err)
		}
		l.crash(0)
		rest := []int{1, 3, 4}
		for l.awaitLeader(rest...) == 1 {
			l.crash(1)
			time.Sleep(3 * time.Second)
			l.start(1)
		}
		mustChange(t, l.node(4), addZone("red"))
		l.start(2)
		l.await("it has what the new leader has", time.Minute, func() bool { return l.node(2).shown("red") != "-" })
		stranger := l.pretend(MemberID{devAddr(6), 5}, devAddr(6))
		err := stranger.AppendEntries(serverOf(l.node(2)), addressOf(2), appendOf(stranger.cfg.Self, 1000), &raft.AppendEntriesResponse{})
		if err == nil || !strings.Contains(err.Error(), "is no member") {
			t.Errorf("a stranger that leads nobody is followed: %v", err)
		}
	})
}

// Once an operator has removed a member, nothing that it sends is taken, whatever the configuration
// of the others says still.
func TestARemovedMemberIsRefused(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		leader := l.awaitLeader(seq(3)...)
		gone, stays := (leader+1)%3, (leader+2)%3
		was := l.node(gone).self
		stands := l.pretend(was, devAddr(gone)) // it has a connection before it is removed
		heartbeat := func() error {
			return stands.AppendEntries(serverOf(l.node(stays)), addressOf(stays), appendOf(was, 0), &raft.AppendEntriesResponse{})
		}
		if err := heartbeat(); err != nil {
			t.Fatal(err)
		}
		if err := l.node(leader).Remove(t.Context(), devAddr(gone)); err != nil {
			t.Fatal(err)
		}
		l.crash(gone)
		time.Sleep(time.Second)
		if err := heartbeat(); err == nil || !strings.Contains(err.Error(), "is no member") {
			t.Errorf("it is heard on the connection that it has: %v", err)
		}
		term := l.node(stays).report().Term
		they := l.pretend(was, devAddr(gone))
		q := &raft.RequestVoteRequest{RPCHeader: headerOf(was), Term: term + 1, LastLogIndex: 1 << 20, LastLogTerm: term}
		err := they.RequestVote(serverOf(l.node(stays)), addressOf(stays), q, &raft.RequestVoteResponse{})
		if err == nil || !strings.Contains(err.Error(), "is no member") {
			t.Errorf("it may stand for election: %v", err)
		}
		if got := l.node(stays).report().Term; got != term {
			t.Errorf("the term is %d, it was %d", got, term)
		}
		if _, c := l.node(stays).Counters(); c.NotMember == 0 {
			t.Error("it was not counted")
		}
	})
}

// A member that has lost its disk has no vote until an operator replaces it, and
// never begins a cluster of its own: not even the one that formed the first.
func TestAWipedMemberRejoinsThroughReplace(t *testing.T) {
	for _, wiped := range []int{0, 2} {
		inLab(t, 3, func(t *testing.T, l *lab) {
			for i := range 3 {
				l.start(i)
			}
			l.awaitLeader(seq(3)...)
			mustChange(t, l.node(1), addZone("blue", "192.0.2.101"))
			before := l.node(wiped).self
			l.crash(wiped)
			delete(l.stores, devAddr(wiped))
			l.start(wiped)
			time.Sleep(30 * time.Second)
			rest := []int{(wiped + 1) % 3, (wiped + 2) % 3}
			l.awaitLeader(rest...)
			if got := l.node(wiped).shown("blue"); got != "-" {
				t.Errorf("the wiped member has %q", got)
			}
			if text := l.node(wiped).Trouble(); !strings.Contains(text, "replace") {
				t.Errorf("the wiped member says %q", text)
			}
			if err := l.node(rest[0]).Add(t.Context(), devAddr(wiped), memberAt(wiped).Address); !errors.Is(err, ErrMemberExists) {
				t.Errorf("it can be added beside what it was: %v", err)
			}
			if err := l.node(rest[1]).Replace(t.Context(), devAddr(wiped), memberAt(wiped).Address); err != nil {
				t.Fatal(err)
			}
			l.await("it has caught up", time.Minute, func() bool { return l.node(wiped).shown("blue") == "192.0.2.101" && voters(l.node(rest[0])) == 3 })
			if l.node(wiped).self == before {
				t.Error("it is the same member as before")
			}
			l.crash(rest[0])
			l.awaitLeader(wiped, rest[1])
			mustChange(t, l.node(wiped), addZone("red"))
		})
	}
}

// Of three members one is replaced, and becomes a voter while another is away; then the third is
// lost. The two that are left are a majority, though the one that was away knows nothing of the new
// one's vote, or of the new one at all.
func TestAMemberVotesForOneThatWasReplacedWhileItWasAway(t *testing.T) {
	for _, knows := range []bool{false, true} {
		inLab(t, 3, func(t *testing.T, l *lab) {
			for i := range 3 {
				l.start(i)
			}
			leader := l.awaitLeader(seq(3)...)
			replaced, away := (leader+1)%3, (leader+2)%3
			n := l.node(leader)
			mustChange(t, n, addZone("blue"))
			l.await("all have it", time.Minute, func() bool { return l.node(away).shown("blue") != "-" })
			was := raft.ServerID(l.node(replaced).self.String())
			l.crash(replaced)
			delete(l.stores, devAddr(replaced))
			l.start(replaced)
			id, at := raft.ServerID(l.node(replaced).self.String()), raft.ServerAddress(memberAt(replaced).Address.String())
			if err := errors.Join(n.raft.RemoveServer(was, 0, 0).Error(), n.raft.AddNonvoter(id, at, 0, 0).Error()); err != nil {
				t.Fatal(err)
			}
			l.await("it has what the others have", time.Minute, func() bool { return l.node(replaced).shown("blue") != "-" })
			if knows {
				l.await("all know of it", time.Minute, func() bool { return l.node(away).isMember(l.node(replaced).self) })
			}
			l.crash(away)
			if err := addVoter(n.raft, id, at, 0); err != nil {
				t.Fatal(err)
			}
			mustChange(t, n, addZone("red"))
			l.await("it has that too", time.Minute, func() bool { return l.node(replaced).shown("red") != "-" })
			l.crash(leader)
			l.start(away)
			l.awaitLeader(replaced, away)
			mustChange(t, l.node(away), addZone("green"))
			l.await("nothing is lost", time.Minute, func() bool { return l.node(away).shown("red") != "-" && l.node(replaced).shown("green") != "-" })
		})
	}
}

// A member that was away for longer than the log reaches back gets a snapshot.
func TestAMemberThatWasAwayForLongGetsASnapshot(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		l.tune = func(c *Config) { c.SnapshotEntries, c.SnapshotInterval, c.Trailing = 16, time.Second, 4 }
		for i := range 3 {
			l.start(i)
		}
		l.awaitLeader(seq(3)...)
		l.crash(2)
		for i := range 60 {
			mustChange(t, l.node(0), addZone(fmt.Sprintf("zone %d", i), "192.0.2.101"))
		}
		time.Sleep(5 * time.Second)
		l.start(2)
		l.await("it has all zones", time.Minute, func() bool { return l.node(2).shown("zone 59") != "-" && l.node(2).shown("zone 0") != "-" })
		if c, _ := l.node(2).Counters(); c.Restored == 0 {
			t.Error("no snapshot was sent")
		}
		// Everybody restarts from snapshots and logs.
		for i := range 3 {
			l.crash(i)
		}
		for i := range 3 {
			if got := l.start(i).shown("zone 59"); got == "-" {
				t.Errorf("member %d begins without what it had", i)
			}
		}
		l.awaitLeader(seq(3)...)
		mustChange(t, l.node(2), addZone("after"))
	})
}

// The first start needs all members; what each has in its zone file does not count
// but for the one that forms the cluster.
func TestTheFirstStartNeedsAllMembers(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		l.seed.Zones = []zone.Zone{{Name: "seed", Members: parse([]string{"192.0.2.101"})}}
		l.start(0)
		l.start(1)
		time.Sleep(time.Minute)
		for i := range 2 {
			if text := l.node(i).Trouble(); !strings.Contains(text, "in no cluster yet") {
				t.Errorf("member %d says %q", i, text)
			}
			if _, stamp := l.node(i).Zones(); stamp.Known() {
				t.Error("two of three have formed a cluster")
			}
		}
		l.start(2)
		l.awaitLeader(seq(3)...)
		l.await("the zones of the seed", time.Minute, func() bool { return l.node(2).shown("seed") == "192.0.2.101" })
	})
}

func TestAChangeWhoseLeaderIsLostIsMadeOnceOrNotAtAll(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		old := l.awaitLeader(seq(3)...)
		other := (old + 1) % 3
		done := make(chan error, 1)
		go func() {
			_, err := l.node(other).Change(context.Background(), addZone("blue"))
			done <- err
		}()
		l.partition([]int{old}, []int{other, (old + 2) % 3})
		if err := <-done; err != nil {
			t.Fatalf("the change did not find the new leader: %v", err)
		}
		if c, _ := l.node(other).Counters(); c.Uncertain > 0 {
			t.Error("it was not certain")
		}
		var r *Refusal
		if _, err := l.node(other).Change(context.Background(), addZone("blue")); !errors.As(err, &r) || r.Code != CodeExists {
			t.Errorf("%v", err)
		}
	})
}

// The leader may have begun to send a snapshot before a member was removed, and the member has been
// added again and has caught up when it comes.
func TestALateSnapshotDoesNotTakeAMemberBack(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		leader := l.awaitLeader(seq(3)...)
		from, to := l.node(leader), l.node((leader+1)%3)
		mustChange(t, from, addZone("blue", "192.0.2.101"))
		l.await("it is in force everywhere", time.Minute, func() bool { return to.shown("blue") == from.shown("blue") })
		if err := from.raft.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		list, err := from.cfg.Storage.Snapshots.List()
		if err != nil || len(list) == 0 {
			t.Fatalf("%d snapshots, %v", len(list), err)
		}
		meta, data, err := from.cfg.Storage.Snapshots.Open(list[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		defer data.Close()
		var without raft.Configuration
		var at raft.Server
		for _, s := range from.configuration().Servers {
			if string(s.ID) == to.self.String() {
				at = s
			} else {
				without.Servers = append(without.Servers, s)
			}
		}
		q := &raft.InstallSnapshotRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(from.self.String()), Addr: []byte(from.address.String())},
			SnapshotVersion: meta.Version, Term: from.raft.CurrentTerm(), LastLogIndex: meta.Index, LastLogTerm: meta.Term,
			Configuration: raft.EncodeConfiguration(without), ConfigurationIndex: meta.ConfigurationIndex, Size: meta.Size}
		var resp raft.InstallSnapshotResponse
		if err := from.trans.InstallSnapshot(at.ID, at.Address, q, &resp, data); err != nil || !resp.Success {
			t.Fatalf("%+v, %v", resp, err)
		}
		if !to.isMember(to.self) || to.Trouble() != "" {
			t.Errorf("a member: %v; its trouble: %q", to.isMember(to.self), to.Trouble())
		}
	})
}
