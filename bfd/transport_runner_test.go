package bfd

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// device is a Runner on a network in memory.
type device struct {
	*Runner
	mu     sync.Mutex
	events []Event
	stop   context.CancelFunc
	ended  chan error
}

func startDevice(t *testing.T, n *MemoryNet, addr netip.Addr, peers ...Peer) *device {
	t.Helper()
	d := &device{ended: make(chan error, 1)}
	d.Runner = NewRunner(RunnerConfig{Manager: Config{Seed: uint64(addr.As4()[3])}, Sink: func(ev []Event) {
		d.mu.Lock()
		d.events = append(d.events, ev...)
		d.mu.Unlock()
	}}, n.Conn(addr))
	if err := d.Reconcile(peers); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	d.stop = cancel
	go func() { d.ended <- d.Run(ctx) }()
	<-d.Ready()
	return d
}

func (d *device) take() []Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.events
	d.events = nil
	return out
}

func TestRunnersOnAMemoryNet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewMemoryNet()
		a := startDevice(t, n, addrA, Peer{Key: Key{Peer: addrB}, Timers: every(50*ms, 3)})
		b := startDevice(t, n, addrB, Peer{Key: Key{Peer: addrA}, Timers: every(50*ms, 3)})
		time.Sleep(3 * time.Second)
		if d := cmp.Diff([]Report{ReportUp}, reports(a.take())); d != "" {
			t.Fatal(d)
		}
		if st, err := b.Status(); err != nil || len(st) != 1 || st[0].State != StateUp || st[0].DetectTime != 150*ms {
			t.Fatalf("%+v, %v", st, err)
		}
		n.Drop(func(_, to netip.Addr, _ []byte) bool { return to == addrA })
		cut := time.Now()
		time.Sleep(time.Second)
		ev := a.take()
		if len(ev) != 1 || ev[0].Diag != DiagDetectTime || ev[0].At.Sub(ev[0].Heard) != 150*ms || ev[0].At.Sub(cut) > 150*ms {
			t.Fatalf("events %+v", ev)
		}
		n.Drop(nil)
		time.Sleep(5 * time.Second)
		if d := cmp.Diff([]Report{ReportUp}, reports(a.take())); d != "" {
			t.Fatal(d)
		}
		b.take()
		a.stop()
		if err := <-a.ended; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if d := cmp.Diff([]Report{ReportAdminDown}, reports(b.take())); d != "" {
			t.Error("a planned stop is no fault:", d)
		}
		if _, err := a.Status(); !errors.Is(err, ErrNotRunning) {
			t.Errorf("asked after the end: %v", err)
		}
		if err := a.Reconcile(nil); !errors.Is(err, ErrNotRunning) {
			t.Errorf("asked after the end: %v", err)
		}
		if err := a.Run(t.Context()); err == nil {
			t.Error("run twice")
		}
		if c, tc, err := b.Counters(); err != nil || c.PacketsIn == 0 || tc.Wakeups == 0 {
			t.Errorf("%+v %+v %v", c, tc, err)
		}
		b.stop()
		<-b.ended
	})
}

func TestRunnerTakesLinkDownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewMemoryNet()
		a := startDevice(t, n, addrA, Peer{Key: Key{Peer: addrB, Interface: "eth1"}})
		b := startDevice(t, n, addrB, Peer{Key: Key{Peer: addrA, Interface: "eth1"}})
		time.Sleep(3 * time.Second)
		a.take()
		n.Drop(func(netip.Addr, netip.Addr, []byte) bool { return true })
		at := time.Now()
		a.LinkDown("eth1")
		synctest.Wait()
		if ev := a.take(); len(ev) != 1 || ev[0].Diag != DiagPathDown || !ev[0].At.Equal(at) {
			t.Errorf("events %+v", ev)
		}
		n.Drop(nil)
		a.LinkUp("eth1")
		time.Sleep(5 * time.Second)
		if d := cmp.Diff([]Report{ReportUp}, reports(a.take())); d != "" {
			t.Error(d)
		}
		for _, d := range []*device{a, b} {
			d.stop()
			<-d.ended
		}
	})
}
