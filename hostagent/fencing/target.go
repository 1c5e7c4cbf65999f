package fencing

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Path is an address pair: a host and this array.
type Path struct {
	Host  netip.Addr `json:"host"`
	Array netip.Addr `json:"array"`
}

// Kernel is what a Target needs of its machine.
type Kernel interface {
	// Serves reports by nil that this machine serves NVMe at an address, and can fence there.
	Serves(array netip.Addr) error
	// Block drops the frames of a path both ways until a time, egress first; again: no earlier. It
	// returns when nothing passes.
	Block(p Path, until time.Time) error
	// Lift ends the block of a path.
	Lift(p Path) error
	// End ends the connections of a path.
	End(p Path) error
	// Existing counts the connections of a path that have not been released: until then what came in
	// by them may be in execution. A connection that changes meanwhile may be missed.
	Existing(p Path) (int, error)
	// Settle waits until what changed while it was called is seen by Existing.
	Settle() error
	// Paths lists the paths with an open connection.
	Paths() ([]Path, error)
}

// Limits of a Target.
const (
	maxFences = 256
	maxHosts  = 4096 // whose addresses are remembered
	maxLost   = 4096 // paths that wait to be fenced unasked; the others are fenced when they are asked for
)

// How often a Target looks whether connections exist: in the first time often.
const (
	pollFirst = 2 * time.Millisecond
	pollLater = 20 * time.Millisecond
	firstTime = 200 * time.Millisecond
)

// keepAliveDefault is the kernel's keep-alive time.
const keepAliveDefault = 5 * time.Second

// HoldOf returns how long a path must be blocked at most: until host and array, hearing nothing of
// each other, have both given the connection up (NVMe Base 2.1, 9.6: 3 x the keep-alive time), and
// 2 s more.
func HoldOf(keepAlive time.Duration) time.Duration {
	if keepAlive <= 0 {
		keepAlive = keepAliveDefault
	}
	return 3*keepAlive + 2*time.Second
}

// Fenced is what a Target has reached.
type Fenced struct {
	Took time.Duration // from the begin of the block until nothing was in execution
	Hold time.Duration // how long the block stands from its begin
}

// Counters count what a Target did.
type Counters struct {
	Fenced    uint64 `json:"fenced"`
	Failed    uint64 `json:"failed"`
	Unasked   uint64 `json:"unasked"` // of both, begun by a notice or a lost link
	Confirmed uint64 `json:"confirmed"`
	Expired   uint64 `json:"expired"` // blocks that ended by time, without the host's confirmation
}

// Target fences paths on the array's side. Its methods may be called by several goroutines.
type Target struct {
	kernel Kernel
	report func(Event)   // is called by several goroutines
	hold   time.Duration // of a block that no host has asked for
	ctx    context.Context
	work   sync.WaitGroup

	mu     sync.Mutex
	fences map[Path]*fencing
	hosts  []*knownHost
	count  Counters
	lost   map[Path]bool // to be fenced unasked; without a host: those of each
	awake  bool          // a goroutine fences them
}

// Event is something that an operator wants to know.
type Event struct {
	Path
	Text  string // what happened
	Error string // empty: as wanted
}

// fencing is the fence of one path.
type fencing struct {
	begun, until time.Time
	unasked      bool
	ended        chan struct{} // nothing executes, or err
	fenced       Fenced
	err          error
	confirmed    chan struct{} // the host has left
	once         sync.Once
}

// knownHost are addresses of one host.
type knownHost struct{ addrs []netip.Addr }

// NewTarget returns a Target that works until ctx ends. The blocks of one that has ended stay until
// their time.
func NewTarget(ctx context.Context, kernel Kernel, hold time.Duration, report func(Event)) *Target {
	return &Target{kernel: kernel, hold: hold, report: report, ctx: ctx, fences: make(map[Path]*fencing), lost: make(map[Path]bool)}
}

// Wait returns when all fences have ended.
func (t *Target) Wait() { t.work.Wait() }

