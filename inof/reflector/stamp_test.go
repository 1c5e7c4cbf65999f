package reflector

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

func TestReflectorPassesStampsOnAndAddsItsOwn(t *testing.T) {
	b := newBench(t, inoftest.ThreeZones, Config{}, 2)
	mustJoin(t, b, 0, 1)
	for i, ip := range []int{0, 1} {
		b.clients[inoftest.DevID(i)].PutHost(inoftest.HostAt(inoftest.HostIP(ip), inoftest.DevID(i), "p"))
		b.flush(inoftest.DevID(i))
	}
	b.refl.cfg.Paced = true
	u := &wire.Update{Origin: inoftest.DevID(0), Epoch: 7, Seq: 9, FaultAt: inoftest.Us(0), DecidedAt: inoftest.Us(10), SentAt: inoftest.Us(20), ReceivedAt: inoftest.Us(300),
		Downs: []wire.DownRecord{{Device: inoftest.DevID(0), Port: "p", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.Us(0)}, Addrs: []netip.Addr{inoftest.HostIP(0)}}}}
	if out, err := b.refl.Receive(inoftest.DevID(0), u, inoftest.Us(350)); err != nil || len(out) != 0 || !b.refl.Waiting() {
		t.Fatalf("%d deliveries before a pull, %v", len(out), err)
	}
	out := b.refl.Pull(nil, inoftest.Us(400))
	if len(out) != 1 {
		t.Fatalf("%d deliveries", len(out))
	}
	b.refl.cfg.Paced = false
	want := inoftest.Stamped{Fault: inoftest.Us(0), Decided: inoftest.Us(10), Sent: inoftest.Us(20), Reflector: inoftest.Us(300), Reflected: inoftest.Us(400)}
	if got := inoftest.TimesOf(out[0].Msg.(*wire.Update)); got != want {
		t.Errorf("passed on with %+v, want %+v", got, want)
	}
	// What a client missed comes late for another reason than those measured.
	b.refl.Leave(inoftest.DevID(1), inoftest.Us(500))
	u2 := *u
	u2.Seq, u2.Downs = 10, []wire.DownRecord{{Device: inoftest.DevID(0), Port: "p", Addrs: []netip.Addr{inoftest.HostIP(0)}}}
	if _, err := b.refl.Receive(inoftest.DevID(0), &u2, inoftest.Us(600)); err != nil {
		t.Fatal(err)
	}
	if early := b.refl.Resume(inoftest.DevID(1), &wire.Resume{Epoch: 1, Seq: out[0].Msg.(*wire.Update).Pos.Seq}, nil, inoftest.Us(800)); len(early) != 1 || early[0].Msg.Type() != wire.TypeBound {
		t.Fatalf("%d deliveries before it has said what it has to say", len(early))
	}
	late, err := b.refl.Receive(inoftest.DevID(1), &wire.EndOfSync{Epoch: 7, Seq: 1, Resumed: true}, inoftest.Us(900))
	if err != nil || len(late) != 2 {
		t.Fatalf("%d deliveries, want what was missed and an EndOfSync", len(late))
	}
	if got, want := inoftest.TimesOf(late[0].Msg.(*wire.Update)), (inoftest.Stamped{Sent: inoftest.Us(900), Reflected: inoftest.Us(900)}); got != want {
		t.Errorf("sent again with %+v, want %+v", got, want)
	}
}

func TestZoneChangesAreEvents(t *testing.T) {
	b := newBench(t, inoftest.ThreeZones, Config{}, 1)
	mustJoin(t, b, 0)
	b.clients[inoftest.DevID(0)].PutHost(inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p"))
	b.flush(inoftest.DevID(0))
	set := inoftest.ThreeZones
	set.Zones = set.Zones[1:]
	b.refl.cfg.Paced = true
	if out, err := b.refl.SetZones(set, inoftest.Us(50)); err != nil || len(out) != 0 {
		t.Fatalf("%d deliveries before a pull, %v", len(out), err)
	}
	out := b.refl.Pull(nil, inoftest.Us(70))
	if len(out) == 0 {
		t.Fatal("nothing is told")
	}
	if got, want := inoftest.TimesOf(out[0].Msg.(*wire.Update)), (inoftest.Stamped{Fault: inoftest.Us(50), Decided: inoftest.Us(50), Sent: inoftest.Us(70), Reflector: time.Time{}, Reflected: inoftest.Us(70)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
