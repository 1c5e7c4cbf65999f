package hostagent

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/hostkernel"
)

const resetWithin = 3 * time.Minute // longer than the kernel's admin_timeout

// leaver does what one notice asks for. It belongs to goroutines of its own.
type leaver struct {
	a      *Actor
	policy *Policy
	job    job
	path   path
	own    bool                    // it is this host's own port that lost its carrier
	all    []hostkernel.Controller // on the path, as last seen
	living []hostkernel.Controller // live ones on other paths, as last seen
	word   fenceWord
}

func (l *leaver) action(kind string, cs ...hostkernel.Controller) Action {
	n := &l.job.notice
	act := Action{Kind: kind, Subject: l.path.subject, Host: l.path.host, Reason: n.Reason, OwnLink: l.own, Seq: n.Seq, Received: l.job.at, Begun: l.a.now()}
	for i := range cs {
		act.Controllers = append(act.Controllers, cs[i].Name())
	}
	return act
}

func (l *leaver) report(act *Action) {
	act.Done = l.a.now()
	l.a.report(*act)
}

func (l *leaver) do(ctx context.Context, m Measure, cs []hostkernel.Controller) {
	if l.policy.Observe {
		l.observe(m, cs)
		return
	}
	switch m {
	case Destroy, Reset:
		l.leave(ctx, m, cs, unprobed)
	case Ask:
		if l.leave(ctx, m, cs, unprobed) {
			l.each(cs, func(c *hostkernel.Controller) { l.probe(ctx, c, true) })
		}
	case Probe:
		l.each(cs, func(c *hostkernel.Controller) { l.probe(ctx, c, false) })
	case Avoid:
		l.each(cs, func(c *hostkernel.Controller) { l.avoid(ctx, c) })
	case Forget:
		if !sleep(ctx, l.policy.DeleteAfter) {
			return
		}
		l.each(cs, func(c *hostkernel.Controller) { l.forget(ctx, c) })
	case Remove:
		l.each(cs, func(c *hostkernel.Controller) {
			act := l.action("forget", *c)
			l.a.slot(ctx, func() { act.fail(l.a.kernel.Delete(c)) })
			l.report(&act)
		})
	}
}

// observe reports what would be done.
func (l *leaver) observe(m Measure, cs []hostkernel.Controller) {
	act := l.action(m.kind(), cs...)
	act.Observed = true
	l.report(&act)
}

// each works on controllers at once.
func (l *leaver) each(cs []hostkernel.Controller, f func(c *hostkernel.Controller)) {
	var wg sync.WaitGroup
	for i := range cs {
		wg.Go(func() { f(&cs[i]) })
	}
	wg.Wait()
}

// leave leaves controllers once the policy of fences allows it, those of one target together: the
// end of their sockets is the end of them all. With Ask that is the caller's. It reports whether
// the policy allowed it for any.
func (l *leaver) leave(ctx context.Context, m Measure, cs []hostkernel.Controller, asked probed) bool {
	targets := map[netip.AddrPort][]hostkernel.Controller{}
	var refused Action
	for _, o := range l.all { // the end of the sockets is theirs too
		if slices.ContainsFunc(cs, func(c hostkernel.Controller) bool {
			return c.Target == o.Target && c.Instance != o.Instance && o.Transport == "tcp"
		}) &&
			l.policy.mayLeave(&o) && !slices.ContainsFunc(cs, func(c hostkernel.Controller) bool { return c.Instance == o.Instance }) {
			cs = append(slices.Clip(cs), o)
		}
	}
	for i := range cs {
		c := &cs[i]
		switch {
		case c.Discovery:
		case !l.policy.mayLeave(c):
			refused.leave(c, "not ours")
		default:
			targets[c.Target] = append(targets[c.Target], *c)
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	any := false
	for _, group := range targets {
		wg.Go(func() {
			g := l.gate(ctx, group, asked)
			defer g.close()
			if g.outcome != gateLeave {
				return
			}
			mu.Lock()
			any = true
			mu.Unlock()
			if m != Ask {
				l.a.slot(ctx, func() { l.failOver(m, group, g.fenced) })
			}
		})
	}
	if len(refused.Left) > 0 {
		act := l.action("failover")
		act.Left = refused.Left
		l.report(&act)
	}
	wg.Wait()
	return any
}

// failOver has the kernel send the I/O of controllers of one target over other paths at once.
// Nothing is taken away: they connect again by themselves when the path is back.
func (l *leaver) failOver(m Measure, cs []hostkernel.Controller, fenced *Fenced) {
	act := l.action("failover", cs...)
	act.Fence = fenced
	if m == Reset {
		for i := range cs {
			l.reset(&cs[i])
		}
		l.report(&act)
		return
	}
	l.hurry(cs...)
	tcp := slices.ContainsFunc(cs, func(c hostkernel.Controller) bool { return c.Transport == "tcp" })
	var noDestroy bool
	if tcp {
		n, err := l.a.kernel.Destroy(hostkernel.Sockets{Source: l.path.host, Target: cs[0].Target})
		act.Sockets = n
		act.fail(err)
		noDestroy = errors.Is(err, hostkernel.ErrNoDestroy)
	}
	for i := range cs {
		if cs[i].Transport != "tcp" || noDestroy {
			l.reset(&cs[i])
		}
	}
	if l.own {
		act.fail(l.a.kernel.Unqueue(l.path.host))
	}
	l.report(&act)
}

// hurry has controllers try to come back each second until they are live, and reports whether one
// did not do so already, because it was left before.
func (l *leaver) hurry(cs ...hostkernel.Controller) (fresh bool) {
	l.a.guard.Lock()
	defer l.a.guard.Unlock()
	for i := range cs {
		c := &cs[i]
		if l.a.undo[c.Instance] != nil {
			continue
		}
		if undo, err := l.a.kernel.HurryReconnect(c); err == nil {
			l.a.undo[c.Instance], fresh = undo, true
		}
	}
	return fresh
}

// reset resets a controller in the background: that can take as long as the kernel's admin_timeout.
func (l *leaver) reset(c *hostkernel.Controller) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), resetWithin)
		defer cancel()
		act := l.action("reset", *c)
		act.fail(l.a.kernel.Reset(ctx, c))
		l.report(&act)
	}()
}

// sleep reports whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
