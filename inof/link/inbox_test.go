package link

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

func inboxPeer(last byte) *Peer { return &Peer{device: netip.AddrFrom4([4]byte{10, 0, 0, last})} }

// hostsUpdate says n hosts of a device.
func hostsUpdate(dev netip.Addr, op wire.Op, n int) *wire.Update {
	u := &wire.Update{Origin: dev, Epoch: 1, Seq: 1}
	for i := range n {
		h := zone.Host{HostKey: zone.HostKey{Addr: netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}), Device: dev, Port: "p"}}
		u.Hosts = append(u.Hosts, wire.HostRecord{Op: op, Host: h})
	}
	return u
}

func inboxMessage(p *Peer, m wire.Message, size int) PeerEvent {
	return PeerEvent{Peer: p, Kind: PeerMessage, Msg: m, At: time.Now(), Size: size}
}

func faultUpdate(dev netip.Addr) *wire.Update {
	return &wire.Update{Origin: dev, Epoch: 1, Seq: 1, Downs: []wire.DownRecord{{Device: dev, Port: "p", Down: zone.Down{Why: snsd.ReasonLinkDown}, Addrs: []netip.Addr{dev}}}}
}

// A device that sends without end delays another one's message by one piece of one
// message, and its loss by no more even if it says losses without end itself.
func TestOneDeviceDelaysAnotherByAPiece(t *testing.T) {
	flood, honest := inboxPeer(1), inboxPeer(2)
	for _, c := range []struct {
		name         string
		flood, other wire.Message
		most         int
	}{
		{"changes before a change", hostsUpdate(flood.device, wire.Put, 4000), hostsUpdate(honest.device, wire.Put, 1), 1},
		{"changes before a loss", hostsUpdate(flood.device, wire.Put, 4000), faultUpdate(honest.device), 0},
		{"losses before a loss", hostsUpdate(flood.device, wire.Withdraw, 4000), faultUpdate(honest.device), 1},
		{"losses before a change", hostsUpdate(flood.device, wire.Withdraw, 4000), hostsUpdate(honest.device, wire.Put, 1), urgentRow},
	} {
		b := NewInbox(1 << 20)
		for range 100 {
			b.Put(inboxMessage(flood, c.flood, 1000), true, nil)
		}
		b.Take()
		b.Put(inboxMessage(honest, c.other, 100), true, nil)
		before := 0
		for {
			ev, client, ok := b.Take()
			if !ok || !client {
				t.Fatalf("%s: the message is lost", c.name)
			}
			if ev.Peer == honest {
				break
			}
			if n := len(ev.Msg.(*wire.Update).Hosts); n > pieceRecords {
				t.Errorf("%s: a piece has %d records, want at most %d", c.name, n, pieceRecords)
			}
			before++
		}
		if before > c.most {
			t.Errorf("%s: %d pieces came before it, want at most %d", c.name, before, c.most)
		}
	}
}

// What is taken in pieces is what was put, in order and each record once.
func TestPiecesAreTheMessage(t *testing.T) {
	p := inboxPeer(1)
	u := hostsUpdate(p.device, wire.Put, 100)
	gone := hostsUpdate(p.device, wire.Withdraw, 70)
	u.Hosts = append(u.Hosts, gone.Hosts...)
	for i := range 90 {
		u.Downs = append(u.Downs, wire.DownRecord{Device: p.device, Port: string(rune('A' + i)), Down: zone.Down{Why: snsd.ReasonLinkDown}, Addrs: make([]netip.Addr, i)})
	}
	b := NewInbox(0)
	b.Put(PeerEvent{Peer: p, Kind: PeerUp}, true, nil)
	b.Put(inboxMessage(p, u, 10), true, nil)
	b.Put(PeerEvent{Peer: p, Kind: PeerDown}, true, nil)
	var kinds []PeerEventKind
	var ops []wire.Op
	const wantAddrs = 90 * 89 / 2
	ports, addrs, stage := map[string]bool{}, 0, 0
	for {
		ev, _, ok := b.Take()
		if !ok {
			break
		}
		if ev.Kind != PeerMessage {
			kinds = append(kinds, ev.Kind)
			continue
		}
		m := ev.Msg.(*wire.Update)
		if m.Seq != u.Seq || m.Origin != u.Origin {
			t.Fatalf("a piece is of %v %d", m.Origin, m.Seq)
		}
		was := stage
		for _, d := range m.Downs {
			ports[d.Port] = true
			addrs += len(d.Addrs)
			stage = 1
		}
		for _, h := range m.Hosts {
			ops = append(ops, h.Op)
			if h.Op == wire.Withdraw && was > 0 || h.Op == wire.Put && (addrs < wantAddrs || len(ports) < len(u.Downs)) {
				t.Fatalf("a host to %v came out of turn", h.Op)
			}
		}
	}
	if len(ops) != 170 || addrs != wantAddrs || len(kinds) != 2 || kinds[1] != PeerDown {
		t.Errorf("%d hosts, %d addresses that are down, %v", len(ops), addrs, kinds)
	}
	if n := b.Len(); n != 0 {
		t.Errorf("%d events are left", n)
	}
}

