package hostkernel

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/openinof/inof/nvmetcp"
)

// What calls take on Linux 6.1; those on a dead path were measured with I/O in flight.
const (
	fakeConnect      = 20 * time.Millisecond
	fakeSilent       = 3200 * time.Millisecond // a connect without an answer: one SYN is repeated
	fakeTearDown     = 30 * time.Millisecond   // from the end of a socket to `connecting`
	fakeUnanswered   = 5600 * time.Millisecond // the same while a keep-alive of the kernel's is under way
	fakeDelete       = 100 * time.Millisecond
	fakeDeleteDead   = 94 * time.Second // a live controller on a dead path
	fakeResetDead    = 65 * time.Second
	fakeKeepAlive    = 10 * time.Millisecond
	fakeBlockTimer   = time.Second // block timers round up
	fakeDelaySeconds = 10          // reconnect_delay
	fakeKATO         = 5 * time.Second
)

// Fake is a kernel that behaves like Linux as far as the agent can see, in memory. It is for tests,
// on fake time.
type Fake struct {
	mu          sync.Mutex
	controllers map[int]*fakeController
	serves      map[netip.AddrPort][]string // subsystems by where they are served
	broken      map[netip.Addr]bool         // targets that do not answer
	calls       []string

	NoDestroy  bool // INET_DIAG_DESTROY is missing
	NoNVMe     bool
	UnderWay   bool // keep-alives of the kernel's are under way when sockets are destroyed
	Forbidden  bool // the rights are missing
	Excluded   Exclusions
	Policy     string // of all subsystems
	OldFabrics bool   // the kernel is too old to list its options
}

type fakeController struct {
	Controller
	kato     time.Duration
	io       int // io_timeout, s; 0: the kernel's
	inFlight int
	delay    int // reconnect_delay, s
	gen      int // outdates timers
}

var _ Kernel = (*Fake)(nil)

// NewFake gives a kernel with NVMe and no controllers.
func NewFake() *Fake {
	return &Fake{Policy: "numa", controllers: map[int]*fakeController{}, serves: map[netip.AddrPort][]string{}, broken: map[netip.Addr]bool{}}
}

// Serve has a target serve subsystems from now on; none: it refuses.
func (f *Fake) Serve(at netip.AddrPort, nqns ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serves[at] = nqns
}

// Break has a target answer no more, without a word; Mend undoes it.
func (f *Fake) Break(target netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken[target] = true
}

// Mend undoes Break.
func (f *Fake) Mend(target netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.broken, target)
}

// Calls lists what was asked for that changes something, in order.
func (f *Fake) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// note writes a call down.
func (f *Fake) note(format string, args ...any) {
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

// Controllers implements Kernel.
func (f *Fake) Controllers() ([]Controller, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.NoNVMe {
		return nil, fmt.Errorf("this kernel has no NVMe: %w", fs.ErrNotExist)
	}
	var list []Controller
	for _, n := range slices.Sorted(maps.Keys(f.controllers)) {
		list = append(list, f.controllers[n].Controller)
	}
	return list, nil
}

// Controller implements Kernel.
func (f *Fake) Controller(instance int) (Controller, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.controllers[instance]
	if c == nil {
		return Controller{}, fmt.Errorf("nvme%d: %w", instance, fs.ErrNotExist)
	}
	return c.Controller, nil
}

// Connect implements Kernel.
func (f *Fake) Connect(c *Connect) (int, error) {
	if _, err := c.options(); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("connect %s %v", c.NQN, c.Target)
	switch {
	case f.NoNVMe:
		return 0, fs.ErrNotExist
	case f.Forbidden:
		return 0, fs.ErrPermission
	}
	for _, o := range f.controllers {
		if !o.Discovery && o.NQN == c.NQN && o.Target == c.Target && o.Source == c.Source && o.Iface == c.Iface && o.HostNQN == c.HostNQN {
			return 0, ErrConnected
		}
	}
	if err := f.reach(c.Target, c.NQN); err != nil {
		return 0, err
	}
	discovery := c.NQN == nvmetcp.DiscoveryNQN || slices.Contains(c.Flags, "discovery")
	n := 0
	for f.controllers[n] != nil {
		n++
	}
	f.controllers[n] = &fakeController{delay: fakeDelaySeconds, Controller: Controller{Instance: n, State: Live, Transport: c.Transport, NQN: c.NQN,
		HostNQN: c.HostNQN, Target: c.Target, Source: c.Source, Iface: c.Iface, Discovery: discovery}}
	f.controllers[n].kato = fakeKATO
	if c.IOTimeout != nil {
		f.controllers[n].io = *c.IOTimeout
	}
	if c.KeepAlive != nil {
		f.controllers[n].kato = time.Duration(*c.KeepAlive) * time.Second
	}
	if c.ReconnectDelay != nil {
		f.controllers[n].delay = *c.ReconnectDelay
	}
	return n, nil
}

// reach does what a try to connect comes to, and takes as long. mu is held, but while it waits.
func (f *Fake) reach(at netip.AddrPort, nqn string) error {
	wait := fakeConnect
	if f.broken[at.Addr()] {
		wait = fakeSilent
	}
	f.mu.Unlock()
	time.Sleep(wait)
	f.mu.Lock()
	switch nqns, ok := f.serves[at]; {
	case f.broken[at.Addr()]:
		return syscall.ETIMEDOUT
	case !ok || len(nqns) == 0:
		return syscall.ECONNREFUSED
	case nqn != nvmetcp.DiscoveryNQN && !slices.Contains(nqns, nqn): // each port answers what it serves
		return syscall.EIO
	}
	return nil
}

// lose has a controller lose its connection; it tries to come back by itself. mu is held.
func (f *Fake) lose(c *fakeController) {
	c.State = Connecting
	c.gen++
	f.retry(c, c.gen)
}

func (f *Fake) retry(c *fakeController, gen int) {
	time.AfterFunc(time.Duration(c.delay)*time.Second, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.controllers[c.Instance] != c || c.gen != gen || c.State != Connecting {
			return
		}
		if f.reach(c.Target, c.NQN) != nil {
			f.retry(c, gen)
		} else if f.controllers[c.Instance] == c && c.gen == gen {
			c.State = Live
		}
	})
}

