package inof

import (
	"net/netip"
	"testing"
)

// To take a fault back is as much work as to tell it: who does both without end is slowed
// down by both.
func TestAFaultTakenBackWeighsAsMuchAsOneTold(t *testing.T) {
	p := newPacers(Pace{}, 10, nil).of(scaleDev(1))
	say := func(op Op, addrs, gone int) int {
		return p.weigh(&Update{Faults: []FaultRecord{{Op: op, Port: "p", Addrs: make([]netip.Addr, addrs), Gone: make([]netip.Addr, gone)}}})
	}
	told := say(Put, 1000, 0)
	if back := say(Withdraw, 0, 0); told < 1000/faultAddrs || back != told {
		t.Errorf("told weighs %d, taken back %d", told, back)
	}
	if again := say(Withdraw, 0, 0); again >= told {
		t.Errorf("what is not there weighs %d", again)
	}
	say(Put, 100, 0)
	say(Change, 60, 20)
	if back := say(Withdraw, 0, 0); back < 140/faultAddrs {
		t.Errorf("a fault that grew weighs %d", back)
	}
	if len(p.lists) != 0 {
		t.Errorf("%v is left", p.lists)
	}
	for i := range MaxFaultPorts + 10 {
		p.list(scaleHost(i).String(), 100)
	}
	if len(p.lists) > MaxFaultPorts {
		t.Errorf("%d lists are kept", len(p.lists))
	}
}
