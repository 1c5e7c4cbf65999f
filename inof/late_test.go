package inof

import (
	"maps"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// A reflector that was stopped says what the other one said long before, word by
// word. Nothing of it counts any more, however often the record was there and gone.
func TestALateReflectorBringsNothingBack(t *testing.T) {
	for _, there := range []bool{true, false} { // how it ends
		n := newNetwork(t, 2, 2, AgreeIdentical, ReflectorConfig{})
		hears, speaks := devID(0), devID(1)
		prompt, late := n.ids[0], n.ids[1]
		for _, dev := range []int{0, 1} {
			for _, r := range n.ids {
				n.join(devID(dev), r)
			}
		}
		steady, moving := hostAt(hostIP(1), speaks, "eth1"), hostAt(hostIP(2), speaks, "eth2")
		flush := func() {
			n.fromClient(speaks, n.clients[speaks].Flush(n.now))
			for _, r := range n.ids {
				for n.deliverToRefl(speaks, r) {
				}
			}
			for n.deliverToClient(hears, prompt) {
			}
		}
		n.clients[hears].PutHost(hostAt(hostIP(0), hears, "eth1"))
		n.fromClient(hears, n.clients[hears].Flush(n.now))
		n.clients[speaks].PutHost(steady)
		flush()
		n.deliverAll()
		for i := range 7 {
			if i%2 == 0 {
				n.clients[speaks].PutFault(FaultRecord{Port: "eth1", Why: snsd.ReasonLinkDown, Since: n.now, Addrs: []netip.Addr{steady.Addr}})
				n.clients[speaks].WithdrawHost(moving.HostKey, snsd.ReasonAgedOut)
			} else {
				n.clients[speaks].WithdrawFault("eth1")
				n.clients[speaks].PutHost(moving)
			}
			flush()
		}
		if !there {
			n.clients[speaks].WithdrawFault("eth1")
			n.clients[speaks].PutHost(moving)
			flush()
		}
		type state struct {
			Hosts  map[zone.HostKey]zone.Host
			Faults map[portKey]FaultRecord
		}
		now := func() state { return state{maps.Clone(n.hosts[hears]), maps.Clone(n.fault[hears])} }
		want := now()
		if (len(want.Faults) == 1) != there {
			t.Fatalf("at the end the fault is %v, want it there: %v", want.Faults, there)
		}
		for i := 1; n.deliverToClient(hears, late); i++ {
			if diff := cmp.Diff(want, now(), cmpOpts); diff != "" {
				t.Fatalf("fault there in the end: %v: late word %d brings back what was (-before +after):\n%s", there, i, diff)
			}
		}
		n.settle()
	}
}