// Delete implements Kernel.
func (f *Fake) Delete(c *Controller) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("delete %s", c.Name())
	if f.Forbidden {
		return fs.ErrPermission
	}
	have := f.controllers[c.Instance]
	if have == nil || have.State == Deleting {
		return nil
	}
	wait := fakeDelete
	if have.State == Live && f.broken[have.Target.Addr()] {
		wait = fakeDeleteDead
	}
	have.State = Deleting
	f.mu.Unlock()
	time.Sleep(wait)
	f.mu.Lock()
	if f.controllers[c.Instance] == have {
		delete(f.controllers, c.Instance)
	}
	return nil
}

// Reset implements Kernel.
func (f *Fake) Reset(ctx context.Context, c *Controller) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("reset %s", c.Name())
	have := f.controllers[c.Instance]
	if f.Forbidden {
		return fs.ErrPermission
	}
	if have == nil || have.State != Live {
		return syscall.EBUSY
	}
	have.State = Resetting
	have.gen++
	gen, wait := have.gen, fakeConnect
	if f.broken[have.Target.Addr()] {
		wait = fakeResetDead
	}
	done := make(chan struct{})
	time.AfterFunc(wait, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		defer close(done)
		if f.controllers[c.Instance] != have || have.gen != gen {
			return
		}
		if f.broken[have.Target.Addr()] {
			f.lose(have)
		} else {
			have.State = Live
		}
	})
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
		return nil
	}
}

// KeepAlive implements Kernel.
func (f *Fake) KeepAlive(c *Controller, within time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("keep-alive %s", c.Name())
	have := f.controllers[c.Instance]
	switch {
	case f.Forbidden:
		return fs.ErrPermission
	case have == nil:
		return fs.ErrNotExist
	case have.State != Live:
		return syscall.EAGAIN
	}
	wait, dead := fakeKeepAlive, f.broken[have.Target.Addr()]
	if dead {
		wait = within + fakeBlockTimer
	}
	f.mu.Unlock()
	time.Sleep(wait)
	f.mu.Lock()
	switch {
	case f.controllers[c.Instance] != have || have.State != Live:
		return syscall.EIO
	case dead:
		f.lose(have)
		return syscall.EINTR
	}
	return nil
}

