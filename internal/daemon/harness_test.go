package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/wires"
)

// node is one device of a fabric in memory.
type node struct {
	t     *testing.T
	f     *testFabric
	cfg   *config.Config
	fake  *fabric.Fake
	d     *Daemon
	stop  context.CancelFunc
	ended chan error
	tune  func(*Env) // may be nil
}

// testFabric is a reflector and clients in one process.
type testFabric struct {
	t     *testing.T
	net   *wires.Net
	nodes map[string]*node
	hosts map[string]*labHost
	paths func(n *node) PathsEnv // nil: no BFD process
}

const reflectorID = "10.0.0.100"

func newTestFabric(t *testing.T) *testFabric {
	f := &testFabric{t: t, net: &wires.Net{}, nodes: map[string]*node{}, hosts: map[string]*labHost{}}
	t.Cleanup(func() {
		for _, h := range f.hosts {
			h.close()
		}
		for _, n := range f.nodes {
			n.halt()
		}
	})
	return f
}

// add makes a device; role is reflector, client or standalone.
func (f *testFabric) add(name, id, role string, ports ...string) *node {
	f.t.Helper()
	doc := fmt.Sprintf("device: {id: %s, name: %s}\nstate-directory: %s\n", id, name, f.t.TempDir())
	switch role {
	case "reflector":
		doc = fmt.Sprintf("device: {id: %s, name: %s, roles: [reflector]}\nstate-directory: %s\nsession: {auth: none}\n", id, name, f.t.TempDir())
	case "client":
		doc = fmt.Sprintf("device: {id: %s, name: %s, roles: [client]}\nstate-directory: %s\nsession: {auth: none}\nclient: {reflectors: [{address: %s}]}\nports: {access: [eth*]}\n",
			id, name, f.t.TempDir(), reflectorID)
	default:
		doc += "ports: {access: [eth*]}\n"
	}
	doc += "notify: {peers: all}\n" // so that targets hear of each other as well
	cfg, err := config.Parse(name, []byte(doc), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	n := &node{t: f.t, f: f, cfg: cfg}
	list := make([]fabric.Port, len(ports))
	for i, p := range ports {
		list[i] = fabric.Port{Name: p, AdminUp: true}
	}
	n.fake = fabric.NewFake(fabric.FakeConfig{Name: name}, list...)
	f.nodes[name] = n
	n.start()
	return n
}

func (n *node) start() {
	n.t.Helper()
	env := Env{
		Dataplane: n.fake, Listen: n.f.net.Listen, Dial: n.f.net.Dial,
		OtherLLDP: func() bool { return false }, // whatever runs on the machine of the test
		Manage: func(config.Management) (net.Listener, error) {
			return (&wires.Net{}).Listen(context.Background(), netip.AddrPort{})
		},
	}
	if n.tune != nil {
		n.tune(&env)
	}
	if n.f.paths != nil {
		env.Paths = n.f.paths(n)
	}
	d, err := New(n.cfg, env)
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n.d, n.stop, n.ended = d, stop, make(chan error, 1)
	go func() { n.ended <- d.Run(ctx) }()
}

// halt stops a device as SIGTERM does.
func (n *node) halt() {
	if n.stop == nil {
		return
	}
	n.stop()
	if err := <-n.ended; err != nil {
		n.t.Errorf("device %s: %v", n.cfg.Device.Name, err)
	}
	n.stop = nil
}

// labHost is a host with the agent's own logic on one port.
type labHost struct {
	t       *testing.T
	machine snsd.Machine
	agent   *snsd.Agent // the machine, where it is one
	fake    *fabric.Fake
	stop    context.CancelFunc
	done    chan struct{}
	do      chan func(now time.Time) snsd.AgentOutput

	muted atomic.Bool // neither hears nor speaks
	mu    sync.Mutex
	told  []snsd.Notice
}

// host puts a host on a device's port.
func (f *testFabric) host(name, dev, port, addr string, role snsd.Role) *labHost {
	f.t.Helper()
	return f.hostWith(name, dev, port, snsd.AgentConfig{Addrs: []netip.Addr{netip.MustParseAddr(addr)},
		Service: snsd.Service{Role: role, Protocol: snsd.ProtocolRoCE, NQN: "nqn.2026-11.test:" + name}})
}

func (f *testFabric) hostWith(name, dev, port string, cfg snsd.AgentConfig) *labHost {
	f.t.Helper()
	cfg.MAC, cfg.Interface, cfg.Subscribes = hostMAC(name), "eth0", true
	agent, err := snsd.NewAgent(cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.hostOf(name, dev, port, agent)
}

// hostOf puts a host with this agent on a device's port.
func (f *testFabric) hostOf(name, dev, port string, agent snsd.Machine) *labHost {
	f.t.Helper()
	fake := fabric.NewFake(fabric.FakeConfig{Name: name}, fabric.Port{Name: "eth0", AdminUp: true, MAC: hostMAC(name)})
	if err := fabric.Connect(fake, "eth0", f.nodes[dev].fake, port); err != nil {
		f.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &labHost{t: f.t, machine: agent, fake: fake, stop: stop, done: make(chan struct{}), do: make(chan func(time.Time) snsd.AgentOutput)}
	h.agent, _ = agent.(*snsd.Agent)
	f.hosts[name] = h
	go func() { _ = fake.Run(ctx) }()
	go h.run(ctx)
	return h
}

// hostMAC makes a MAC address of a name.
func hostMAC(name string) fabric.MAC {
	m := fabric.MAC{2, 0xaa}
	for i := range name {
		m[2+i%4] = m[2+i%4]*31 + name[i]
	}
	return m
}

func (h *labHost) run(ctx context.Context) {
	defer close(h.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if next := h.machine.Next(); !next.IsZero() {
			timer.Reset(max(0, time.Until(next)))
		}
		var out snsd.AgentOutput
		select {
		case <-ctx.Done():
			return
		case fn := <-h.do:
			out = fn(time.Now())
		case ev := <-h.fake.Events():
			if ev.Port.Up() {
				out = h.machine.LinkUp(time.Now())
			} else {
				out = h.machine.LinkDown(time.Now())
			}
		case f := <-h.fake.Frames():
			if f.EtherType == fabric.EtherTypeNTS && !h.muted.Load() {
				out = h.machine.Frame(f, time.Now())
			}
		case <-timer.C:
			out = h.machine.Tick(time.Now())
		}
		for _, fr := range out.Frames {
			if !h.muted.Load() {
				_ = h.fake.Send("eth0", fr)
			}
		}
		h.mu.Lock()
		for _, e := range out.Events {
			if e.Kind == snsd.AgentReceived || e.Kind == snsd.AgentIgnored || e.Kind == snsd.AgentFenced {
				h.told = append(h.told, e.Notice)
			}
		}
		h.mu.Unlock()
	}
}

func (h *labHost) close() {
	h.stop()
	<-h.done
}

// heard takes what the host was told since the last call, as "subject state reason", sorted.
func (h *labHost) heard() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []string{}
	for _, n := range h.told {
		list = append(list, fmt.Sprintf("%s %s %s", n.Subject, n.State, n.Reason))
	}
	h.told = nil
	slices.Sort(list)
	return list
}

// settle lets virtual time pass until everything has come to rest.
func settle(d time.Duration) {
	<-time.After(d) // fake time: the test runs in a synctest bubble
	synctest.Wait()
}

// expect compares what hosts were told since the last call; hosts not named were told nothing.
func (f *testFabric) expect(step string, want map[string][]string) {
	f.t.Helper()
	for name, h := range f.hosts {
		got, exp := h.heard(), want[name]
		slices.Sort(exp)
		if !slices.Equal(got, exp) {
			f.t.Errorf("%s: host %s was told %q, want %q", step, name, got, exp)
		}
	}
}

// zones makes zones on the reflector or standalone device.
func (f *testFabric) zones(dev string, zones map[string][]string) {
	f.t.Helper()
	for name, members := range zones {
		if err := f.nodes[dev].d.AddZone(f.t.Context(), name, members); err != nil {
			f.t.Fatal(err)
		}
	}
}

var _ api.Source = (*Daemon)(nil)

// What tests do to zones.

func (d *Daemon) AddZone(ctx context.Context, name string, members []string) error {
	return second(d.ChangeZone(ctx, api.ZoneOrder{Do: api.ZoneAdd, Name: name, Members: members}))
}

func (d *Daemon) RemoveZone(ctx context.Context, name string) error {
	return second(d.ChangeZone(ctx, api.ZoneOrder{Do: api.ZoneRemove, Name: name}))
}

func (d *Daemon) AddMembers(ctx context.Context, name string, members []string) error {
	return second(d.ChangeZone(ctx, api.ZoneOrder{Do: api.MembersAdd, Name: name, Members: members}))
}

func (d *Daemon) RemoveMembers(ctx context.Context, name string, members []string) error {
	return second(d.ChangeZone(ctx, api.ZoneOrder{Do: api.MembersRemove, Name: name, Members: members}))
}

func second[T any](_ T, err error) error { return err }

// ask reads what the API has at a path; filters are names and values in turn.
func ask[T any](ctx context.Context, d *Daemon, path string, filters ...string) (v T, err error) {
	for _, q := range d.Queries() {
		if q.Name == path {
			answer, err := q.Answer(ctx, api.Where(filters...))
			if err != nil {
				return v, err
			}
			return answer.(T), nil
		}
	}
	return v, fmt.Errorf("nothing at %q", path)
}

// silent has the host ack nothing, or again.
func (h *labHost) silent(on bool) {
	h.do <- func(now time.Time) snsd.AgentOutput { return h.agent.SetSilent(on, now) }
}