// A full queue holds up the reader of its own device and nobody else's, and is shown.
func TestAFullQueueHoldsUpItsOwnPeerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flood, honest := inboxPeer(1), inboxPeer(2)
		b := NewInbox(1000)
		sent := 0
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 100 {
				b.Put(inboxMessage(flood, hostsUpdate(flood.device, wire.Put, 1), 300), true, stop)
				sent++
			}
		}()
		synctest.Wait()
		if sent != 3 {
			t.Errorf("%d messages of 300 bytes were taken, want 3 of a limit of 1000 bytes", sent)
		}
		time.Sleep(2 * time.Second)
		b.Put(inboxMessage(honest, hostsUpdate(honest.device, wire.Put, 1), 5000), true, stop) // alone it may be larger
		b.Put(PeerEvent{Peer: flood, Kind: PeerDrained}, true, stop)
		if s := b.Status(time.Now()); s.Events != 5 || s.Full != 1 || s.Peers != 2 || s.Bytes != 5900 || s.Oldest != 2*time.Second || s.Device != flood.device {
			t.Errorf("status %+v", s)
		}
		for range 4 {
			b.Take()
			synctest.Wait()
		}
		if sent < 5 {
			t.Errorf("%d messages were taken after some had left", sent)
		}
		close(stop)
		<-done
	})
}

// A device that says more than it may is held to its pace, in fake time, whatever the size of its
// messages, and another session of it does not begin anew.
func TestADeviceIsHeldToItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ps := newPacers(Pace{PerSecond: 100, Burst: 1000}, 10, func(netip.Addr) bool { return true })
		p := inboxPeer(1)
		p.c = &conn{pace: ps.of(p.device)}
		b := NewInbox(1 << 20)
		began := time.Now()
		takeAll := func(of *Peer, m wire.Message) {
			t.Helper()
			b.Put(inboxMessage(of, m, 100), true, nil)
			for b.Status(time.Now()).Events > 0 {
				if _, _, ok := b.Take(); !ok {
					<-b.Ready()
				}
			}
		}
		atOnce := burstAtOnce(1000)
		takeAll(p, hostsUpdate(p.device, wire.Put, atOnce-wire.Weight(&wire.Update{})))
		if d := time.Since(began); d != 0 {
			t.Fatalf("what may come at once took %v", d)
		}
		// The rest of a burst takes four seconds, so that others are served beside it; its last piece is
		// taken when what came before it is made up for.
		takeAll(p, hostsUpdate(p.device, wire.Put, 1000-atOnce-wire.Weight(&wire.Update{})))
		if d := time.Since(began); d > burstTime || d < burstTime*9/10 {
			t.Fatalf("a burst took %v", d)
		}
		// The last piece is taken when what came before it is made up for.
		takeAll(p, hostsUpdate(p.device, wire.Put, 1100-wire.Weight(&wire.Update{})))
		if d := time.Since(began).Round(time.Microsecond); d != 11*time.Second-120*time.Millisecond { // 12 records in the last one
			t.Fatalf("1100 records more at 100 a second took %v", d)
		}
		if since, held := p.c.pace.info(time.Now()); !since.Equal(began) || held != time.Since(began) {
			t.Errorf("held up since %v, for %v of %v", since.Sub(began), held, time.Since(began))
		}
		again := &Peer{device: p.device, c: &conn{pace: ps.of(p.device)}}
		again.Charge(workRecords * 100)
		if takeAll(again, &wire.EndOfSync{}); time.Since(began).Round(time.Microsecond) != 12*time.Second {
			t.Errorf("another session of the device, charged with 100 records: after %v", time.Since(began))
		}
	})
}

