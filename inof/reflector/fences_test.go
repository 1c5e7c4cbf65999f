package reflector

import (
	"errors"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// What a device has fenced reaches those who know the array, and no others; it ends with the
// device's session, with the host, and when the device says so.
func TestFences(t *testing.T) {
	b := newBench(t, inoftest.ThreeZones, Config{}, 3)
	mustJoin(t, b, 0, 1, 2)
	array, dev := inoftest.HostIP(0), inoftest.DevID(0)
	k := zone.HostKey{Addr: array, Device: dev, Port: "p"}
	for i := range 3 {
		b.clients[inoftest.DevID(i)].PutHost(inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(i), "p"))
		b.flush(inoftest.DevID(i))
	}
	fence := func(n int) {
		var peers []wire.FencePeer
		for i := range n {
			peers = append(peers, wire.FencePeer{Host: inoftest.HostIP(1 + i), Level: snsd.FenceNetwork, Since: b.now, Hold: 20 * time.Second, Took: 3 * time.Millisecond})
		}
		b.clients[dev].SetFence("p", array, peers)
		b.flush(dev)
	}
	want := func(what string, n int) {
		t.Helper()
		if got := b.clients[inoftest.DevID(1)].Fenced()[k]; len(got) != n {
			t.Errorf("%s: a device in the array's zone knows %v, want %d hosts", what, got, n)
		}
		if got := b.clients[inoftest.DevID(2)].Fenced(); len(got) > 0 {
			t.Errorf("%s: a device in no zone of the array knows %v", what, got)
		}
	}
	fence(1)
	want("fenced", 1)
	fence(2)
	want("one more", 2)
	b.leave(inoftest.DevID(1))
	want("without a session", 0)
	b.join(inoftest.DevID(1))
	want("with one again", 2)
	fence(0)
	want("lifted", 0)
	fence(1)
	b.leave(dev)
	want("the array's device has no session", 0)
	b.join(dev)
	want("it has one again", 1)
	b.clients[dev].WithdrawHost(k, snsd.ReasonAgedOut)
	b.flush(dev)
	want("the array has gone", 0)
	if n := b.refl.devices[dev].peers; n != 0 || len(b.refl.devices[dev].fenced) != 0 {
		t.Errorf("%d fenced hosts are left over", n)
	}
}

// A device fences at hosts of its own only, and not without bound.
func TestFencesThatAreRefused(t *testing.T) {
	b := newBench(t, inoftest.ThreeZones, Config{}, 2)
	mustJoin(t, b, 0, 1)
	u := &wire.Update{Origin: inoftest.DevID(0), Epoch: 7, Seq: 1}
	for i := range maxFenced/wire.MaxFencePeers + 1 {
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(0), "p")})
		u.Fences = append(u.Fences, wire.FenceRecord{Device: inoftest.DevID(0), Port: "p", Array: inoftest.HostIP(i), Peers: make([]wire.FencePeer, wire.MaxFencePeers)})
	}
	u.Fences = append(u.Fences, wire.FenceRecord{Device: inoftest.DevID(1), Port: "p", Array: inoftest.HostIP(1), Peers: make([]wire.FencePeer, 1)})
	_, err := b.refl.Receive(inoftest.DevID(0), u, b.now)
	var refused *wire.RefusedError
	if !errors.As(err, &refused) || refused.Refused != 2 {
		t.Errorf("%v", err)
	}
	if c := b.refl.Counters(); c.OverLimit != 1 || c.NotOwned != 1 || b.refl.devices[inoftest.DevID(0)].peers != maxFenced {
		t.Errorf("%+v, %d fenced hosts are kept", c, b.refl.devices[inoftest.DevID(0)].peers)
	}
}
