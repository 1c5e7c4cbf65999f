package hostagent

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/openinof/inof/hostkernel"
)

// Times of asking.
const (
	answerWithin = 100 * time.Millisecond // a Keep Alive is answered
	answerLate   = 50 * time.Millisecond  // more, until it counts as unanswered
	askEvery     = 100 * time.Millisecond
	askTimes     = 100
	// patient is how long the kernel waits for an answer where it must not leave the path because
	// there is none: longer than the keep-alive time of "require", which ends the path before.
	patient = 3 * time.Minute
)

// answers reports whether a controller answers now.
func (l *leaver) answers(ctx context.Context, c *hostkernel.Controller) error {
	select {
	case l.a.slots <- struct{}{}:
		defer func() { <-l.a.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() { done <- l.a.kernel.KeepAlive(c, l.within()) }()
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

// within is after which time without an answer the kernel leaves a path by itself: where a fence
// counts that is the agent's to do.
func (l *leaver) within() time.Duration {
	if l.policy.Fence != FenceOff {
		return patient
	}
	return answerWithin
}

// probe asks a controller for a while; the first time it does not answer its path is left, or, as
// the existing agent does, left to the kernel.
func (l *leaver) probe(ctx context.Context, c *hostkernel.Controller, only bool) {
	act := l.action("probe", *c)
	for range askTimes {
		var err error
		if only {
			l.a.slot(ctx, func() { err = l.a.kernel.KeepAlive(c, answerWithin) })
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
				l.leave(ctx, Destroy, []hostkernel.Controller{*c}, unanswered)
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
