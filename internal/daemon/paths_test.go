package daemon

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/internal/bfdd"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/wires"
)

// processes are the BFD processes of a test's devices, on one network in memory.
type processes struct {
	t       *testing.T
	net     *bfd.MemoryNet
	sockets *wires.Net
	broken  atomic.Bool
}

// newProcesses gives every client of the fabric a BFD process when it asks for one.
func newProcesses(t *testing.T, f *testFabric) *processes {
	p := &processes{t: t, net: bfd.NewMemoryNet(), sockets: new(wires.Net)}
	f.paths = func(n *node) PathsEnv {
		id := netip.AddrPortFrom(n.cfg.Device.ID, 1)
		return PathsEnv{
			Dial: func(ctx context.Context, _ config.BFD) (net.Conn, error) { return p.sockets.Dial(ctx, id) },
			Start: func(config.BFD) error {
				if p.broken.Load() {
					return errors.New("no such program")
				}
				return p.start(id)
			},
		}
	}
	return p
}

func (p *processes) start(id netip.AddrPort) error {
	l, err := p.sockets.Listen(context.Background(), id)
	if err != nil {
		return err
	}
	s := bfdd.NewServer(bfdd.ServerConfig{Device: id.Addr().String(), Grace: time.Minute,
		Conn: func() (bfd.Conn, error) { return p.net.Conn(id.Addr()), nil }})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx, l) }()
	p.t.Cleanup(func() { stop(); <-done })
	return nil
}

// pathFabric is a reflector and two clients with a host each, in a common zone.
func pathFabric(t *testing.T) (*testFabric, *processes) {
	f := newTestFabric(t)
	p := newProcesses(t, f)
	f.add("spine", reflectorID, "reflector")
	f.add("tor1", "10.0.0.1", "client", "eth1")
	f.add("tor2", "10.0.0.2", "client", "eth1")
	settle(20 * time.Second) // sessions begin after a back-off
	f.host("i1", "tor1", "eth1", i1, snsd.RoleInitiator)
	f.host("t1", "tor2", "eth1", t1, snsd.RoleTarget)
	settle(20 * time.Second)
	for _, h := range f.hosts {
		h.heard()
	}
	return f, p
}

func TestAPathThatFailsIsToldAndShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := pathFabric(t)
		d := f.nodes["tor1"].d
		b, err := d.BFD(t.Context())
		if err != nil || len(b.Sessions) != 1 || b.Sessions[0].State != "Up" || b.Sessions[0].Fault || !b.Process.Connected || !b.Enabled {
			t.Fatalf("%+v, %v", b, err)
		}
		p.net.Drop(func(_, _ netip.Addr, _ []byte) bool { return true })
		settle(2 * time.Second)
		f.expect("down", map[string][]string{"i1": {t1 + " inactive bfd-down"}, "t1": {i1 + " inactive bfd-down"}})
		st, err := d.Status(t.Context())
		if err != nil || st.Counts.Paths.Failed != 1 || st.Counts.Paths.Watched != 1 || !strings.Contains(st.Warnings.String(), "the path to device 10.0.0.2 fails") {
			t.Errorf("%+v %q, %v", st.Counts, st.Warnings, err)
		}
		if b, err = d.BFD(t.Context()); err != nil || !b.Sessions[0].Fault || b.Sessions[0].Report != "down" || b.Sessions[0].LastDown == nil {
			t.Errorf("%+v, %v", b.Sessions, err)
		}
		p.net.Drop(nil)
		settle(5 * time.Second)
		f.expect("up", map[string][]string{"i1": {t1 + " active none"}, "t1": {i1 + " active none"}})
		if st, err = d.Status(t.Context()); err != nil || len(st.Warnings) != 0 {
			t.Errorf("%q, %v", st.Warnings, err)
		}
	})
}

func TestADaemonStartedAgainFindsItsProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := pathFabric(t)
		f.nodes["tor1"].halt()
		p.net.Drop(func(_, _ netip.Addr, _ []byte) bool { return true })
		settle(2 * time.Second)
		f.expect("down, one daemon away", map[string][]string{"t1": {i1 + " inactive bfd-down"}})
		f.nodes["tor1"].start()
		settle(20 * time.Second)
		f.expect("it is back", map[string][]string{"i1": {t1 + " inactive bfd-down"}})
		f.nodes["tor1"].halt()
		f.nodes["tor1"].start()
		settle(20 * time.Second)
		f.expect("back again, nothing is new", nil)
	})
}

func TestWhatIsWrongWithThePathsIsAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		p := newProcesses(t, f)
		p.broken.Store(true)
		p.net.Drop(func(_, _ netip.Addr, _ []byte) bool { return true })
		f.add("spine", reflectorID, "reflector")
		f.add("tor1", "10.0.0.1", "client", "eth1")
		f.add("tor2", "10.0.0.2", "client", "eth1")
		settle(20 * time.Second)
		f.host("i1", "tor1", "eth1", i1, snsd.RoleInitiator)
		f.host("t1", "tor2", "eth1", t1, snsd.RoleTarget)
		warned := func(text string) {
			t.Helper()
			settle(30 * time.Second)
			st, err := f.nodes["tor1"].d.Status(t.Context())
			if err != nil || !strings.Contains(st.Warnings.String(), text) {
				t.Errorf("warnings %q, %v, want %q", st.Warnings, err, text)
			}
		}
		warned("no BFD process: paths to other devices are not watched")
		p.broken.Store(false)
		warned("the path to device 10.0.0.2 has never been seen to work")
		for _, h := range f.hosts {
			for _, told := range h.heard() {
				if strings.Contains(told, "inactive") {
					t.Errorf("a path that was never up: a host was told %s", told)
				}
			}
		}
	})
}
