package chaos

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func testTargets(t *testing.T) targets {
	t.Helper()
	f, err := loadFabric("test")
	if err != nil {
		t.Fatal(err)
	}
	return f.targets()
}

func TestTheSameSeedGivesTheSameFaults(t *testing.T) {
	at := testTargets(t)
	a, b := planRound(7, 3, time.Minute, Kinds, at), planRound(7, 3, time.Minute, Kinds, at)
	if diff := cmp.Diff(a, b, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(a, planRound(8, 3, time.Minute, Kinds, at)) || cmp.Equal(a, planRound(7, 4, time.Minute, Kinds, at)) {
		t.Error("another seed, or another round, gives the same faults")
	}
}

// Faults of one target follow each other, all kinds come, and each is within what
// the fabric is made to stand without a host that is given up.
func TestPlansAreFair(t *testing.T) {
	at := testTargets(t)
	kinds, targets, alone := map[Kind]int{}, map[string]int{}, 0
	for seed := range uint64(500) {
		free, now := map[string]time.Duration{}, map[Kind]bool{}
		for _, f := range planRound(seed, 1, 12*time.Second, Kinds, at) {
			now[f.Kind] = true
			if f.At < free[f.target()] {
				t.Errorf("seed %d: %s overlaps another fault of its target", seed, f)
			}
			free[f.target()] = f.At + f.lasts()
			kinds[f.Kind]++
			targets[f.target()]++
			if f.Kind == CRC && f.For == 0 {
				alone++
				if f.lasts() != crcRecovery {
					t.Errorf("seed %d: %s lasts %s", seed, f, f.lasts())
				}
			} else if f.lasts() > 8*time.Second || f.At > 12*time.Second || f.At < 0 {
				t.Errorf("seed %d: %s at %s lasts %s", seed, f, f.At, f.lasts())
			}
		}
		for _, k := range Kinds {
			if !now[k] {
				t.Errorf("seed %d: no fault of kind %s in a round", seed, k)
			}
		}
	}
	if alone == 0 || 4*alone > kinds[CRC] {
		t.Errorf("%d of %d ports that are shut open by themselves, want some", alone, kinds[CRC])
	}
	for _, k := range Kinds {
		if kinds[k] < 500 {
			t.Errorf("%d faults of kind %s in 500 rounds", kinds[k], k)
		}
	}
	for _, l := range at.access {
		if targets[l.node+":"+l.port] == 0 {
			t.Errorf("the cable at %s is never pulled", l)
		}
	}
	for _, p := range append(at.daemons, at.agents...) {
		if targets[p.node+"/"+p.name] == 0 {
			t.Errorf("nothing ever happens to %s", p)
		}
	}
}

func TestKindsByName(t *testing.T) {
	got, err := ParseKinds("kill, flap,kill")
	if diff := cmp.Diff([]Kind{Kill, Flap}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if got, err := ParseKinds(""); err != nil || len(got) != len(Kinds) {
		t.Errorf("an empty list gives %v, %v", got, err)
	}
	if _, err := ParseKinds("kill,fire"); err == nil || !strings.Contains(err.Error(), `"fire"`) || !strings.Contains(err.Error(), "carrier") {
		t.Errorf("error %v, want one that names the value and what is allowed", err)
	}
}

func TestRulesOfThePacketFilter(t *testing.T) {
	got := ruleset([]Fault{
		{Kind: Drop, Port: "eth1", Loss: 100, Way: "both"},
		{Kind: Drop, Port: "eth2", Loss: 30, Way: "in"},
		{Kind: Cut, Port: "eth3"},
		{Kind: Hole, Port: "eth4", Size: 200, Way: "in"},
		{Kind: Path, Node: "tor1", Peer: "tor2", Way: "both"},
	}, func(node string) netip.Addr {
		return map[string]netip.Addr{"tor1": netip.MustParseAddr("10.0.0.1"), "tor2": netip.MustParseAddr("10.0.0.2")}[node]
	})
	want := `table inet inof_chaos
delete table inet inof_chaos
table inet inof_chaos {
  chain in {
    type filter hook prerouting priority -300
    iifname "eth1" drop
    iifname "eth2" numgen random mod 100 < 30 drop
    iifname "eth4" meta length > 200 drop
    ip saddr 10.0.0.2 ip daddr 10.0.0.1 drop
    ip saddr 10.0.0.1 ip daddr 10.0.0.2 drop
  }
  chain out {
    type filter hook postrouting priority 300
    oifname "eth1" drop
  }
  chain cut {
    type filter hook input priority 0
    iifname "eth3" tcp dport 19516 reject with tcp reset
  }
}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
