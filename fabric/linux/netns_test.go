package linux

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/netnstest"
)

// patience is how long a test waits for something that must happen.
const patience = 40 * time.Second

// space is a namespace in which this package's own things can be opened.
type space struct{ *netnstest.Space }

func newSpace(t testing.TB) *space {
	t.Helper()
	return &space{netnstest.New(t)}
}

func (s *space) do(fn func() error) {
	s.T.Helper()
	if err := inNetNS(s.Path(), fn); err != nil {
		s.T.Fatal(err)
	}
}

// veth puts a cable between name here and peer there; both ends are opened.
func (s *space) veth(name string, there *space, peer string) {
	s.T.Helper()
	s.Veth(name, there.Space, peer)
}

// socket opens a socket for both control protocols.
func (s *space) socket(name string) *Socket {
	s.T.Helper()
	var sock *Socket
	s.do(func() (err error) {
		sock, err = OpenSocket(name, []uint16{fabric.EtherTypeLLDP, fabric.EtherTypeNTS},
			[]fabric.MAC{fabric.MACNearestBridge, fabric.MACNTS})
		return err
	})
	s.T.Cleanup(func() { sock.Close() })
	return sock
}

// running is a dataplane with its Run.
type running struct {
	t testing.TB
	fabric.Dataplane
}

func run(t testing.TB, d fabric.Dataplane) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := receive(t, done, "end of Run"); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return &running{t: t, Dataplane: d}
}

// start runs a dataplane over the given ports of a namespace.
func start(t testing.TB, s *space, edit func(*Config), access ...string) (*running, *Dataplane) {
	t.Helper()
	cfg := Config{Access: access, NetNS: s.Path()}
	if edit != nil {
		edit(&cfg)
	}
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, d), d
}

func receive[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s: nothing within %v", what, patience)
	}
	return v
}

// event waits for an event that fits, passing over others of the same port that
// are steps on the way; any of another port fails.
func (r *running) event(port string, fits func(fabric.Event) bool) fabric.Event {
	r.t.Helper()
	for {
		ev := receive(r.t, r.Events(), "event of "+port)
		if ev.Port.Name != port {
			r.t.Fatalf("event of %q while waiting for %q: %+v", ev.Port.Name, port, ev)
		}
		if fits(ev) {
			return ev
		}
	}
}

func (r *running) added(port string) fabric.Event {
	r.t.Helper()
	return r.event(port, func(ev fabric.Event) bool { return ev.Kind == fabric.PortAdded })
}

func (r *running) removed(port string) fabric.Event {
	r.t.Helper()
	return r.event(port, func(ev fabric.Event) bool { return ev.Kind == fabric.PortRemoved })
}

func (r *running) up(port string, want bool) fabric.Event {
	r.t.Helper()
	return r.event(port, func(ev fabric.Event) bool { return ev.Kind == fabric.PortChanged && ev.Port.Up() == want })
}

// ready waits for a port that is added and up.
func (r *running) ready(port string) fabric.Port {
	r.t.Helper()
	return r.event(port, func(ev fabric.Event) bool { return ev.Kind != fabric.PortRemoved && ev.Port.Up() }).Port
}

func isErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want one that wraps %q", err, want)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
