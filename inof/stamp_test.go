package inof

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

func TestReflectorPassesStampsOnAndAddsItsOwn(t *testing.T) {
	b := newBench(t, threeZones, ReflectorConfig{}, 2)
	mustJoin(t, b, 0, 1)
	for i, ip := range []int{0, 1} {
		b.clients[devID(i)].PutHost(hostAt(hostIP(ip), devID(i), "p"))
		b.flush(devID(i))
	}
	b.refl.cfg.Paced = true
	u := &Update{Origin: devID(0), Epoch: 7, Seq: 9, FaultAt: us(0), DecidedAt: us(10), SentAt: us(20), ReceivedAt: us(300),
		Faults: []FaultRecord{{Op: Put, Device: devID(0), Port: "p", Why: snsd.ReasonLinkDown, Since: us(0), Addrs: []netip.Addr{hostIP(0)}}}}
	if out, err := b.refl.Receive(devID(0), u, us(350)); err != nil || len(out) != 0 || !b.refl.Waiting() {
		t.Fatalf("%d deliveries before a pull, %v", len(out), err)
	}
	out := b.refl.Pull(nil, us(400))
	if len(out) != 1 {
		t.Fatalf("%d deliveries", len(out))
	}
	b.refl.cfg.Paced = false
	want := stamped{us(0), us(10), us(20), us(300), us(400)}
	if got := timesOf(out[0].Msg.(*Update)); got != want {
		t.Errorf("passed on with %+v, want %+v", got, want)
	}
	// What a client missed comes late for another reason than those measured.
	b.refl.Leave(devID(1), us(500))
	u2 := *u
	u2.Seq, u2.Faults = 10, []FaultRecord{{Op: Withdraw, Device: devID(0), Port: "p"}}
	if _, err := b.refl.Receive(devID(0), &u2, us(600)); err != nil {
		t.Fatal(err)
	}
	if early := b.refl.Resume(devID(1), &Resume{Epoch: 1, Seq: out[0].Msg.(*Update).Pos.Seq}, nil, us(800)); len(early) != 1 || early[0].Msg.Type() != TypeBound {
		t.Fatalf("%d deliveries before it has said what it has to say", len(early))
	}
	late, err := b.refl.Receive(devID(1), &EndOfSync{Epoch: 7, Seq: 1, Resumed: true}, us(900))
	if err != nil || len(late) != 2 {
		t.Fatalf("%d deliveries, want what was missed and an EndOfSync", len(late))
	}
	if got, want := timesOf(late[0].Msg.(*Update)), (stamped{Sent: us(900), Reflected: us(900)}); got != want {
		t.Errorf("sent again with %+v, want %+v", got, want)
	}
}

func TestZoneChangesAreEvents(t *testing.T) {
	b := newBench(t, threeZones, ReflectorConfig{}, 1)
	mustJoin(t, b, 0)
	b.clients[devID(0)].PutHost(hostAt(hostIP(0), devID(0), "p"))
	b.flush(devID(0))
	set := threeZones
	set.Zones = set.Zones[1:]
	b.refl.cfg.Paced = true
	if out, err := b.refl.SetZones(set, us(50)); err != nil || len(out) != 0 {
		t.Fatalf("%d deliveries before a pull, %v", len(out), err)
	}
	out := b.refl.Pull(nil, us(70))
	if len(out) == 0 {
		t.Fatal("nothing is told")
	}
	if got, want := timesOf(out[0].Msg.(*Update)), (stamped{us(50), us(50), us(70), time.Time{}, us(70)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
