package hostagent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// Times of waiting for a fence.
const (
	lookAgain     = 250 * time.Millisecond // whether the kernel left by itself
	confirmWithin = 10 * time.Second
	askAgain      = 5 * time.Second // a Fencer that could not, while a path stays
	maxFenceAsks  = 64              // of the Fencer, at once

	kernelKeepAlive = 5 * time.Second // of a controller for which it is not known
)

// fenceWord is the newest that the switch said of the fence of a path.
type fenceWord struct {
	mu      sync.Mutex
	fence   *snsd.Fence
	changed chan struct{} // is closed when there is something newer
}

func (w *fenceWord) set(f *snsd.Fence) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fence = f
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

func (w *fenceWord) get() (*snsd.Fence, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.fence, w.changed
}

// outcome is what a gate came to.
type outcome uint8

const (
	gateEnded outcome = iota // the notice no longer holds
	gateLeave                // the controllers are to be left now
	gateGone                 // the kernel left them by itself
	gateKept                 // they answer
)

// gate drives a fencing for controllers that have one target in common.
type gate struct {
	l       *leaver
	cs      []hostkernel.Controller
	machine fencing
	outcome outcome
	fenced  *Fenced

	cancel context.CancelFunc
	asked  sync.WaitGroup
	works  chan struct{} // the array is at work
	mu     sync.Mutex
	fences []FencePair // what the Fencer did, or was about to do
}

// gate waits until controllers are to be left, or not to be. close is to be called when that is
// done.
func (l *leaver) gate(ctx context.Context, cs []hostkernel.Controller, asked probed) *gate {
	g := &gate{l: l, cs: cs, machine: l.fencing(cs), cancel: func() {}, works: make(chan struct{}, 1)}
	g.machine.probed = asked
	if l.policy.Fence == FenceOff {
		g.outcome, g.fenced = gateLeave, g.machine.result(l.a.now())
		return g
	}
	ctx, g.cancel = context.WithCancel(ctx)
	if g.left() {
		g.outcome = gateGone
	} else {
		g.run(ctx, g.ask(ctx))
	}
	if g.outcome == gateGone && l.hurry(cs...) {
		act := l.action("kernel-left", cs...)
		act.Fence = &Fenced{Why: "the kernel left"}
		l.report(&act)
	}
	return g
}

// fencing returns the machine for controllers.
func (l *leaver) fencing(cs []hostkernel.Controller) fencing {
	f := fencing{mode: l.policy.Fence, wait: l.policy.FenceWait, since: l.a.now()}
	if f.mode == FenceOff {
		return f
	}
	settled, expires := true, true
	for i := range cs {
		settle, ok := l.policy.settle(&cs[i])
		if settled = settled && ok; ok && (f.settle == nil || settle > *f.settle) {
			f.settle = &settle
		}
		kato, err := l.a.kernel.KeepAliveTimeout(&cs[i])
		if err != nil {
			f.doubt(err.Error())
		}
		f.need, expires = max(f.need, holdNeeded(kato)), expires && kato > 0
		f.most = max(f.most, holdNeeded(cmp.Or(kato, kernelKeepAlive)))
	}
	if !settled {
		f.settle = nil
	}
	if !expires {
		f.need = 0
	}
	return f
}

// holdNeeded is how long a block must stand until the array has ended a connection on which it hears
// nothing: with keep-alives by traffic after up to 3 of the times.
func holdNeeded(kato time.Duration) time.Duration { return 3*kato + 2*time.Second }

// run works the machine until it comes to an outcome.
func (g *gate) run(ctx context.Context, answers <-chan asked) {
	l := g.l
	word, changed := l.word.get()
	g.machine.hear(word, l.a.now())
	timer := time.NewTimer(0)
	defer timer.Stop()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	var probe chan probed
	said, asks := false, 0
	var again <-chan time.Time
	for {
		now := l.a.now()
		v, until := g.machine.decide(now)
		switch v {
		case verdictLeave:
			g.outcome, g.fenced = gateLeave, g.machine.result(now)
			return
		case verdictStay:
			if !said {
				said = true
				act := l.action("stay", g.cs...)
				act.Fence = g.machine.result(now)
				l.report(&act)
			}
		case verdictProbe, verdictKeep:
			if asks == askTimes && probe == nil {
				act := l.action("kept", g.cs...)
				act.Fence = g.machine.result(now)
				l.report(&act)
				g.outcome = gateKept
				return
			}
			if probe == nil {
				asks++
				probe = make(chan probed, 1)
				go g.probe(ctx, v == verdictKeep, probe)
			}
		}
		if !until.IsZero() {
			timer.Reset(until.Sub(now))
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			word, changed = l.word.get()
			g.machine.hear(word, l.a.now())
		case <-g.works:
			g.machine.works(l.a.now())
		case r := <-answers:
			g.machine.asked(r.fence, r.err, l.a.now())
			if r.err != nil && g.machine.mode == FenceRequire {
				again = time.After(askAgain)
			}
		case <-again:
			again, answers = nil, g.ask(ctx)
		case p := <-probe:
			probe, g.machine.probed = nil, p
		case <-timer.C:
		case <-look.C:
			if g.left() {
				g.outcome = gateGone
				return
			}
		}
	}
}

