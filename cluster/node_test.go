package cluster

import (
	"context"
	"errors"
	"testing"
	"time"
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
