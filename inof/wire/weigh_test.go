package wire

import (
	"net/netip"
	"testing"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// To take a fault back is as much work as to tell it: who does both without end is slowed
// down by both.
func TestAFaultTakenBackWeighsAsMuchAsOneTold(t *testing.T) {
	weigh := func(d zone.Down) int {
		return Weight(&Update{Downs: []DownRecord{{Port: "p", Down: d, Addrs: make([]netip.Addr, 1000)}}})
	}
	told, back := weigh(zone.Down{Why: snsd.ReasonLinkDown}), weigh(zone.Down{})
	if told < 1000/downAddrs || back != told {
		t.Errorf("told weighs %d, taken back %d", told, back)
	}
}