// Know remembers that some addresses are one host's.
func (t *Target) Know(addrs []netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.hosts {
		if slices.Equal(h.addrs, addrs) {
			return
		}
	}
	if len(t.hosts) < maxHosts {
		t.hosts = append(t.hosts, &knownHost{slices.Clone(addrs)})
	}
}

// Fence returns when nothing that came over the path can reach the media, or why that cannot be
// had. A fence that stands is joined. ctx ends the waiting, not the fence.
func (t *Target) Fence(ctx context.Context, p Path, hold time.Duration) (Fenced, error) {
	f, err := t.begin(p, hold, false)
	if err != nil {
		return Fenced{}, err
	}
	select {
	case <-f.ended:
		return f.fenced, f.err
	case <-ctx.Done():
		return Fenced{}, ctx.Err()
	}
}

// begin begins the fence of a path, or prolongs the one that stands.
func (t *Target) begin(p Path, hold time.Duration, unasked bool) (*fencing, error) {
	t.mu.Lock()
	f := t.fences[p]
	if f != nil && (!closed(f.ended) || !closed(f.confirmed) && time.Now().Before(f.until)) {
		begun := f.begun
		longer := begun.Add(hold).After(f.until)
		if longer {
			f.until = begun.Add(hold)
		}
		until := f.until
		t.mu.Unlock()
		if longer {
			return f, t.kernel.Block(p, until)
		}
		return f, nil
	}
	defer t.mu.Unlock()
	if f == nil && len(t.fences) >= maxFences {
		return nil, refuse(CodeBusy, "%d fences at a time", maxFences)
	}
	now := time.Now()
	f = &fencing{begun: now, until: now.Add(hold), unasked: unasked, ended: make(chan struct{}), confirmed: make(chan struct{})}
	t.fences[p] = f
	t.work.Go(func() { t.run(p, f) })
	return f, nil
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// run fences one path and takes its block away in the end.
func (t *Target) run(p Path, f *fencing) {
	f.err = t.fence(p, f)
	t.mu.Lock()
	f.fenced = Fenced{Took: time.Since(f.begun), Hold: f.until.Sub(f.begun)}
	switch {
	case f.err == nil:
		t.count.Fenced++
	default:
		t.count.Failed++
	}
	if f.unasked {
		t.count.Unasked++
	}
	t.mu.Unlock()
	close(f.ended)
	e := Event{Path: p, Text: "fenced: array by target in " + f.fenced.Took.Round(time.Millisecond).String()}
	if f.err != nil {
		e = Event{Path: p, Text: "not fenced", Error: f.err.Error()}
	}
	t.report(e)
	// A path that was not fenced is blocked until its time too: the array's reset of its connection
	// would have the host send the write again while the old one is executed.
	if r, ok := errors.AsType[*Refusal](f.err); !ok || r.Code != CodeBlock {
		t.stand(f)
	}
	t.mu.Lock()
	if t.fences[p] != f { // a new one has begun: the block is its
		t.mu.Unlock()
		return
	}
	delete(t.fences, p)
	var err error
	if t.ctx.Err() == nil { // the block of an agent that stops stands until its time
		err = t.kernel.Lift(p) // with the lock: no new one may block before
	}
	t.mu.Unlock()
	if err != nil {
		t.report(Event{Path: p, Text: "the block ends by time", Error: err.Error()})
	}
}

// stand waits until the block may be lifted.
func (t *Target) stand(f *fencing) {
	for {
		t.mu.Lock()
		left := time.Until(f.until)
		t.mu.Unlock()
		if left <= 0 {
			t.mu.Lock()
			t.count.Expired++
			t.mu.Unlock()
			return
		}
		if t.pause(left, f.confirmed) {
			return
		}
	}
}

// pause waits; it reports whether it was ended.
func (t *Target) pause(d time.Duration, end <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-end:
		return true
	case <-t.ctx.Done():
		return true
	}
}

