package hostagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"sync"
	"time"

	"github.com/openinof/inof/hostkernel"
)

// Times of leaving.
const (
	answerWithin = 100 * time.Millisecond // a Keep Alive is answered
	answerLate   = 50 * time.Millisecond  // more, until it counts as unanswered
	askEvery     = 100 * time.Millisecond
	askTimes     = 100
	downWithin   = time.Minute // from the end of its sockets to `connecting`: the kernel may wait for a keep-alive
	lookEvery    = 20 * time.Millisecond
	resetWithin  = 3 * time.Minute // longer than the kernel's admin_timeout
)

// leaver does what one notice asks for. It belongs to a goroutine of its own.
type leaver struct {
	a      *Actor
	policy *Policy
	job    job
	path   path
	own    bool // it is this host's own port that lost its carrier
}

func (l *leaver) action(kind string) Action {
	n := &l.job.notice
	return Action{Kind: kind, Subject: l.path.subject, Host: l.path.host, Reason: n.Reason, Seq: n.Seq, Received: l.job.at, Begun: l.a.now()}
}

func (l *leaver) report(act *Action) {
	act.Done = l.a.now()
	l.a.report(*act)
}

func (l *leaver) do(ctx context.Context, m Measure, cs []hostkernel.Controller) {
	if l.policy.Quiesce > 0 && !sleep(ctx, l.policy.Quiesce) {
		return
	}
	switch m {
	case Destroy:
		l.failOver(cs)
	case Reset:
		act := l.action("failover")
		for i := range cs {
			if l.policy.mayLeave(&cs[i]) {
				l.reset(&cs[i])
				act.Controllers = append(act.Controllers, cs[i].Name())
			}
		}
		l.report(&act)
	case Probe, Ask:
		l.each(cs, func(c *hostkernel.Controller) { l.probe(ctx, c, m == Ask) })
	case Avoid:
		l.each(cs, func(c *hostkernel.Controller) { l.avoid(ctx, c) })
	case Forget:
		if !sleep(ctx, l.policy.DeleteAfter) {
			return
		}
		l.each(cs, func(c *hostkernel.Controller) { l.forget(ctx, c) })
	case Remove:
		l.each(cs, func(c *hostkernel.Controller) {
			act := l.action("forget")
			act.Controllers = []string{c.Name()}
			act.fail(l.a.kernel.Delete(c))
			l.report(&act)
		})
	}
}

// each works on controllers at once.
func (l *leaver) each(cs []hostkernel.Controller, f func(c *hostkernel.Controller)) {
	var wg sync.WaitGroup
	for i := range cs {
		wg.Go(func() { f(&cs[i]) })
	}
	wg.Wait()
}

// failOver has the kernel send the I/O of controllers over other paths at once. Nothing is taken
// away: they connect again by themselves when the path is back.
func (l *leaver) failOver(cs []hostkernel.Controller) {
	act := l.action("failover")
	ended := map[netip.AddrPort]bool{}
	for i := range cs {
		c := &cs[i]
		switch {
		case c.Discovery:
			continue
		case !l.policy.mayLeave(c):
			act.leave(c, "not ours")
			continue
		}
		l.hurry(c)
		act.Controllers = append(act.Controllers, c.Name())
		if c.Transport == "tcp" {
			ended[c.Target] = true
			continue
		}
		l.reset(c)
	}
	for target := range ended {
		n, err := l.a.kernel.Destroy(hostkernel.Sockets{Source: l.path.host, Target: target})
		act.Sockets += n
		act.fail(err)
		if errors.Is(err, hostkernel.ErrNoDestroy) {
			for i := range cs {
				if cs[i].Target == target && l.policy.mayLeave(&cs[i]) {
					l.reset(&cs[i])
				}
			}
		}
	}
	if l.own {
		act.fail(l.a.kernel.Unqueue(l.path.host))
	}
	l.report(&act)
}

// hurry has a controller try to come back each second until it is live.
func (l *leaver) hurry(c *hostkernel.Controller) {
	l.a.guard.Lock()
	defer l.a.guard.Unlock()
	if l.a.undo[c.Instance] != nil {
		return
	}
	if undo, err := l.a.kernel.HurryReconnect(c); err == nil {
		l.a.undo[c.Instance] = undo
	}
}

// reset resets a controller in the background: that can take as long as the kernel's admin_timeout.
func (l *leaver) reset(c *hostkernel.Controller) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), resetWithin)
		defer cancel()
		act := l.action("reset")
		act.Controllers = []string{c.Name()}
		act.fail(l.a.kernel.Reset(ctx, c))
		l.report(&act)
	}()
}

// answers reports whether a controller answers now.
func (l *leaver) answers(ctx context.Context, c *hostkernel.Controller) error {
	done := make(chan error, 1)
	go func() { done <- l.a.kernel.KeepAlive(c, answerWithin) }()
	timer := time.NewTimer(answerWithin + answerLate)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errTimeout
	case <-ctx.Done():
		return ctx.Err()
	}
}

