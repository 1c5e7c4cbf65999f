package linux

import (
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
)

// A frame left after its sending began and before its receiver's kernel had it: a host that
// answers at once, before the system call has returned to us, is never too early.
func TestAFrameLeftBeforeItsReceiverHadIt(t *testing.T) {
	a, b := newSpace(t), newSpace(t)
	a.veth("a0", b, "b0")
	from, to := a.socket("a0"), b.socket("b0")
	from.stampSends()
	if !from.stamps.on {
		t.Fatal("the kernel does not stamp what is sent")
	}
	buf := make([]byte, 1600)
	for up := false; !up; { // a new cable takes frames a moment later than it says
		_ = from.Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 1)))
		_ = to.SetDeadline(time.Now().Add(10 * time.Millisecond))
		_, _, err := to.Recv(buf)
		up = err == nil
	}
	for i := range 100 {
		began := time.Now()
		left, err := from.SendStamped(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, byte(i))))
		if err != nil {
			t.Fatal(err)
		}
		_ = to.SetDeadline(time.Now().Add(patience))
		_, got, err := to.Recv(buf)
		if err != nil {
			t.Fatal(err)
		}
		if left.IsZero() || left.Before(began) || got.Before(left.Add(-time.Microsecond)) { // two clocks are read for each
			t.Fatalf("frame %d left %v after its sending began, %v before it was received", i, left.Sub(began), got.Sub(left))
		}
	}
}

// Without it, and where a send fails, there is no stamp.
func TestWithoutAStampThereIsNone(t *testing.T) {
	a, b := newSpace(t), newSpace(t)
	a.veth("a0", b, "b0")
	s := a.socket("a0")
	if left, err := s.SendStamped(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 1))); err != nil || !left.IsZero() {
		t.Errorf("%v, %v", left, err)
	}
	s.stampSends()
	a.SetUp("a0", false)
	if left, err := s.SendStamped(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 1))); err == nil || !left.IsZero() {
		t.Errorf("port down: %v, %v", left, err)
	}
}

// What a reader receives is not disturbed by the stamps of what is sent on its socket.
func TestAReaderDoesNotSeeTheStamps(t *testing.T) {
	a, b := newSpace(t), newSpace(t)
	a.veth("a0", b, "b0")
	s, far := a.socket("a0"), b.socket("b0")
	s.stampSends()
	done := make(chan error, 1)
	go func() {
		_ = s.SetDeadline(time.Now().Add(patience))
		_, _, err := s.Recv(make([]byte, 1600))
		done <- err
	}()
	for i := range 50 {
		if _, err := s.SendStamped(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, byte(i)))); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("the reader ended: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	for {
		if err := far.Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 1))); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		case <-time.After(10 * time.Millisecond): // a new cable takes frames a moment later than it says
		}
	}
}