// fence does the steps, in this order: block, end the connections, wait for their release.
func (t *Target) fence(p Path, f *fencing) error {
	t.mu.Lock()
	until := f.until
	t.mu.Unlock()
	if err := t.kernel.Block(p, until); err != nil {
		return refuse(CodeBlock, "%v", err)
	}
	for {
		if err := t.kernel.End(p); err != nil {
			return refuse(CodeFailed, "end the connections: %v", err)
		}
		n, err := t.kernel.Existing(p)
		if err == nil && n == 0 {
			// What changed while it was looked at is seen now. A connection that was being made when
			// the block began may be among it.
			if err = t.kernel.Settle(); err == nil {
				n, err = t.kernel.Existing(p)
			}
		}
		if err != nil {
			return refuse(CodeFailed, "look for its connections: %v", err)
		}
		if n == 0 {
			return nil
		}
		t.mu.Lock()
		left := time.Until(f.until)
		t.mu.Unlock()
		if left <= 0 {
			return refuse(CodeWait, "%d connections still have commands in execution after %v", n, time.Since(f.begun).Round(time.Millisecond))
		}
		wait := pollFirst
		if time.Since(f.begun) > firstTime {
			wait = pollLater
		}
		if t.pause(min(wait, left), nil) {
			return refuse(CodeFailed, "the agent of the array stops")
		}
	}
}

// Confirm says that the host has left a path, or will not leave it: its block is lifted once nothing
// is in execution.
func (t *Target) Confirm(p Path) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.fences[p]; f != nil {
		f.once.Do(func() {
			t.count.Confirmed++
			close(f.confirmed)
		})
		return
	}
	if err := t.kernel.Lift(p); err != nil { // of the agent before a restart
		t.report(Event{Path: p, Text: "the block ends by time", Error: err.Error()})
	}
}

// Check reports by nil that the paths of an address could be fenced.
func (t *Target) Check(array netip.Addr) error { return t.kernel.Serves(array) }

// HostLost has the path of a host that the switch calls unreachable fenced, unasked. It does not wait.
func (t *Target) HostLost(host, array netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lost) < maxLost {
		t.lost[Path{host, array}] = true
	}
	t.wake()
}

// PortLost has the paths to addresses whose port has failed fenced, unasked. It does not wait.
func (t *Target) PortLost(arrays []netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range arrays {
		t.lost[Path{Array: a}] = true // of each host
	}
	t.wake()
}

// wake has one goroutine fence what is lost.
func (t *Target) wake() {
	if t.awake || t.ctx.Err() != nil {
		return
	}
	t.awake = true
	t.work.Go(func() {
		for {
			t.mu.Lock()
			lost := t.lost
			t.lost = make(map[Path]bool)
			t.awake = len(lost) > 0 && t.ctx.Err() == nil
			awake := t.awake
			t.mu.Unlock()
			if !awake {
				return
			}
			t.unasked(func(p Path) bool { return lost[p] || lost[Path{Array: p.Array}] })
		}
	})
}

// unasked fences the lost paths with a connection, so that a host that asks later is answered at
// once. Only those of a known host that has a connection by another path: the last path of a host
// is never blocked.
func (t *Target) unasked(lost func(Path) bool) {
	paths, err := t.kernel.Paths()
	if err != nil {
		t.report(Event{Text: "nothing is fenced unasked", Error: err.Error()})
		return
	}
	for _, p := range paths {
		if !lost(p) {
			continue
		}
		own := t.hostOf(p.Host)
		other := slices.ContainsFunc(paths, func(o Path) bool { return slices.Contains(own, o.Host) && !lost(o) && !t.standing(o) })
		if !other {
			continue
		}
		if _, err := t.begin(p, t.hold, true); err != nil {
			t.report(Event{Path: p, Text: "not fenced", Error: err.Error()})
		}
	}
}

// hostOf returns the addresses of the host that has one.
func (t *Target) hostOf(addr netip.Addr) []netip.Addr {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.hosts {
		if slices.Contains(h.addrs, addr) {
			return h.addrs
		}
	}
	return nil
}

func (t *Target) standing(p Path) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fences[p] != nil
}

// Counters returns what was counted.
func (t *Target) Counters() Counters {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}