// probe asks a controller for a while; the first time it gives no answer its path is left, or, as
// the existing agent does, left to the kernel.
func (l *leaver) probe(ctx context.Context, c *hostkernel.Controller, only bool) {
	act := l.action("probe")
	act.Controllers = []string{c.Name()}
	for range askTimes {
		var err error
		if only {
			err = l.a.kernel.KeepAlive(c, answerWithin)
		} else {
			err = l.answers(ctx, c)
		}
		if ctx.Err() != nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		if errors.Is(err, fs.ErrPermission) {
			act.fail(err)
			break
		}
		if err != nil {
			act.fail(err)
			l.report(&act)
			if !only {
				l.failOver([]hostkernel.Controller{*c})
			}
			return
		}
		if !sleep(ctx, askEvery) {
			return
		}
	}
	l.report(&act)
}

// avoid has the I/O of a path that still answers take another one: with the policy numa the kernel
// sends all I/O over the path that it has had for longest, and one that is connected anew is the
// youngest. Nothing else was found to do that from the host before Linux 6.11 (docs/hosts.md).
// Where that cannot be done it is probed alone.
func (l *leaver) avoid(ctx context.Context, c *hostkernel.Controller) {
	act := l.action("avoid")
	switch policy, err := l.a.kernel.IOPolicy(c); {
	case err != nil:
		act.fail(err)
	case !l.policy.Connect:
		act.leave(c, "nothing would connect it again")
	case policy != "numa":
		act.leave(c, "the I/O policy "+policy+" goes on using each path")
	case l.answers(ctx, c) != nil: // to delete it now would hold up its I/O
		act.leave(c, "it gives no answer")
	default:
		if l.anew(c, &act) {
			l.report(&act)
			return
		}
	}
	if ctx.Err() != nil {
		return
	}
	l.report(&act)
	l.probe(ctx, c, false)
}

// anew deletes a controller, if it may be deleted, and has it connected again; it reports whether
// it was deleted.
func (l *leaver) anew(c *hostkernel.Controller, act *Action) bool {
	mine, why := l.reserve(c)
	if !mine {
		act.leave(c, why)
		return false
	}
	defer l.release(c)
	if err := l.a.kernel.Delete(c); err != nil {
		act.fail(err)
		return false
	}
	act.Controllers = []string{c.Name()}
	act.fail(l.a.kernel.Release(c.Instance))
	l.a.put(job{notice: l.job.notice, at: l.job.at, connect: true})
	return true
}

// forget deletes a controller that may be deleted; first its path is left if it does not answer,
// because to delete a live one on a dead path would hold up its I/O.
func (l *leaver) forget(ctx context.Context, c *hostkernel.Controller) {
	act := l.action("forget")
	defer l.report(&act)
	mine, why := l.reserve(c)
	if mine {
		defer l.release(c)
	}
	now, err := l.a.kernel.Controller(c.Instance)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		act.fail(err)
		return
	}
	if now.State == hostkernel.Live {
		if err := l.answers(ctx, &now); ctx.Err() != nil {
			return
		} else if err != nil {
			l.failOver([]hostkernel.Controller{now})
			if mine && !l.down(ctx, &now) {
				act.fail(fmt.Errorf("%s has not given its connection up after %v: it is not deleted", now.Name(), downWithin))
				return
			}
		}
	}
	if !mine {
		act.leave(c, why)
		return
	}
	if err := l.a.kernel.Delete(&now); err != nil {
		act.fail(err)
		return
	}
	act.Controllers = []string{c.Name()}
	act.fail(l.a.kernel.Release(c.Instance))
}

// reserve reports whether a controller may be deleted, and keeps others from taking it for a path
// that stays; or why it may not.
func (l *leaver) reserve(c *hostkernel.Controller) (ok bool, why string) {
	if !l.policy.ours(c) {
		return false, "not ours"
	}
	l.a.guard.Lock()
	defer l.a.guard.Unlock()
	if !l.policy.RemoveLastPath {
		all, err := l.a.kernel.Controllers()
		if err != nil && len(all) == 0 {
			return false, err.Error()
		}
		other := false
		for i := range all {
			o := &all[i]
			other = other || o.Joins(c) && o.Usable() && !l.a.leaving[o.Instance]
		}
		if !other {
			return false, "the last path"
		}
	}
	l.a.leaving[c.Instance] = true
	return true, ""
}

func (l *leaver) release(c *hostkernel.Controller) {
	l.a.guard.Lock()
	defer l.a.guard.Unlock()
	delete(l.a.leaving, c.Instance)
}

// down waits until a controller is not live any more, and reports whether it is not.
func (l *leaver) down(ctx context.Context, c *hostkernel.Controller) bool {
	for end := l.a.now().Add(downWithin); l.a.now().Before(end); {
		now, err := l.a.kernel.Controller(c.Instance)
		if err != nil || now.State != hostkernel.Live && now.State != hostkernel.Resetting {
			return true
		}
		if !sleep(ctx, lookEvery) {
			return false
		}
	}
	return false
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