// Keepalives are answered at once and never come to the Inbox: they have a pace of their own, and
// what a device owes for its records holds up none.
func TestKeepalivesHaveAPaceOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ps := newPacers(Pace{}, 10, func(netip.Addr) bool { return true })
		c := &conn{pace: ps.of(inboxPeer(1).device)}
		c.pace.charge(DefaultRecordsBurst, time.Now())
		c.pace.charge(DefaultRecordsBurst, time.Now())
		began := time.Now()
		for range keepalivesBurst {
			if err := c.slowDown(); err != nil || time.Since(began) != 0 {
				t.Fatalf("a burst took %v, %v", time.Since(began), err)
			}
		}
		for range keepalivesPerSecond {
			if err := c.slowDown(); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(began); d != time.Second {
			t.Errorf("as many as there may be in a second took %v", d)
		}
		c.out.stopping.Store(true)
		if c.slowDown() == nil {
			t.Error("a session that is to end goes on waiting")
		}
	})
}

// A loss that stands behind more than is read of a device which owes is found as soon as there is
// room for it: it waits for what its own device owes and no longer, nothing before it is left out,
// and others do not wait at all.
func TestALossBehindMoreThanIsReadWaitsForItsOwnDeviceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond, burst, before = 100, 1000, 4 * restingRoom
		ps := newPacers(Pace{PerSecond: perSecond, Burst: burst}, 10, func(netip.Addr) bool { return true })
		p, other := inboxPeer(1), inboxPeer(2)
		p.c, other.c = &conn{pace: ps.of(p.device)}, &conn{pace: ps.of(other.device)}
		b := NewInbox(0)
		p.c.pace.charge(burst, time.Now())
		p.c.pace.charge(burst, time.Now()) // ten seconds
		began := time.Now()
		loss := faultUpdate(p.device)
		go func() { // the session's reader
			for range before {
				b.Put(inboxMessage(p, hostsUpdate(p.device, wire.Put, 1), DefaultInboxBytes), true, nil)
			}
			b.Put(inboxMessage(p, loss, 100), true, nil)
		}()
		synctest.Wait()
		if _, _, ok := b.Take(); ok {
			t.Fatal("a device that owes is served")
		}
		synctest.Wait()
		if s := b.Status(time.Now()); s.Events != restingRoom || s.Full != 1 {
			t.Fatalf("read of it: %+v", s)
		}
		b.Put(inboxMessage(other, faultUpdate(other.device), 100), true, nil)
		if ev, _, ok := b.Take(); !ok || ev.Peer != other || time.Since(began) != 0 {
			t.Fatalf("another device waits: %v", ev.Peer)
		}
		for n := 0; ; n++ {
			ev, _, ok := b.Take()
			if !ok {
				n--
				<-b.Ready()
				continue
			}
			if ev.Msg == loss {
				if n != before {
					t.Errorf("%d of %d messages came before it", n, before)
				}
				break
			}
		}
		own := time.Duration(before*(1+4)) * time.Second / perSecond // what stands before it, at its pace
		if d := time.Since(began); d < 10*time.Second || d > 10*time.Second+own {
			t.Errorf("taken after %v, it owed for 10 s and said for %v more", d, own)
		}
	})
}

// A switch that owes what its syncs have made loses a host: the loss and what it said before are
// taken at once and in order, what it said after that waits. Who tells losses without end has
// a share of its pace for them and no more.
func TestALossDoesNotWaitForWhatItsDeviceOwes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond, burst = 100, 1000
		ps := newPacers(Pace{PerSecond: perSecond, Burst: burst}, 10, func(netip.Addr) bool { return true })
		p := inboxPeer(1)
		p.c = &conn{pace: ps.of(p.device)}
		b := NewInbox(1 << 20)
		p.c.pace.charge(burst, time.Now())
		p.c.pace.charge(burst, time.Now()) // ten seconds
		began := time.Now()
		change, after := hostsUpdate(p.device, wire.Put, 1), hostsUpdate(p.device, wire.Put, 2)
		b.Put(inboxMessage(p, change, 100), true, nil)
		if _, _, ok := b.Take(); ok {
			t.Fatal("a device that owes is served")
		}
		loss := faultUpdate(p.device)
		time.Sleep(time.Second)
		if s := b.Status(time.Now()); s.Resting != 1 || s.RestingOldest != time.Second || s.RestingDevice != p.device || s.Oldest != 0 || s.Rested != 1 {
			t.Errorf("while it rests: status %+v", s)
		}
		b.Put(inboxMessage(p, loss, 100), true, nil)
		b.Put(inboxMessage(p, after, 100), true, nil)
		for _, want := range []wire.Message{change, loss} {
			<-b.Ready()
			if ev, _, ok := b.Take(); !ok || ev.Msg != want {
				t.Fatalf("%v is taken in the place of %v", ev.Msg, want)
			}
		}
		if d := time.Since(began); d != time.Second {
			t.Errorf("a loss waited %v for what its device owes", d-time.Second)
		}
		if _, _, ok := b.Take(); ok {
			t.Error("what is no loss is served too")
		}
		if s := b.Status(time.Now()); s.Spared != 1 || s.Resting != 1 {
			t.Errorf("after its loss: status %+v", s)
		}
		taken := 0
		for range 10000 {
			b.Put(inboxMessage(p, faultUpdate(p.device), 1), true, nil)
		}
		for end := time.Now().Add(8 * time.Second); time.Now().Before(end); {
			if ev, _, ok := b.Take(); ok {
				taken += wire.Weight(ev.Msg)
				continue
			}
			<-b.Ready()
		}
		if most := burst/lossShare + 8*perSecond/lossShare + 20; taken > most || taken < most/2 {
			t.Errorf("losses without end: %d records were taken in 8 s, want about %d at most", taken, most)
		}
	})
}

