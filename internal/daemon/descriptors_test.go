package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/internal/api"
)

// Connections from a network are closed when few descriptors are left, and taken again when there
// are more; what is not wrapped, as the management socket, uses the rest.
func TestAReserveOfDescriptorsIsKept(t *testing.T) {
	open := func(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
		var lc net.ListenConfig
		return lc.Listen(ctx, "tcp", at.String())
	}
	probe, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(probe.Fd()) // about the number that the next one gets
	probe.Close()
	d := &descriptors{most: next + 40}
	l, err := d.listen(open)(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := make(chan net.Conn, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			taken <- c
		}
	}()
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial()
	c := <-taken
	defer c.Close()
	var files []*os.File
	for range 60 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	refused := dial()
	_ = refused.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := refused.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) || !errors.Is(err, io.EOF) && len(taken) > 0 {
		t.Errorf("a connection into the reserve: %v", err)
	}
	if n := d.counters().Refused; n != 1 || d.refusedIn(time.Minute, time.Now()) != 1 || d.refusedIn(time.Minute, time.Now().Add(time.Hour)) != 0 {
		t.Errorf("%d refused", n)
	}
	for _, f := range files {
		f.Close()
	}
	dial()
	select {
	case c := <-taken:
		c.Close()
	case <-time.After(30 * time.Second):
		t.Error("no connection is taken when there are descriptors again")
	}
}

// A listener of the management whose port another process has is a warning until it is open.
func TestAListenerThatFailsIsAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Daemon{env: Env{Now: time.Now}, log: api.NewEventLog(10, time.Now())}
		var tries atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		go d.again(ctx, "management.netconf", func(ctx context.Context) error {
			if tries.Add(1) <= 3 {
				return errors.New("listen tcp 192.0.2.1:830: address already in use")
			}
			<-ctx.Done()
			return nil
		})
		time.Sleep(2*listenRetry + time.Second)
		if got := d.failing.now(time.Now()); len(got) != 1 || got[0] != "management.netconf: listen tcp 192.0.2.1:830: address already in use" {
			t.Errorf("%q", got)
		}
		time.Sleep(2 * listenRetry)
		if got := d.failing.now(time.Now()); len(got) != 0 || tries.Load() != 4 {
			t.Errorf("%q after %d tries", got, tries.Load())
		}
		cancel()
		synctest.Wait()
	})
}
