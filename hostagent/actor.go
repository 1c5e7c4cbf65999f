package hostagent

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// refreshEvery is how often controllers are looked at anew without an event: the kernel tells
// nobody that one lost its connection.
const refreshEvery = time.Second

// Limits of what is under way at once.
const (
	maxConnects = 8   // each holds a thread of the kernel
	maxLeaving  = 256 // paths that are being left
	maxPaths    = 2 * snsd.MaxAgentPairs
)

// Actor acts on the host's NVMe controllers. Its methods never wait for the kernel.
type Actor struct {
	kernel hostkernel.Kernel
	events <-chan hostkernel.Event // may be nil
	report func(Action)            // is called by many goroutines, and must not wait
	now    func() time.Time
	find   Finder
	fencer Fencer // nil: none

	mu      sync.Mutex
	policy  Policy
	pending map[path]job // the newest word about each path that was not begun yet
	order   []path
	fences  map[path]*snsd.Fence
	links   []linkChange
	// finished are the paths that nobody connects any more, again those on which a controller
	// appeared after all.
	finished, again []path
	wake            chan struct{}

	paths  map[path]*pathState     // of the loop
	tidied time.Time               // when paths were last forgotten to make room
	own    map[path]*pathState     // paths that are left because their own link is down
	known  []hostkernel.Controller // as last seen, of the loop
	missed []job                   // no controller was known: looked at once more after a refresh
	fresh  chan seen

	slots    chan struct{} // of paths that are being left
	asks     chan struct{} // of the Fencer
	connects chan struct{}

	guard   sync.Mutex // of the two below
	leaving map[int]bool
	undo    map[int]func() error // what is to be done when a controller is live again
}

// path is what goes from an own address to a subject.
type path struct{ host, subject netip.Addr }

type job struct {
	notice  snsd.Notice
	at      time.Time // the kernel took the frame
	connect bool      // the restraint is over: connect
	again   bool      // it was looked at before
}

// seen is what a look at the kernel found.
type seen struct {
	controllers []hostkernel.Controller
	err         error
}

type pathState struct {
	last    snsd.Notice
	leaver  *leaver            // nil: it is not being left
	cancel  context.CancelFunc // ends what is under way
	wanted  bool               // connected, or to be
	working bool               // somebody connects it

	observed bool // that it would be connected was reported
}

// NewActor gives an actor that Run has to work for.
func NewActor(kernel hostkernel.Kernel, p Policy, find Finder, events <-chan hostkernel.Event, report func(Action)) *Actor {
	return &Actor{
		kernel: kernel, policy: p, find: find, events: events, report: report, now: time.Now,
		pending: make(map[path]job), fences: make(map[path]*snsd.Fence), own: make(map[path]*pathState), wake: make(chan struct{}, 1),
		paths: make(map[path]*pathState), fresh: make(chan seen, 1),
		slots: make(chan struct{}, maxLeaving), asks: make(chan struct{}, maxFenceAsks), connects: make(chan struct{}, maxConnects),
		leaving: make(map[int]bool), undo: make(map[int]func() error),
	}
}

// Tell hands over a notice. Of two about one path the newer one counts.
func (a *Actor) Tell(n snsd.Notice, at time.Time) { a.put(job{notice: n, at: at}) }

// Connect has a target connected: it is active and the restraint is over.
func (a *Actor) Connect(n snsd.Notice, at time.Time) {
	a.put(job{notice: n, at: at, connect: true})
}

func (a *Actor) put(j job) {
	p := path{j.notice.Host, j.notice.Subject}
	a.mu.Lock()
	if _, ok := a.pending[p]; !ok {
		a.order = append(a.order, p)
	}
	a.pending[p] = j
	a.mu.Unlock()
	a.poke()
}

// FenceBy has a Fencer asked about each path that is to be left. It is to be called before Run.
func (a *Actor) FenceBy(f Fencer) { a.fencer = f }

// Fenced hands over the fence of a path that is inactive.
func (a *Actor) Fenced(n snsd.Notice) {
	p := path{n.Host, n.Subject}
	a.mu.Lock()
	if j, ok := a.pending[p]; ok {
		j.notice.Fence = n.Fence
		a.pending[p] = j
	} else if _, ok := a.fences[p]; ok || len(a.fences) < maxPaths {
		a.fences[p] = n.Fence
	}
	a.mu.Unlock()
	a.poke()
}

