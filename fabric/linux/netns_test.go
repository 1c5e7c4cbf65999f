package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// patience is how long a test waits for something that must happen.
const patience = 10 * time.Second

// space is a fresh network namespace that lives until the test ends.
type space struct {
	t      testing.TB
	handle netns.NsHandle
	nl     *netlink.Handle
}

// newSpace makes a namespace; where that is not permitted the test is skipped, or
// fails when INOF_REQUIRE_NETNS=1.
func newSpace(t testing.TB) *space {
	t.Helper()
	type result struct {
		h   netns.NsHandle
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		h, err := netns.New()
		done <- result{h, err}
	}()
	r := <-done
	if r.err != nil {
		if os.Getenv("INOF_REQUIRE_NETNS") == "1" {
			t.Fatalf("INOF_REQUIRE_NETNS=1, but a network namespace cannot be made: %v", r.err)
		}
		t.Skipf("needs the right to make network namespaces (CAP_SYS_ADMIN): %v", r.err)
	}
	h, err := netlink.NewHandleAt(r.h, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	s := &space{t: t, handle: r.h, nl: h}
	t.Cleanup(func() {
		h.Close()
		s.handle.Close()
	})
	return s
}

// path is a name of the namespace for Config.NetNS.
func (s *space) path() string { return fmt.Sprintf("/proc/self/fd/%d", int(s.handle)) }

func (s *space) do(fn func() error) {
	s.t.Helper()
	if err := inNetNS(s.path(), fn); err != nil {
		s.t.Fatal(err)
	}
}

// veth puts a cable between name here and peer there; both ends are opened.
func (s *space) veth(name string, there *space, peer string) {
	s.t.Helper()
	la := netlink.NewLinkAttrs()
	la.Name = name
	v := &netlink.Veth{LinkAttrs: la, PeerName: peer, PeerNamespace: netlink.NsFd(int(there.handle))}
	if err := s.nl.LinkAdd(v); err != nil {
		s.t.Fatalf("add veth %s: %v", name, err)
	}
	s.setUp(name, true)
	there.setUp(peer, true)
}

func (s *space) link(name string) netlink.Link {
	s.t.Helper()
	l, err := s.nl.LinkByName(name)
	if err != nil {
		s.t.Fatalf("link %s: %v", name, err)
	}
	return l
}

func (s *space) setUp(name string, up bool) {
	s.t.Helper()
	set := s.nl.LinkSetDown
	if up {
		set = s.nl.LinkSetUp
	}
	if err := set(s.link(name)); err != nil {
		s.t.Fatalf("set %s up=%t: %v", name, up, err)
	}
}

func (s *space) del(name string) {
	s.t.Helper()
	if err := s.nl.LinkDel(s.link(name)); err != nil {
		s.t.Fatalf("delete %s: %v", name, err)
	}
}

// socket opens a socket for both control protocols.
func (s *space) socket(name string) *Socket {
	s.t.Helper()
	var sock *Socket
	s.do(func() (err error) {
		sock, err = OpenSocket(name, []uint16{fabric.EtherTypeLLDP, fabric.EtherTypeNTS},
			[]fabric.MAC{fabric.MACNearestBridge, fabric.MACNTS})
		return err
	})
	s.t.Cleanup(func() { sock.Close() })
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
	cfg := Config{Access: access, NetNS: s.path()}
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
