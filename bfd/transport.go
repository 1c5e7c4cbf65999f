package bfd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"
)

// UDP ports of RFC 5881 section 4 and RFC 5883 section 5.
const (
	PortControl  = 3784
	PortEcho     = 3785
	PortMultihop = 4784

	firstSourcePort = 49152
	lastSourcePort  = 65535
)

// ErrNotRunning is returned by calls that need the Runner's loop.
var ErrNotRunning = errors.New("BFD is not running")

// Received is one packet as a Conn hands it over.
type Received struct {
	Arrival
	Echo bool   // it came to port 3785
	Data []byte // UDP payload

	reply int // of the Conn: where it came in
}

// Conn is the network as a Runner sees it. All methods but Wake are called by the
// Runner's goroutine, on one thread.
type Conn interface {
	// Start opens what is needed.
	Start() error
	// Wait sleeps until a packet has come, Wake is called or deadline is reached;
	// the zero time is no deadline.
	Wait(deadline time.Time) error
	// Read hands over packets that had come when it was called the first time with
	// this until, some at a time; none: there are no more. They are valid until the
	// next call.
	Read(until time.Time) ([]Received, error)
	// Send sends a control packet, and never waits.
	Send(s *Send) error
	// ReturnEcho sends an echo packet back to where it came from.
	ReturnEcho(r *Received) error
	// Release frees what is kept for a session that ended.
	Release(discr uint32)
	// Wake ends Wait. It may be called at any time, by any goroutine.
	Wake()
	Close() error
}

// TransportCounters of a Runner and its Conn.
type TransportCounters struct {
	Wakeups      uint64 `json:"wakeups"`
	Reads        uint64 `json:"reads"`
	ReadErrors   uint64 `json:"read_errors"`
	SendErrors   uint64 `json:"send_errors"`
	EchoErrors   uint64 `json:"echo_errors"`
	RxOverflow   uint64 `json:"rx_overflow"`   // packets the kernel dropped: we did not read, or they came from a host port
	FilterErrors uint64 `json:"filter_errors"` // times the kernel could not be told the host ports
	SharedPorts  uint64 `json:"shared_ports"`  // sessions without a source port of their own
	BindErrors   uint64 `json:"bind_errors"`   // sessions that could not be bound to their interface
}

// counting is a Conn that counts for itself.
type counting interface{ count(*TransportCounters) }

// Priority is how much a Runner asks of the kernel's scheduler.
type Priority uint8

const (
	PriorityNormal Priority = 0
	// PriorityThread asks for SCHED_FIFO or else nice -20 for the Runner's thread,
	// nice -20 for the rest of the process, and locked memory. On a machine that is
	// overloaded for hundreds of milliseconds it may still be late: the Go scheduler
	// has the thread wait for threads that the kernel does not let run.
	PriorityThread Priority = 1
	// PriorityProcess asks for SCHED_RR, below the Runner's thread, for the rest of
	// the process too, which ends such waits. What the process does besides BFD then
	// goes before everything ordinary on the machine as well. Programs started later
	// inherit it.
	PriorityProcess Priority = 2
)

// RunnerConfig is what a Runner is made from.
type RunnerConfig struct {
	Manager Config
	// Sink takes Events, in order, in the Runner's goroutine. It must not wait, nor
	// call Status, Counters or anything else that asks the Runner.
	Sink func([]Event)
	// Priority is asked for; what was granted is told by Runner.Granted.
	Priority Priority
	Log      *slog.Logger // nil: no log
}

// Runner gives a Manager its network and its clock: one goroutine on a thread of its
// own, whatever the number of sessions.
type Runner struct {
	cfg   RunnerConfig
	conn  Conn
	ready chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	asked   []func(m *Manager, now time.Time)
	running bool
	ended   bool
	granted string

	// Of the loop.
	counters TransportCounters
}

// NewRunner makes a Runner on a Conn, which it will start and close.
func NewRunner(cfg RunnerConfig, conn Conn) *Runner {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Sink == nil {
		cfg.Sink = func([]Event) {}
	}
	return &Runner{cfg: cfg, conn: conn, ready: make(chan struct{}), done: make(chan struct{})}
}

// String names the task.
func (r *Runner) String() string { return "bfd" }

// Ready is closed once the sockets are open.
func (r *Runner) Ready() <-chan struct{} { return r.ready }

// Granted tells what Priority has brought, in words; empty before Ready.
func (r *Runner) Granted() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.granted
}

// Run works until ctx ends; then it tells every peer AdminDown, so that a planned
// stop is no fault. It can be called once.
func (r *Runner) Run(ctx context.Context) error {
	r.mu.Lock()
	if r.running || r.ended {
		r.mu.Unlock()
		return errors.New("bfd: Run was called before")
	}
	r.running = true
	r.mu.Unlock()
	result := make(chan error, 1)
	// The thread ends with this goroutine, since it stays locked: its priority and
	// its network namespace are nobody else's business.
	go func() {
		runtime.LockOSThread()
		result <- r.work(ctx)
	}()
	err := <-result
	r.mu.Lock()
	r.running, r.ended = false, true
	r.asked = nil
	r.mu.Unlock()
	close(r.done)
	return err
}

func (r *Runner) work(ctx context.Context) error {
	if err := r.conn.Start(); err != nil {
		return fmt.Errorf("bfd: %w", errors.Join(err, r.conn.Close()))
	}
	granted := raisePriority(r.cfg.Priority)
	r.cfg.Log.Info("BFD thread", "priority", granted)
	r.mu.Lock()
	r.granted = granted
	r.mu.Unlock()
	close(r.ready)
	defer context.AfterFunc(ctx, r.conn.Wake)()
	m := NewManager(r.cfg.Manager, time.Now())
	err := r.loop(ctx, m)
	return errors.Join(err, r.conn.Close())
}

