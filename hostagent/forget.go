package hostagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/openinof/inof/hostkernel"
)

// Times of deleting.
const (
	downWithin    = time.Minute // from the end of its sockets to `connecting`: the kernel may wait for a keep-alive
	lookEvery     = 20 * time.Millisecond
	quiesceWithin = time.Second // commands in flight may finish
)

// forget deletes a controller that may be deleted, once the commands in flight had time to finish.
// First its path is left if it does not answer, because to delete a live one on a dead path would
// hold up its I/O.
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
		if mine {
			l.quiesce(ctx, &now)
		}
		if err := l.answers(ctx, &now); ctx.Err() != nil {
			return
		} else if err != nil {
			l.leave(ctx, Destroy, []hostkernel.Controller{now}, unanswered)
			if ctx.Err() != nil {
				return
			}
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
	err = ctx.Err()
	l.a.slot(ctx, func() { err = l.a.kernel.Delete(&now) })
	if err != nil {
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

// quiesce waits until no command is in flight, or for so long. What is sent meanwhile, or is slower,
// the kernel waits for when it deletes a controller that answers.
func (l *leaver) quiesce(ctx context.Context, c *hostkernel.Controller) {
	for end := l.a.now().Add(quiesceWithin); l.a.now().Before(end); {
		if n, err := l.a.kernel.InFlight(c); err != nil || n == 0 || !sleep(ctx, lookEvery) {
			return
		}
	}
}

// down waits until a controller is no longer live, and reports whether it is not.
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