// left reports whether the kernel has left all controllers.
func (g *gate) left() bool {
	return !slices.ContainsFunc(g.cs, func(c hostkernel.Controller) bool {
		now, err := g.l.a.kernel.Controller(c.Instance)
		return err == nil && now.State == hostkernel.Live
	})
}

// probe asks all controllers once.
func (g *gate) probe(ctx context.Context, again bool, reply chan<- probed) {
	if again && !sleep(ctx, askEvery) {
		return
	}
	p := answered
	var mu sync.Mutex
	g.l.each(g.cs, func(c *hostkernel.Controller) {
		if err := g.l.answers(ctx, c); err != nil {
			mu.Lock()
			p = unanswered
			mu.Unlock()
		}
	})
	reply <- p
}

// asked is what a Fencer came to.
type asked struct {
	fence snsd.Fence
	err   error
}

var errNoLiving = errors.New("no other path of the subsystem is live, over which a fence could be asked for")

// ask has the Fencer, if there is one, fence each subsystem; of several the lowest level counts.
func (g *gate) ask(ctx context.Context) <-chan asked {
	l := g.l
	if l.a.fencer == nil {
		return nil
	}
	var pairs []FencePair
	for i := range g.cs {
		c := &g.cs[i]
		n := slices.IndexFunc(pairs, func(p FencePair) bool { return p.NQN == c.NQN })
		if n < 0 {
			n = len(pairs)
			living := slices.DeleteFunc(slices.Clone(l.living), func(o hostkernel.Controller) bool { return !o.Joins(c) })
			pairs = append(pairs, FencePair{Host: l.path.host, Array: l.path.subject, NQN: c.NQN, Living: living})
		}
		pairs[n].Controllers = append(pairs[n].Controllers, *c)
	}
	if slices.ContainsFunc(pairs, func(p FencePair) bool { return len(p.Living) == 0 }) {
		g.machine.doubt(errNoLiving.Error())
		return nil
	}
	g.machine.asking = true
	each := make(chan asked, len(pairs))
	for _, p := range pairs {
		g.asked.Go(func() {
			select {
			case l.a.asks <- struct{}{}:
				defer func() { <-l.a.asks }()
			case <-ctx.Done():
				each <- asked{err: ctx.Err()}
				return
			}
			f, err := l.a.fencer.Fence(ctx, p, func() {
				select {
				case g.works <- struct{}{}:
				default:
				}
			})
			if err == nil || ctx.Err() != nil {
				g.mu.Lock()
				if !slices.ContainsFunc(g.fences, func(o FencePair) bool { return o.NQN == p.NQN }) {
					g.fences = append(g.fences, p)
				}
				g.mu.Unlock()
			}
			each <- asked{f, err}
		})
	}
	all := make(chan asked, 1)
	go func() {
		lowest := asked{fence: snsd.Fence{Level: snsd.FenceArray}}
		for n := 0; n < cap(each) && lowest.err == nil; n++ {
			if r := <-each; r.err != nil || r.fence.Level <= lowest.fence.Level {
				lowest = r
			}
		}
		all <- lowest
	}()
	return all
}

// close ends what is still asked, and lets the Fencer lift its blocks once the kernel has left.
func (g *gate) close() {
	g.cancel()
	go func() {
		g.asked.Wait()
		if len(g.fences) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), downWithin+confirmWithin)
		defer cancel()
		if g.outcome == gateLeave {
			for i := range g.cs {
				g.l.down(ctx, &g.cs[i])
			}
		}
		for _, p := range g.fences {
			if err := g.l.a.fencer.Confirm(ctx, p); err != nil {
				act := g.l.action("confirm", p.Controllers...)
				act.fail(err)
				g.l.report(&act)
			}
		}
	}()
}
