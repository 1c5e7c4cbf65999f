package daemon

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/fabric"
)

// portNow is what the daemon knows of a port, once its owner has nothing else to do.
func (n *node) port(name string) (p fabric.Port) {
	for _, p = range n.fake.Ports() {
		if p.Name == name {
			return p
		}
	}
	n.t.Fatalf("no port %s", name)
	return p
}

// Whoever brings the loss of a port has done what follows from it when it is done: the host's
// partners behind the same switch have been told.
func TestWhoBringsALossDoesTheOwnersWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		tor := f.nodes["tor3"]
		settle(time.Second)
		down := tor.port("eth1")
		down.Carrier = false
		before := tor.d.device.left
		time.Sleep(time.Microsecond)
		tor.d.device.portEvent(fabric.Event{Kind: fabric.PortChanged, Port: down, At: time.Now(), Changes: 100})
		// No other goroutine was let in since: the frame has left, and nobody was woken for it.
		if left := tor.d.device.left; !left.After(before) {
			t.Error("t3 was not told when the event had been handed over")
		}
		if tor.d.device.ports.waiting() || len(tor.d.device.ports.ready) > 0 {
			t.Error("the owner was woken for what was done")
		}
		settle(time.Second)
	})
}

// While the owner is at work events wait for it, in their order, and nobody waits to hand them over.
func TestEventsOfPortsWaitForAnOwnerAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		tor := f.nodes["tor3"]
		settle(time.Second)
		d := tor.d.device
		up := tor.port("eth1")
		down := up
		down.Carrier = false
		d.turn.Lock()
		changes := uint64(100)
		for range 21 {
			for _, p := range []fabric.Port{down, up} {
				changes++
				d.portEvent(fabric.Event{Kind: fabric.PortChanged, Port: p, At: time.Now(), Changes: changes})
			}
		}
		d.portEvent(fabric.Event{Kind: fabric.PortChanged, Port: down, At: time.Now(), Changes: changes + 1})
		if len(d.ports.list) != 43 {
			t.Errorf("%d events wait, want 43", len(d.ports.list))
		}
		d.turn.Unlock()
		synctest.Wait() // no time passes: nothing else wakes the owner
		if d.ports.waiting() {
			t.Error("events wait for an owner that rests, which was at work when they came")
		}
		// Who finds more than what he brought leaves it to the owner.
		other := tor.port("eth2") // as it is: nothing follows that would wake the owner
		for range 4 {
			d.ports.put(fabric.Event{Kind: fabric.PortChanged, Port: other, At: time.Now()}, nil)
		}
		d.portEvent(fabric.Event{Kind: fabric.PortChanged, Port: other, At: time.Now()})
		synctest.Wait()
		if d.ports.waiting() {
			t.Error("events wait for an owner that rests")
		}
		ports, err := tor.d.Ports(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ports {
			if p.Name == "eth1" && p.Carrier {
				t.Error("the port has carrier, which the last event denied")
			}
		}
	})
}

// What a loss leaves to be done later, as that of a port that flaps, the owner goes on with.
func TestTheOwnerGoesOnWithWhatALossLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.expectAnything()
		settle(time.Second)
		spine, owed := f.nodes["spine"].d.device, 0
		for i := range 16 {
			_ = f.nodes["tor3"].fake.SetCarrier("eth1", i%2 == 1)
			synctest.Wait()
			spine.turn.Lock()
			if spine.core.Owing() || spine.core.Waiting() || spine.inbox.Len() > 0 {
				owed++
			}
			spine.turn.Unlock()
			time.Sleep(20 * time.Millisecond)
		}
		if owed > 0 {
			t.Errorf("%d times something was left with an owner that rests", owed)
		}
	})
}

// A dataplane that says more than may wait does wait, and no longer than the owner lives.
func TestPortEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, stop := newPortQueue(), make(chan struct{})
		for i := range maxPortEvents {
			if !q.put(fabric.Event{Changes: uint64(i)}, stop) {
				t.Fatalf("event %d found no room", i)
			}
		}
		took := make(chan bool)
		go func() {
			took <- q.put(fabric.Event{Changes: maxPortEvents}, stop)
			took <- q.put(fabric.Event{}, stop)
		}()
		synctest.Wait()
		select {
		case <-took:
			t.Fatal("one too many was taken")
		default:
		}
		if ev, ok := q.take(); !ok || ev.Changes != 0 {
			t.Errorf("took %+v, %v", ev, ok)
		}
		if !<-took {
			t.Error("there was room, and it was not taken")
		}
		synctest.Wait()
		close(stop)
		if <-took {
			t.Error("an event was taken of which there is no owner")
		}
		for want := uint64(1); want <= maxPortEvents; want++ {
			if ev, ok := q.take(); !ok || ev.Changes != want {
				t.Fatalf("took %+v, %v, want number %d", ev, ok, want)
			}
		}
		if _, ok := q.take(); ok || q.waiting() {
			t.Error("an empty queue has something")
		}
	})
}