// loop is the order that everything rests on: the time is taken, then what came
// before it is read, then timers up to it fire. So no timer ends a session whose
// packet was there in time.
func (r *Runner) loop(ctx context.Context, m *Manager) error {
	for {
		now := time.Now()
		m.Wake(now)
		r.counters.Wakeups++
		r.receive(m, now)
		r.answer(m, now)
		m.Tick(now)
		if ctx.Err() != nil {
			m.Shutdown(now)
			r.flush(m)
			return nil
		}
		r.flush(m)
		if err := r.conn.Wait(m.Next()); err != nil {
			return fmt.Errorf("bfd: waiting for packets: %w", err)
		}
	}
}

// receive hands in all that had come by now.
func (r *Runner) receive(m *Manager, now time.Time) {
	for {
		batch, err := r.conn.Read(now)
		if err != nil {
			r.counters.ReadErrors++
			r.cfg.Log.Debug("BFD read", "error", err)
		}
		if len(batch) == 0 {
			return
		}
		r.counters.Reads++
		for i := range batch {
			p := &batch[i]
			switch {
			case !p.Echo:
				_ = m.Receive(&p.Arrival, p.Data, now) // counted there
			case m.Echo(&p.Arrival, now):
				if err := r.conn.ReturnEcho(p); err != nil {
					r.counters.EchoErrors++
				}
			}
		}
	}
}

// answer does what others have asked for.
func (r *Runner) answer(m *Manager, now time.Time) {
	r.mu.Lock()
	asked := r.asked
	r.asked = nil
	r.mu.Unlock()
	for _, fn := range asked {
		fn(m, now)
	}
}

// flush sends and tells what the Manager has produced.
func (r *Runner) flush(m *Manager) {
	sends := m.Sends()
	for i := range sends {
		if err := r.conn.Send(&sends[i]); err != nil {
			r.counters.SendErrors++
			r.cfg.Log.Debug("BFD send", "peer", sends[i].Peer, "error", err)
		}
	}
	if events := m.Events(); len(events) > 0 {
		r.cfg.Sink(slices.Clone(events))
	}
	for _, discr := range m.Gone() {
		r.conn.Release(discr)
	}
}

// ask queues fn for the loop; false: there is none any more. Before Run the queue
// waits for it.
func (r *Runner) ask(fn func(m *Manager, now time.Time)) bool {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return false
	}
	r.asked = append(r.asked, fn)
	r.mu.Unlock()
	r.conn.Wake()
	return true
}

// await queues fn and waits until it is done.
func (r *Runner) await(fn func(m *Manager, now time.Time)) error {
	r.mu.Lock()
	running := r.running
	r.mu.Unlock()
	done := make(chan struct{})
	if !running || !r.ask(func(m *Manager, now time.Time) { fn(m, now); close(done) }) {
		return ErrNotRunning
	}
	select {
	case <-done:
		return nil
	case <-r.done:
		return ErrNotRunning
	}
}

// Reconcile makes the sessions be those of peers; see Manager.Reconcile. It does not
// wait. What is wrong with single entries is returned; a limit that is reached is
// logged and counted.
func (r *Runner) Reconcile(peers []Peer) error {
	var errs []error
	for _, p := range peers {
		errs = append(errs, p.Validate())
	}
	peers = slices.Clone(peers)
	ok := r.ask(func(m *Manager, now time.Time) {
		if err := m.Reconcile(peers, now); err != nil {
			r.cfg.Log.Warn("BFD sessions refused", "error", err)
		}
	})
	if !ok {
		errs = append(errs, ErrNotRunning)
	}
	return errors.Join(errs...)
}

// Ignore says by which interfaces, by index, nothing is to be taken. It does not wait; a
// Conn that has no interfaces ignores it.
func (r *Runner) Ignore(interfaces []int) {
	conn, ok := r.conn.(interface{ Ignore(interfaces []int) error })
	if !ok {
		return
	}
	interfaces = slices.Clone(interfaces)
	r.ask(func(*Manager, time.Time) {
		if err := conn.Ignore(interfaces); err != nil {
			r.counters.FilterErrors++
			r.cfg.Log.Warn("BFD is taken from host ports too", "error", err)
		}
	})
}

// LinkDown tells that an interface has lost its carrier. It does not wait.
func (r *Runner) LinkDown(ifname string) {
	r.ask(func(m *Manager, now time.Time) { m.LinkDown(ifname, now) })
}

// LinkUp tells that the carrier is back. It does not wait.
func (r *Runner) LinkUp(ifname string) {
	r.ask(func(m *Manager, now time.Time) { m.LinkUp(ifname, now) })
}

// Status asks for all sessions.
func (r *Runner) Status() (out []Status, err error) {
	err = r.await(func(m *Manager, now time.Time) { out = m.Status(now) })
	return out, err
}

// Stray returns what came that is for no session of ours.
func (r *Runner) Stray() (s Stray, err error) {
	err = r.await(func(m *Manager, _ time.Time) { s = m.Stray() })
	return s, err
}

// Counters asks for the counters.
func (r *Runner) Counters() (c Counters, t TransportCounters, err error) {
	err = r.await(func(m *Manager, _ time.Time) {
		c, t = m.Counters(), r.counters
		if conn, ok := r.conn.(counting); ok {
			conn.count(&t)
		}
	})
	return c, t, err
}