// DiscoveryLog implements Kernel.
func (f *Fake) DiscoveryLog(c *Controller) (*nvmetcp.Log, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	have := f.controllers[c.Instance]
	switch {
	case f.Forbidden:
		return nil, fs.ErrPermission
	case have == nil:
		return nil, fs.ErrNotExist
	case have.State != Live || f.broken[have.Target.Addr()]:
		return nil, syscall.EAGAIN
	}
	log := &nvmetcp.Log{Generation: 1}
	transport := map[string]nvmetcp.Transport{"tcp": nvmetcp.TCP, "rdma": nvmetcp.RDMA}[have.Transport]
	for _, nqn := range f.serves[have.Target] {
		log.Entries = append(log.Entries, nvmetcp.Entry{Transport: transport, Kind: nvmetcp.Subsystem, NQN: nqn, Addr: have.Target.Addr(), Port: have.Target.Port()})
	}
	return log, nil
}

// Destroy implements Kernel.
func (f *Fake) Destroy(s Sockets) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("destroy %v %v", s.Source, s.Target)
	switch {
	case f.NoDestroy:
		return 0, ErrNoDestroy
	case f.Forbidden:
		return 0, fs.ErrPermission
	}
	n := 0
	for _, c := range f.controllers {
		if c.Transport == "tcp" && c.State == Live && c.Target == s.Target && cmp.Or(c.Source, s.Source) == s.Source {
			n++ // the first socket takes the others of its controller with it
			c.gen++
			gen, wait := c.gen, fakeTearDown
			if f.UnderWay {
				c.State, wait = Resetting, fakeUnanswered
			}
			time.AfterFunc(wait, func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				if f.controllers[c.Instance] == c && c.gen == gen && (c.State == Live || c.State == Resetting) {
					f.lose(c)
				}
			})
		}
	}
	return n, nil
}

// Unqueue implements Kernel.
func (f *Fake) Unqueue(source netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("unqueue %v", source)
	return nil
}

// HurryReconnect implements Kernel.
func (f *Fake) HurryReconnect(c *Controller) (func() error, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	have := f.controllers[c.Instance]
	if have == nil {
		return nil, fs.ErrNotExist
	}
	was := have.delay
	have.delay = min(was, hurried)
	return func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		have.delay = was
		return nil
	}, nil
}

// Delay gives a controller's reconnect_delay in seconds.
func (f *Fake) Delay(instance int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.controllers[instance].delay
}

// Owner implements Kernel.
func (f *Fake) Owner(instance int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.controllers[instance]; c != nil {
		return c.Owner
	}
	return ""
}

// Claim implements Kernel.
func (f *Fake) Claim(instance int, owner string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.controllers[instance]; c != nil {
		c.Owner = owner
	}
	return nil
}

// Tidy implements Kernel: an owner goes with the controller.
func (f *Fake) Tidy() error { return nil }

// Release implements Kernel.
func (f *Fake) Release(instance int) error { return f.Claim(instance, "") }

// Options implements Kernel.
func (f *Fake) Options() ([]string, error) {
	if f.NoNVMe {
		return nil, fs.ErrNotExist
	}
	if f.OldFabrics {
		return nil, nil
	}
	return []string{"transport", "traddr", "trsvcid", "nqn", "queue_size", "nr_io_queues", "reconnect_delay", "ctrl_loss_tmo", "keep_alive_tmo", "hostnqn",
		"host_traddr", "host_iface", "hostid", "duplicate_connect", "disable_sqflow", "hdr_digest", "data_digest", "nr_write_queues", "nr_poll_queues", "tos", "fast_io_fail_tmo", "discovery"}, nil
}

// KeepAliveTimeout implements Kernel.
func (f *Fake) KeepAliveTimeout(c *Controller) (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if have := f.controllers[c.Instance]; have != nil {
		return have.kato, nil
	}
	return 0, fs.ErrNotExist
}

// InFlight implements Kernel.
func (f *Fake) InFlight(c *Controller) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if have := f.controllers[c.Instance]; have != nil {
		return have.inFlight, nil
	}
	return 0, fs.ErrNotExist
}

// IOTimeout is that of a controller in seconds, 0 if it is the kernel's.
func (f *Fake) IOTimeout(instance int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.controllers[instance].io
}

// Fly sets how many commands of a controller are in flight.
func (f *Fake) Fly(instance, commands int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.controllers[instance].inFlight = commands
}

// Lose has a controller lose its connection by itself.
func (f *Fake) Lose(instance int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose(f.controllers[instance])
}

// Exclusions implements Kernel.
func (f *Fake) Exclusions() (Exclusions, error) { return f.Excluded, nil }

// IOPolicy implements Kernel.
func (f *Fake) IOPolicy(*Controller) (string, error) { return f.Policy, nil }