// SetPolicy changes what is done from the next notice on.
func (a *Actor) SetPolicy(p Policy) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.policy = p
}

// Policy gives it.
func (a *Actor) Policy() Policy {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.policy
}

func (a *Actor) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// reconsider has what was last said of a path done once more.
func (a *Actor) reconsider(p path) {
	a.mu.Lock()
	a.again = append(a.again, p)
	a.mu.Unlock()
	a.poke()
}

// take gives what was handed over since the last time.
func (a *Actor) take() (jobs []job, links []linkChange) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.finished {
		if st := a.paths[p]; st != nil {
			st.working = false
		}
	}
	for _, p := range a.again {
		if st := a.paths[p]; st != nil && st.last.State == snsd.Inactive {
			a.missed = append(a.missed, job{notice: st.last, at: a.now(), again: true})
		}
	}
	a.finished, a.again = nil, nil
	for _, p := range a.order {
		jobs = append(jobs, a.pending[p])
	}
	for p, f := range a.fences {
		a.setFence(p, f)
	}
	clear(a.fences)
	clear(a.pending)
	a.order, links, a.links = nil, a.links, nil
	return jobs, links
}

// setFence hands a fence to what leaves its path, or is to.
func (a *Actor) setFence(p path, f *snsd.Fence) {
	for _, st := range []*pathState{a.paths[p], a.own[p]} {
		if st == nil {
			continue
		}
		st.last.Fence = f
		if st.leaver != nil {
			st.leaver.word.set(f)
		}
	}
	for i := range a.missed {
		if n := &a.missed[i].notice; n.Host == p.host && n.Subject == p.subject {
			n.Fence = f
		}
	}
}

// Run works until ctx ends. What blocks in the kernel then is left behind.
func (a *Actor) Run(ctx context.Context) {
	// The first look is made before the first notice, so that no step of it is a first one then.
	a.look()
	a.refreshed(ctx, <-a.fresh)
	if !a.Policy().Observe {
		a.dropDiscovery()
	}
	looking := false
	refresh := func() {
		if !looking {
			looking = true
			go a.look()
		}
	}
	timer := time.NewTicker(refreshEvery)
	defer timer.Stop()
	events := a.events
	for {
		select {
		case <-ctx.Done():
			for _, st := range a.paths {
				st.stop()
			}
			for _, st := range a.own {
				st.stop()
			}
			return
		case <-a.wake:
			jobs, links := a.take()
			for _, l := range links {
				if l.up {
					a.linkUp(l)
				} else {
					a.linkDown(ctx, l)
				}
			}
			for i := range jobs {
				a.begin(ctx, jobs[i])
			}
			if len(a.missed) > 0 {
				refresh()
			}
		case _, ok := <-events:
			if !ok {
				events = nil
			}
			refresh()
		case <-timer.C:
			refresh()
		case s := <-a.fresh:
			looking = false
			a.refreshed(ctx, s)
		}
	}
}

func (a *Actor) look() {
	cs, err := a.kernel.Controllers()
	_ = a.kernel.Tidy() // of controllers that are gone; it is tried again each second
	a.fresh <- seen{cs, err}
}

// refreshed takes what the kernel has now.
func (a *Actor) refreshed(ctx context.Context, s seen) {
	if s.err != nil && len(s.controllers) == 0 && len(a.known) > 0 {
		return // not to be read: what was known is more
	}
	a.known = s.controllers
	a.restore()
	missed := a.missed
	a.missed = nil
	for _, j := range missed {
		a.begin(ctx, j)
	}
	for p, st := range a.paths {
		if st.wanted && !st.working && len(a.on(p)) == 0 {
			a.connect(ctx, p, st, a.Policy().Restraint)
		}
	}
}

// restore undoes for those that are live, or gone, what was done to have them try faster.
func (a *Actor) restore() {
	a.guard.Lock()
	defer a.guard.Unlock()
	for n, undo := range a.undo {
		i := slices.IndexFunc(a.known, func(c hostkernel.Controller) bool { return c.Instance == n })
		switch {
		case i < 0:
			delete(a.undo, n)
		case a.known[i].State == hostkernel.Live:
			_ = undo() // it may vanish meanwhile
			delete(a.undo, n)
		}
	}
}