// A session that is to end does not wait for room in the queue of its device.
func TestASessionThatIsToEndDoesNotWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inboxPeer(1)
		p.c = &conn{}
		b := NewInbox(100)
		b.Put(inboxMessage(p, hostsUpdate(p.device, wire.Put, 1), 100), true, nil)
		done := make(chan struct{})
		go func() {
			b.Put(inboxMessage(p, hostsUpdate(p.device, wire.Put, 1), 100), true, nil)
			close(done)
		}()
		synctest.Wait()
		p.c.out.stopping.Store(true)
		<-done
		if n := b.Len(); n != 1 {
			t.Errorf("%d events wait, want the first", n)
		}
	})
}

// A device whose messages make more work than it may is not served until that is made up for, and
// nobody waits for it: what it has sent already rests too. Its end waits as long as a burst takes.
func TestADeviceInDebtIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ps := newPacers(Pace{PerSecond: 100, Burst: 1000}, 10, func(netip.Addr) bool { return true })
		flood, honest := inboxPeer(1), inboxPeer(2)
		flood.c = &conn{pace: ps.of(flood.device)}
		b := NewInbox(1 << 20)
		take := func() *Peer {
			t.Helper()
			ev, _, ok := b.Take()
			if !ok {
				return nil
			}
			return ev.Peer
		}
		b.Put(PeerEvent{Peer: flood, Kind: PeerUp}, true, nil)
		for range 10 {
			b.Put(inboxMessage(flood, hostsUpdate(flood.device, wire.Put, 1), 100), true, nil)
		}
		for range 3 { // its PeerUp, and two messages
			if take() != flood {
				t.Fatal("a device that owes nothing is not served")
			}
		}
		flood.Charge(workRecords * 1000)
		flood.Charge(workRecords * 190) // with the two messages, two seconds
		began := time.Now()
		b.Put(inboxMessage(honest, hostsUpdate(honest.device, wire.Put, 1), 100), true, nil)
		if take() != honest {
			t.Error("a device that owes work is served before another one's change")
		}
		<-b.Ready() // of what was put
		if take() != nil {
			t.Error("a device that owes work is served")
		}
		select {
		case <-b.Ready():
			t.Error("there is nothing to take, and the owner is woken")
		default:
		}
		if n, s := b.Len(), b.Status(time.Now().Add(time.Second)); n != 0 || s.Events != 8 || s.Oldest != 0 {
			t.Errorf("while a device rests %d events wait for the owner, status %+v", n, s)
		}
		<-b.Ready()
		if waited := time.Since(began); waited != 2*time.Second || take() != flood {
			t.Errorf("a device that owed the work of two seconds is served after %v", waited)
		}
		if _, held := flood.c.pace.info(time.Now()); held != 2*time.Second {
			t.Errorf("it is shown as held up for %v", held)
		}
		flood.Charge(workRecords * 1000)
		if take() != nil {
			t.Error("a device that owes work again is served")
		}
		b.Put(PeerEvent{Peer: flood, Kind: PeerDown}, true, nil)
		began = time.Now()
		for range 8 {
			for take() != flood {
				<-b.Ready()
			}
		}
		if waited := time.Since(began); waited == 0 || waited > time.Second {
			t.Errorf("the end of a session waits %v for what its device owes, want a moment, a second at most", waited)
		}
	})
}
