package linux

import (
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
)

func isDown(err error) bool { return errors.Is(err, fabric.ErrPortDown) }

func TestSocketTellsDownFromGone(t *testing.T) {
	a, b := newSpace(t), newSpace(t)
	a.veth("a0", b, "b0")
	s := a.socket("a0")
	buf := make([]byte, 1600)
	recv := func() error {
		_ = s.SetDeadline(time.Now().Add(patience))
		_, _, err := s.Recv(buf)
		return err
	}
	a.SetUp("a0", false)
	isErr(t, recv(), fabric.ErrPortDown)
	isErr(t, s.Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 1))), fabric.ErrPortDown)
	a.SetUp("a0", true)
	if err := b.socket("b0").Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 2))); err != nil {
		t.Fatal(err)
	}
	if err := recv(); err != nil {
		t.Errorf("after the interface came back: %v", err)
	}
	a.Delete("a0")
	isErr(t, recv(), fabric.ErrNoPort)
	isErr(t, s.Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 1))), fabric.ErrNoPort)
}

// The driver refuses a frame where the carrier is gone, though the interface is not down.
func TestSocketWithoutCarrierIsBusy(t *testing.T) {
	a, b := newSpace(t), newSpace(t)
	a.veth("a0", b, "b0")
	s := a.socket("a0")
	if err := s.setBypass(true); err != nil {
		t.Fatal(err)
	}
	b.SetUp("b0", false)
	isErr(t, s.Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 1))), fabric.ErrPortBusy)
	b.SetUp("b0", true)
	if err := s.Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 2))); err != nil {
		t.Errorf("with carrier again: %v", err)
	}
}

func TestSocketDeadlineAndClose(t *testing.T) {
	a, b := newSpace(t), newSpace(t)
	a.veth("a0", b, "b0")
	s := a.socket("a0")
	if err := s.SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Recv(make([]byte, 100))
	isErr(t, err, os.ErrDeadlineExceeded)
	_ = s.SetDeadline(time.Time{})
	done := make(chan error, 1)
	go func() {
		_, _, err := s.Recv(make([]byte, 100))
		done <- err
	}()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	isErr(t, receive(t, done, "Recv after Close"), net.ErrClosed)
	isErr(t, s.Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 1))), net.ErrClosed)
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestSocketTruncatedFrame(t *testing.T) {
	a, b := newSpace(t), newSpace(t)
	a.veth("a0", b, "b0")
	s := a.socket("a0")
	if err := b.socket("b0").Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(100, 1))); err != nil {
		t.Fatal(err)
	}
	_ = s.SetDeadline(time.Now().Add(patience))
	n, _, err := s.Recv(make([]byte, 50))
	isErr(t, err, ErrTruncated)
	if n != 50 {
		t.Errorf("%d bytes received, want the 50 of the buffer", n)
	}
}

func TestSocketTimeIsTheKernels(t *testing.T) {
	a, b := newSpace(t), newSpace(t)
	a.veth("a0", b, "b0")
	s, far := a.socket("a0"), b.socket("b0")
	// The kernel begins to stamp frames some time after it was first asked to.
	for end := time.Now().Add(patience); ; {
		t0 := time.Now()
		if err := far.Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 1))); err != nil {
			t.Fatal(err)
		}
		t1 := time.Now()
		for time.Since(t1) < 5*time.Millisecond { // the frame lies in the socket meanwhile
			runtime.Gosched()
		}
		_ = s.SetDeadline(time.Now().Add(patience))
		_, at, err := s.Recv(make([]byte, 100))
		if err != nil {
			t.Fatal(err)
		}
		if !at.Before(t0) && !at.After(t1) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("received %v after sending began and the call took %v, want the time of arrival", at.Sub(t0), t1.Sub(t0))
		}
	}
}

func TestOpenSocketErrors(t *testing.T) {
	a := newSpace(t)
	a.do(func() error {
		_, err := OpenSocket("nosuch0", []uint16{fabric.EtherTypeNTS}, nil)
		isErr(t, err, fabric.ErrNoPort)
		if _, err = OpenSocket("lo", nil, nil); err == nil {
			t.Error("a socket without EtherTypes was opened")
		}
		return nil
	})
}