// on lists the controllers on a path, as last seen.
func (a *Actor) on(p path) (list []hostkernel.Controller) {
	for _, c := range a.known {
		if !c.Discovery && c.On(p.host, p.subject) {
			list = append(list, c)
		}
	}
	return list
}

func (st *pathState) stop() {
	if st.cancel != nil {
		st.cancel()
		st.cancel, st.leaver = nil, nil
	}
}

// begin ends what is under way about a path and begins what a notice asks for.
func (a *Actor) begin(ctx context.Context, j job) {
	p, policy := path{j.notice.Host, j.notice.Subject}, a.Policy()
	st := a.paths[p]
	if st == nil {
		st = &pathState{}
		switch {
		case a.room():
			a.paths[p] = st
		case j.notice.State == snsd.Active: // to leave a path nothing need be known of it
			a.report(Action{Kind: "refused", Subject: p.subject, Host: p.host, Seq: j.notice.Seq, Received: j.at, Begun: j.at, Done: a.now(), Error: "too many paths"})
			return
		}
	}
	was := st.last
	st.last = j.notice
	switch {
	case j.connect && !policy.Connect:
	case j.connect:
		st.stop()
		a.connect(ctx, p, st, 0)
	case j.notice.State == snsd.Active:
		if was.State == snsd.Inactive {
			st.stop() // it is not to be left any more
		}
	default:
		st.stop()
		st.wanted, st.working = false, false
		a.leavePath(ctx, p, st, j, &policy)
	}
}

// tidyEvery bounds how often paths are forgotten to make room.
const tidyEvery = time.Second

// room reports whether one more path can be kept. Those that nobody wants and on which there is
// nothing give way.
func (a *Actor) room() bool {
	if len(a.paths) >= maxPaths && a.now().Sub(a.tidied) >= tidyEvery {
		a.tidied = a.now()
		maps.DeleteFunc(a.paths, func(p path, st *pathState) bool {
			if st.wanted || len(a.on(p)) > 0 {
				return false
			}
			st.stop()
			return true
		})
	}
	return len(a.paths) < maxPaths
}

// leavePath begins the measure of an inactive notice.
func (a *Actor) leavePath(ctx context.Context, p path, st *pathState, j job, policy *Policy) {
	measure := policy.By[j.notice.Reason]
	if measure == Nothing {
		return
	}
	cs := a.on(p)
	if len(cs) == 0 {
		if !j.again {
			j.again = true
			a.missed = append(a.missed, j)
		}
		return
	}
	ctx, st.cancel = context.WithCancel(ctx)
	l := a.newLeaver(policy, j, p, nil)
	st.leaver = l
	if measure == Destroy {
		// Where I/O has no other way it gains nothing by leaving one that answers after all.
		alone := slices.DeleteFunc(slices.Clone(cs), func(c hostkernel.Controller) bool { return a.elsewhere(&c, p) })
		if len(alone) > 0 {
			go l.do(ctx, Probe, alone)
		}
		cs = slices.DeleteFunc(cs, func(c hostkernel.Controller) bool { return !a.elsewhere(&c, p) })
	}
	if len(cs) > 0 {
		go l.do(ctx, measure, cs)
	}
}

// newLeaver makes what leaves a path; lost are own addresses without carrier.
func (a *Actor) newLeaver(policy *Policy, j job, p path, lost []netip.Addr) *leaver {
	l := &leaver{a: a, policy: policy, job: j, path: p, all: a.on(p), word: fenceWord{fence: j.notice.Fence}}
	for _, c := range a.known {
		if c.Usable() && !c.Discovery && !c.On(p.host, p.subject) && !slices.Contains(lost, c.Source) {
			l.living = append(l.living, c)
		}
	}
	return l
}

// elsewhere reports whether I/O of a controller can take another path than this one, as last seen.
func (a *Actor) elsewhere(c *hostkernel.Controller, p path) bool {
	return slices.ContainsFunc(a.known, func(o hostkernel.Controller) bool {
		return o.Joins(c) && o.Usable() && !o.On(p.host, p.subject)
	})
}

// slot runs f, after others where there are too many at once.
func (a *Actor) slot(ctx context.Context, f func()) {
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
		f()
	case <-ctx.Done():
	}
}

// errTimeout is that a controller gave no answer.
var errTimeout = errors.New("no answer")
