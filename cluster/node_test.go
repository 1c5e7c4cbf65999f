package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/openinof/inof/zone"
)

func mustChange(t *testing.T, r *running, e Entry) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := r.Change(ctx, e); err != nil {
		t.Fatal(err)
	}
}

func TestChangeAtAnyMemberReachesAll(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		leader := l.awaitLeader(seq(3)...)
		follower := (leader + 1) % 3
		mustChange(t, l.node(follower), addZone("blue", "192.0.2.101", "192.0.2.102"))
		if got := l.node(follower).shown("blue"); got != "192.0.2.101 192.0.2.102" {
			t.Errorf("where the change was made it is not in force: %q", got)
		}
		l.await("all have the zone", time.Minute, func() bool {
			for i := range 3 {
				if l.node(i).shown("blue") == "-" {
					return false
				}
			}
			return true
		})
		_, err := l.node(follower).Change(t.Context(), addZone("blue"))
		var r *Refusal
		if !errors.As(err, &r) || r.Code != CodeExists {
			t.Errorf("%v", err)
		}
	})
}

func TestMinorityRefusesAndSaysSo(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		old := l.awaitLeader(seq(3)...)
		rest := []int{(old + 1) % 3, (old + 2) % 3}
		mustChange(t, l.node(old), addZone("blue", "192.0.2.101"))
		l.partition([]int{old}, rest)
		l.awaitLeader(rest...)
		l.await("the minority knows", time.Minute, func() bool { return l.node(old).Trouble() != "" })
		began := time.Now()
		_, err := l.node(old).Change(t.Context(), addZone("red"))
		if !errors.Is(err, ErrNoLeader) {
			t.Fatalf("the minority says %v", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the refusal took %v", took)
		}
		mustChange(t, l.node(rest[0]), Entry{Kind: KindAddMembers, Name: "blue", Members: parse([]string{"192.0.2.102"})})
		if l.node(old).shown("blue") != "192.0.2.101" || l.node(rest[0]).shown("blue") != "192.0.2.101 192.0.2.102" {
			t.Errorf("%q, %q", l.node(old).shown("blue"), l.node(rest[0]).shown("blue"))
		}
		l.heal(3)
		l.await("the minority is back", time.Minute, func() bool {
			return l.node(old).shown("blue") == "192.0.2.101 192.0.2.102" && l.node(old).Trouble() == ""
		})
		mustChange(t, l.node(old), addZone("red"))
	})
}

// A change that is larger than any other message, and than a batch of entries, goes to the leader
// and from there to all.
func TestALargeChangeIsForwarded(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		l.tune = func(c *Config) { c.Rules = zone.Rules{MaxZones: 30_000, MaxMembers: 60_000} }
		for i := range 3 {
			l.start(i)
		}
		leader := l.awaitLeader(seq(3)...)
		zones := largest()[:30_000]
		e := Entry{Kind: KindReplace, Zones: zones}
		if n := len(encode(t, e)); n < maxBatch+maxMessage {
			t.Fatalf("it has only %d bytes", n)
		}
		mustChange(t, l.node((leader+1)%3), e)
		l.await("all have it", time.Minute, func() bool {
			for i := range 3 {
				if l.node(i).shown(zones[29_999].Name) == "-" {
					return false
				}
			}
			return true
		})
	})
}

// Members at rest go on with the connections that they have: a handshake for each heartbeat would
// cost a switch more than all else of the cluster.
func TestMembersAtRestMakeNoConnections(t *testing.T) {
	inLab(t, 3, func(t *testing.T, l *lab) {
		for i := range 3 {
			l.start(i)
		}
		l.awaitLeader(seq(3)...)
		mustChange(t, l.node(0), addZone("blue"))
		time.Sleep(10 * time.Second)
		before := [3]uint64{}
		for i := range before {
			_, c := l.node(i).Counters()
			before[i] = c.Dials
		}
		time.Sleep(10 * time.Minute)
		for i := range before {
			if _, c := l.node(i).Counters(); c.Dials > before[i] {
				t.Errorf("member %d has made %d connections in 10 minutes", i, c.Dials-before[i])
			}
		}
		mustChange(t, l.node(1), addZone("red"))
	})
}
