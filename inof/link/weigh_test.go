package link

import (
	"net/netip"
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// To take a fault back is as much work as to tell it: who does both without end is slowed
// down by both.
func TestAFaultTakenBackWeighsAsMuchAsOneTold(t *testing.T) {
	p := newPacers(Pace{}, 10, nil).of(inoftest.ScaleDev(1))
	say := func(op wire.Op, addrs, gone int) int {
		return p.weigh(&wire.Update{Faults: []wire.FaultRecord{{Op: op, Port: "p", Addrs: make([]netip.Addr, addrs), Gone: make([]netip.Addr, gone)}}})
	}
	told := say(wire.Put, 1000, 0)
	if back := say(wire.Withdraw, 0, 0); told < 1000/wire.FaultAddrs || back != told {
		t.Errorf("told weighs %d, taken back %d", told, back)
	}
	if again := say(wire.Withdraw, 0, 0); again >= told {
		t.Errorf("what is not there weighs %d", again)
	}
	say(wire.Put, 100, 0)
	say(wire.Change, 60, 20)
	if back := say(wire.Withdraw, 0, 0); back < 140/wire.FaultAddrs {
		t.Errorf("a fault that grew weighs %d", back)
	}
	if len(p.lists) != 0 {
		t.Errorf("%v is left", p.lists)
	}
	for i := range wire.MaxFaultPorts + 10 {
		p.list(inoftest.ScaleHost(i).String(), 100)
	}
	if len(p.lists) > wire.MaxFaultPorts {
		t.Errorf("%d lists are kept", len(p.lists))
	}
}
