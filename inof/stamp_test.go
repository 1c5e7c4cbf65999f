package inof

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/snsd"
)

// stamped picks the times of a message.
type stamped struct{ Fault, Decided, Sent, Reflector, Reflected time.Time }

func timesOf(u *Update) stamped {
	return stamped{u.FaultAt, u.DecidedAt, u.SentAt, u.ReflectorAt, u.ReflectedAt}
}

func us(n int) time.Time { return t0.Add(time.Duration(n) * time.Microsecond) }

// Golden bytes of the times of an Update (docs/protocol.md): the last two trail, and
// are there only when one of them is known.
func TestTimesOnTheWire(t *testing.T) {
	const (
		head  = "01 000005 04 c0000201 02 000010 0000000000000001 0000000000000002"
		three = "0000000000000001 0000000000000002 0000000000000003"
	)
	ns := func(n int64) time.Time { return time.Unix(0, n).UTC() }
	u := &Update{Origin: netip.AddrFrom4([4]byte{192, 0, 2, 1}), Epoch: 1, Seq: 2, FaultAt: ns(1), SentAt: ns(2), ReflectedAt: ns(3)}
	five := *u
	five.DecidedAt, five.ReflectorAt = ns(4), ns(5)
	four := *u
	four.DecidedAt = ns(4)
	local := *u
	local.ReceivedAt = ns(6) // of this end alone
	for _, c := range []struct {
		name string
		u    *Update
		back *Update
		body string
	}{
		{"three", u, u, head + "03 000018" + three},
		{"five", &five, &five, head + "03 000028" + three + "0000000000000004 0000000000000005"},
		{"four", &four, &four, head + "03 000028" + three + "0000000000000004 0000000000000000"},
		{"received here", &local, u, head + "03 000018" + three},
	} {
		want := message(t, TypeUpdate, c.body)
		if diff := cmp.Diff(want, frameOf(t, c.u)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		m, err := Decode(want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Message(c.back), m, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if _, err := Decode(message(t, TypeUpdate, head+"03 00001c"+three+"00000004")); err == nil {
		t.Error("half of a fourth time was taken")
	}
}

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

func TestClientStampsItsEvents(t *testing.T) {
	c := NewClient(devID(0), 7)
	c.Up(reflID, t0)
	c.PutHost(hostAt(hostIP(0), devID(0), "p"))
	first := c.Flush(us(5))
	if got, want := timesOf(first[0].Msg.(*Update)), (stamped{Sent: us(5)}); got != want {
		t.Errorf("without an event: %+v, want %+v", got, want)
	}
	c.PutFault(FaultRecord{Port: "p", Why: snsd.ReasonLinkDown, Since: us(10), Addrs: []netip.Addr{hostIP(0)}})
	c.MarkFault(us(10))
	out := c.Flush(us(30))
	StampSent(out, us(40))
	if got, want := timesOf(out[0].Msg.(*Update)), (stamped{Fault: us(10), Decided: us(30), Sent: us(40)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What waits for a slow reader keeps the times of the event that waits longest.
func TestCoalescedUpdatesKeepTheEarliestEvent(t *testing.T) {
	fault := func(seq uint64, port string, at time.Time) *Update {
		return &Update{Origin: devID(0), Epoch: 1, Seq: seq, FaultAt: at, DecidedAt: at, SentAt: at,
			Faults: []FaultRecord{{Op: Put, Device: devID(0), Port: port, Addrs: []netip.Addr{hostIP(0)}}}}
	}
	var c coalescer
	c.add(&Update{Origin: devID(0), Epoch: 1, Seq: 1, SentAt: us(1), Hosts: []HostRecord{{Op: Put, Host: hostAt(hostIP(0), devID(0), "p")}}})
	c.add(fault(2, "p", us(7)))
	c.add(fault(3, "q", us(3)))
	c.add(fault(4, "r", us(9)))
	out := c.take()
	if len(out) != 1 || out[0].Seq != 4 {
		t.Fatalf("%d messages, the first %+v", len(out), out[0])
	}
	if got, want := timesOf(out[0]), (stamped{Fault: us(3), Decided: us(3), Sent: us(3)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Received is when the bytes were read, not when the owner of the client got to them.
func TestTransportStampsWhatItReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		pass := newPassword("password1")
		r := startReflector(t, &f, pass, 1, threeZones, nil)
		c := startClient(t, &f, pass, devID(0), 1, hostAt(hostIP(0), devID(0), "p"))
		after(time.Second)
		busy := make(chan struct{})
		go c.wait(func() { <-busy }) // the owner has other things to do
		synctest.Wait()
		sent := time.Now()
		r.wait(func() {
			set := threeZones
			set.Zones = set.Zones[1:]
			out, err := r.refl.SetZones(set, time.Now())
			if err != nil {
				t.Error(err)
			}
			_ = r.peers.Deliver(out)
		})
		after(300 * time.Millisecond)
		close(busy)
		synctest.Wait()
		var got []Applied
		c.wait(func() { got = c.applied })
		last := got[len(got)-1]
		if !last.ReceivedAt.Equal(sent) || !last.FaultAt.Equal(sent) {
			t.Errorf("sent at %v, received at %v, event at %v", sent, last.ReceivedAt, last.FaultAt)
		}
		c.stop()
		r.stop()
	})
}
