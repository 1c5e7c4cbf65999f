package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/truth"
)

const (
	// damagedAtOnce are the frames that are sent every damageEvery until the switch has
	// found them: one that is stopped, restarted or starved finds them late, and a
	// daemon counts from its first reading only.
	damagedAtOnce = 2 * crcErrors
	damageEvery   = 250 * time.Millisecond
	// portPoll is how often the kernel is asked whether a port is shut.
	portPoll = 10 * time.Millisecond
	// openLead is how long before a port may open by itself that is entered: this
	// process may be starved at that very moment.
	openLead = 5 * time.Second
)

// damage has a port's switch find damaged frames. The port must then be shut until it
// is opened by hand, or, when hold is 0, by itself, and what the daemon goes through
// meanwhile must not change that.
func (r *runner) damage(ctx context.Context, l link, hold time.Duration) error {
	began := r.port(l, truth.PortDamaged)
	if found, err := r.send(ctx, l); err != nil || !found {
		return err
	}
	r.port(l, truth.PortShut)
	// The switch cannot have found them before they were sent.
	due := began.Add(crcRecovery)
	until := due.Add(-openLead)
	if hold > 0 {
		until = earlier(until, time.Now().Add(hold))
	}
	if kept, err := r.keepsShut(ctx, l, until); err != nil || !kept {
		return err
	}
	r.port(l, truth.PortOpening)
	r.port(l, truth.PortWell)
	if hold == 0 {
		if kept, err := r.keepsShut(ctx, l, due); err != nil || !kept {
			return err
		}
	}
	return r.open(ctx, l, hold > 0)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// port enters how far a port is with damaged frames. When it is shut its hosts lose
// their carrier, which is a reason to tell them everything again.
func (r *runner) port(l link, is truth.Phase) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := time.Now()
	for _, a := range r.fab.behind(l) {
		r.truth.SetPort(a, is, at)
		if is == truth.PortDamaged {
			r.judge.Grant(a)
		}
	}
	return at
}

// send has a host send damaged frames until the port is shut.
func (r *runner) send(ctx context.Context, l link) (found bool, err error) {
	from := r.fab.across(l)
	var last time.Time
	found, err = r.await(ctx, l, true, func() error {
		if time.Since(last) < damageEvery {
			return nil
		}
		last = time.Now()
		_, err := r.lab.Damage(from.node, from.port, damagedAtOnce)
		return err
	})
	if err == nil && !found && ctx.Err() == nil {
		r.broken("%s:%s was not shut within %s although damaged frames kept arriving", l.node, l.port, r.Settle)
	}
	return found, err
}

// keepsShut watches that a port stays shut until a moment.
func (r *runner) keepsShut(ctx context.Context, l link, until time.Time) (bool, error) {
	for ctx.Err() == nil && time.Now().Before(until) {
		shut, err := r.lab.Shut(l.node, l.port)
		if err != nil {
			return false, err
		}
		if !shut && time.Now().Before(until) { // it was not so late meanwhile
			r.broken("%s:%s was shut because of damaged frames and is open before its recovery", l.node, l.port)
			return false, nil
		}
		r.sleep(ctx, min(portPoll, time.Until(until)))
	}
	return ctx.Err() == nil, nil
}

// open waits until a port is open. By hand that is asked for until it is so: the switch
// may have no daemon, or lose it before it has done it.
func (r *runner) open(ctx context.Context, l link, byHand bool) error {
	c := api.NewClient(r.lab.Socket(l.node))
	defer c.Close()
	var refused error
	opened, err := r.await(ctx, l, false, func() error {
		if byHand {
			one, stop := context.WithTimeout(ctx, zoneTimeout)
			defer stop()
			refused = api.RecoverPort.Do(one, c, api.PortName{Port: l.port})
		}
		return nil
	})
	if err == nil && !opened && ctx.Err() == nil {
		r.broken("%s:%s is still shut %s after it should have been opened: %v", l.node, l.port, r.Settle, refused)
	}
	return err
}

// await does something until a port is shut, or open, or the time to settle is over.
func (r *runner) await(ctx context.Context, l link, shut bool, do func() error) (bool, error) {
	for limit := time.Now().Add(r.Settle); ctx.Err() == nil; r.sleep(ctx, portPoll) {
		is, err := r.lab.Shut(l.node, l.port)
		if err != nil || is == shut {
			return is == shut, err
		}
		if time.Now().After(limit) {
			return false, nil
		}
		if err := do(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// broken notes what is not as it must be.
func (r *runner) broken(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judge.Find(truth.Finding{Kind: truth.Broken, Time: time.Now(), Text: fmt.Sprintf(format, args...)})
}
