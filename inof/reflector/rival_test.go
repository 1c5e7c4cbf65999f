package reflector

import (
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/zone"
)

// rivals are two hosts that claim one address; the earlier one is in no zone, the
// later one would be in zone "a" by its name.
func rivals(t *testing.T) (b *testbench, winner zone.HostKey) {
	set := zone.Set{Zones: []zone.Zone{{Name: "a", Members: []zone.Member{{Kind: zone.MemberNQN, NQN: "nqn.2026-01.org.example:later"}}}}}
	b = newBench(t, set, Config{}, 2)
	for i, nqn := range []string{"nqn.2026-01.org.example:earlier", "nqn.2026-01.org.example:later"} {
		h := zone.Host{HostKey: zone.HostKey{Addr: inoftest.HostIP(0), Device: inoftest.DevID(i), Port: "p0"}, Since: inoftest.T0.Add(time.Duration(i) * time.Second)}
		h.MAC[5], h.NQN = byte(i), nqn
		b.clients[inoftest.DevID(i)].PutHost(h)
	}
	return b, zone.HostKey{Addr: inoftest.HostIP(0), Device: inoftest.DevID(0), Port: "p0"}
}

// The winner is in no zone, so no zone makes the loser's device concerned with it.
func TestADeviceIsToldWhoHoldsTheAddressOfItsOwnHost(t *testing.T) {
	for name, order := range map[string][2]int{"winner first": {0, 1}, "winner last": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			b, winner := rivals(t)
			b.join(inoftest.DevID(order[0]))
			b.join(inoftest.DevID(order[1]))
			if _, known := b.held[inoftest.DevID(1)].hosts[winner]; !known {
				t.Error("the loser's device does not know the winner")
			}
			b.clients[inoftest.DevID(0)].WithdrawHost(winner, 6)
			b.flush(inoftest.DevID(0))
			b.check()
			if _, known := b.held[inoftest.DevID(1)].hosts[winner]; known {
				t.Error("the winner has gone, but the loser's device still knows it")
			}
		})
	}
}
