package inof

import (
	"testing"
	"time"

	"github.com/openinof/inof/zone"
)

// rivals are two hosts that claim one address; the earlier one is in no zone, the
// later one would be in zone "a" by its name.
func rivals(t *testing.T) (b *testbench, winner zone.HostKey) {
	set := zone.Set{Zones: []zone.Zone{{Name: "a", Members: []zone.Member{{Kind: zone.MemberNQN, NQN: "nqn.2026-01.org.example:later"}}}}}
	b = newBench(t, set, ReflectorConfig{}, 2)
	for i, nqn := range []string{"nqn.2026-01.org.example:earlier", "nqn.2026-01.org.example:later"} {
		h := zone.Host{HostKey: zone.HostKey{Addr: hostIP(0), Device: devID(i), Port: "p0"}, Since: t0.Add(time.Duration(i) * time.Second)}
		h.MAC[5], h.NQN = byte(i), nqn
		b.clients[devID(i)].PutHost(h)
	}
	return b, zone.HostKey{Addr: hostIP(0), Device: devID(0), Port: "p0"}
}

// The winner is in no zone, so no zone makes the loser's device concerned with it.
func TestADeviceIsToldWhoHoldsTheAddressOfItsOwnHost(t *testing.T) {
	for name, order := range map[string][2]int{"winner first": {0, 1}, "winner last": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			b, winner := rivals(t)
			b.join(devID(order[0]))
			b.join(devID(order[1]))
			if b.clients[devID(1)].learned.hosts[winner] == nil {
				t.Error("the loser's device does not know the winner")
			}
			b.clients[devID(0)].WithdrawHost(winner, 6)
			b.flush(devID(0))
			b.check()
			if b.clients[devID(1)].learned.hosts[winner] != nil {
				t.Error("the winner has gone, but the loser's device still knows it")
			}
		})
	}
}

func TestStaleIsWhatTheReflectorHasNotSaidInItsSession(t *testing.T) {
	b := newBench(t, zone.Set{AutoJoin: true}, ReflectorConfig{}, 2)
	var keys [2]zone.HostKey
	for i := range keys {
		keys[i] = zone.HostKey{Addr: hostIP(i), Device: devID(i), Port: "p0"}
		b.clients[devID(i)].PutHost(zone.Host{HostKey: keys[i], Since: t0})
		b.join(devID(i))
	}
	c := b.clients[devID(0)]
	if c.Stale(keys[1]) || c.Stale(keys[0]) {
		t.Error("stale in a session that has said everything")
	}
	c.Down(reflID, b.now)
	if !c.Stale(keys[1]) {
		t.Error("not stale without a session")
	}
	c.Up(reflID, b.now)
	if !c.Stale(keys[1]) {
		t.Error("not stale, but nothing was said in the new session")
	}
	a, err := c.Receive(reflID, &Update{Origin: reflID, Hosts: []HostRecord{{Op: Put, Host: zone.Host{HostKey: keys[1], Since: t0}}}}, b.now)
	if err != nil || len(a.Hosts) != 0 || len(a.Placed) != 1 || a.Placed[0] != keys[1] {
		t.Errorf("the same again: %+v, %v; want it placed", a, err)
	}
	if c.Stale(keys[1]) {
		t.Error("stale although it was said")
	}
}
