package reflector

import (
	"testing"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// pairOfTwo is two reflectors with one zone, and two devices with a host each that
// know each other.
func pairOfTwo(t *testing.T) (n *network, k zone.HostKey) {
	t.Helper()
	n = newNetwork(t, 2, 2, client.AgreeIdentical, Config{})
	set := zone.Set{Zones: []zone.Zone{{Name: "db", Members: []zone.Member{{Kind: zone.MemberRange, First: inoftest.HostIP(0), Last: inoftest.HostIP(9)}}}}}
	for _, r := range n.ids {
		if _, err := n.refls[r].SetZones(set, n.now); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		n.clients[inoftest.DevID(i)].PutHost(inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(i), "Ethernet1"))
	}
	n.settle()
	k = zone.HostKey{Addr: inoftest.HostIP(0), Device: inoftest.DevID(0), Port: "Ethernet1"}
	if _, ok := n.hosts[inoftest.DevID(1)][k]; !ok {
		t.Fatal("the two do not know each other")
	}
	return n, k
}

// A device that comes back with an epoch before that of its last life, its clock set
// back and its state lost, is believed all the same, also while one of two reflectors
// is silent whose last word is of the later epoch: the other one tells it.
func TestADeviceWhoseClockWasSetBackIsBelieved(t *testing.T) {
	for silent := range 2 {
		clockSetBack(t, silent)
	}
}

func clockSetBack(t *testing.T, which int) {
	t.Helper()
	n, k := pairOfTwo(t)
	silent, left := n.ids[which], n.ids[1-which]
	for i := range 2 {
		n.cut(inoftest.DevID(i), silent)
	}
	before := n.clients[inoftest.DevID(0)].Epoch()
	n.restartClient(inoftest.DevID(0), before-5, client.AgreeIdentical)
	n.join(inoftest.DevID(0), left)
	n.deliverAll()
	c := n.clients[inoftest.DevID(0)]
	if got := c.Epoch(); got <= before || c.Counters().EpochsRaised != 1 {
		t.Errorf("epoch %d, raised %d times; want more than %d, once", got, c.Counters().EpochsRaised, before)
	}
	if _, ok := n.hosts[inoftest.DevID(1)][k]; !ok {
		t.Fatal("the host is gone because its device has restarted")
	}
	n.fromClient(inoftest.DevID(0), faulty(c, k, n))
	n.deliverAll()
	if len(n.down(inoftest.DevID(1))) != 1 {
		t.Error("a fault of the new life is not believed")
	}
	setDown(c, k.Port, zone.Down{})
	n.fromClient(inoftest.DevID(0), c.Flush(n.now))
	n.deliverAll()
	if len(n.down(inoftest.DevID(1))) != 0 {
		t.Error("the end of a fault is not believed")
	}
	c.WithdrawHost(k, snsd.ReasonAgedOut)
	n.fromClient(inoftest.DevID(0), c.Flush(n.now))
	n.deliverAll()
	if _, ok := n.hosts[inoftest.DevID(1)][k]; ok {
		t.Error("a withdrawal of the new life is not believed")
	}
	n.settle() // the silent one is back, with what it last heard
}

func faulty(c *client.Client, k zone.HostKey, n *network) []wire.Delivery {
	setDown(c, k.Port, zone.Down{Why: snsd.ReasonLinkDown, Since: n.now}, k.Addr)
	return c.Flush(n.now)
}

// Two starts with the clock set back, of which each meets another reflector that has seen the
// same start before: neither takes what the first has said for words of the second.
func TestTwoRaisedEpochsDiffer(t *testing.T) {
	n, k := pairOfTwo(t)
	before := n.clients[inoftest.DevID(0)].Epoch()
	n.restartClient(inoftest.DevID(0), before-5, client.AgreeIdentical)
	n.join(inoftest.DevID(0), n.ids[0])
	n.deliverAll()
	k.Port = "Ethernet2"
	n.clients[inoftest.DevID(0)].PutHost(inoftest.HostAt(k.Addr, k.Device, k.Port))
	n.fromClient(inoftest.DevID(0), n.clients[inoftest.DevID(0)].Flush(n.now)) // and it is lost
	n.restartClient(inoftest.DevID(0), before-4, client.AgreeIdentical)
	n.join(inoftest.DevID(0), n.ids[1])
	n.settle()
}

// A reflector whose epoch is another one than what a client has seen, greater or
// smaller, sends everything: what is compared there is only whether it is the same.
func TestAReflectorWithAnOlderEpochSendsEverything(t *testing.T) {
	n, _ := pairOfTwo(t)
	r := n.ids[0]
	old := n.refls[r]
	for i := range 2 {
		n.cut(inoftest.DevID(i), r)
	}
	x, err := New(r, 0x1000, old.Zones(), Config{Known: old.KnownDevices()}, n.now)
	if err != nil {
		t.Fatal(err)
	}
	n.refls[r] = x
	n.settle()
	for i := range 2 {
		n.cut(inoftest.DevID(i), r)
	}
	back, err := New(r, 1, old.Zones(), Config{Known: x.KnownDevices()}, n.now)
	if err != nil {
		t.Fatal(err)
	}
	n.refls[r] = back
	n.settle()
	if d := back.devices[inoftest.DevID(0)]; d.out.Resumed || d.out.Why != "the sender has restarted since" {
		t.Errorf("resumed %v: %s", d.out.Resumed, d.out.Why)
	}
}
