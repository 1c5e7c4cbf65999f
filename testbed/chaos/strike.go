package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// away is a time in which something on the way of a notice was not as usual.
type away struct {
	from, to time.Time // to is zero while it lasts
	node     string    // switch or reflector
	daemon   bool      // its daemon did not run at all
}

// strike does a fault and heals it. Errors are of the lab, not of the fabric.
func (r *runner) strike(ctx context.Context, f Fault) error {
	switch f.Kind {
	case Carrier:
		return r.pull(ctx, link{f.Node, f.Port}, 1, f.For)
	case Flap:
		return r.pull(ctx, link{f.Node, f.Port}, f.Times, f.For)
	case Kill, Term:
		return r.restart(ctx, process{f.Node, f.Proc}, f.Kind, f.For)
	case Stop:
		return r.pause(ctx, process{f.Node, f.Proc}, f.For)
	case Drop, Cut:
		if f.Kind == Drop {
			at := r.fab.across(link{f.Node, f.Port}).node
			for _, p := range r.fab.paths() { // there is more than one way, and nobody knows which one packets take
				if p[0] == at || p[1] == at {
					defer r.doubt(p)()
				}
			}
		}
		return r.lose(ctx, f, f.Node)
	case Hole:
		return r.lose(ctx, f, f.Node)
	case Files:
		return r.starve(ctx, process{f.Node, f.Proc}, f.For)
	case Clock:
		return r.setClock(ctx, f)
	case Disk:
		return r.fill(ctx, f)
	case Path:
		defer r.doubt([2]string{f.Node, f.Peer})() // BFD may find it, and late
		return r.lose(ctx, f, r.fab.reflectors...)
	case CRC:
		return r.damage(ctx, link{f.Node, f.Port}, f.For)
	case Zone:
		return r.changeZone(ctx, f)
	}
	return fmt.Errorf("no such fault: %s", f.Kind)
}

// lose has the packets lost at some nodes.
func (r *runner) lose(ctx context.Context, f Fault, nodes ...string) error {
	var errs []error
	for _, n := range nodes {
		defer r.disturb(n, false)()
		errs = append(errs, r.filter.add(ctx, n, f))
	}
	r.sleep(ctx, f.For)
	for _, n := range nodes {
		errs = append(errs, r.filter.remove(context.WithoutCancel(ctx), n, f))
	}
	return errors.Join(errs...)
}

// doubt enters that a path may be bad; the function it returns, that it is good.
func (r *runner) doubt(p [2]string) func() {
	set := func(on bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.truth.DoubtPath(r.fab.device(p[0]), r.fab.device(p[1]), on, time.Now())
	}
	set(true)
	return func() { set(false) }
}

// sleep waits; a run that ends heals at once.
func (r *runner) sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// disturb notes that something begins; the function it returns, that it is over.
func (r *runner) disturb(node string, daemon bool) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &away{from: time.Now(), node: node, daemon: daemon}
	r.aways = append(r.aways, a)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		a.to = time.Now()
	}
}

// pull pulls and plugs a cable.
func (r *runner) pull(ctx context.Context, l link, times int, d time.Duration) error {
	for range times {
		if err := r.cable(l, false); err != nil {
			return err
		}
		r.sleep(ctx, d)
		if err := r.cable(l, true); err != nil {
			return err
		}
		if times > 1 {
			r.sleep(ctx, d)
		}
	}
	return nil
}

func (r *runner) cable(l link, up bool) error {
	r.mu.Lock()
	at := time.Now()
	for _, a := range r.fab.behind(l) {
		r.truth.SetLink(a, up, at)
		if !up {
			r.judge.Grant(a)
		}
	}
	r.mu.Unlock()
	_, err := r.lab.Fault(l.node, l.port, up)
	return err
}

// restart ends a process and starts it again.
func (r *runner) restart(ctx context.Context, p process, how Kind, d time.Duration) error {
	defer r.disturb(p.node, p.name == "inofd")()
	var err error
	if how == Kill {
		_, err = r.lab.Kill(p.node, p.name)
	} else {
		r.registered(p, false)
		err = r.lab.Stop(p.node, p.name, stopGrace)
	}
	if err != nil {
		return err
	}
	r.sleep(ctx, d)
	r.registered(p, true)
	// Not ctx: what is begun is healed.
	return r.lab.Start(context.WithoutCancel(ctx), p.node, p.name)
}

// stopGrace is how long a daemon may take to end by itself on a busy machine; one
// that is killed instead would not have said goodbye.
const stopGrace = 20 * time.Second

// registered enters that a host agent registers, or withdraws. One like the existing agent
// never withdraws.
func (r *runner) registered(p process, here bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := time.Now()
	for _, a := range r.fab.owns(p.String()) {
		if place, _ := r.truth.Place(a); !place.Like {
			r.truth.SetAgent(a, here, at)
		}
	}
}

// pause stops a process as a debugger or a lack of CPU time would.
func (r *runner) pause(ctx context.Context, p process, d time.Duration) error {
	defer r.disturb(p.node, false)()
	if _, err := r.lab.Signal(p.node, p.name, unix.SIGSTOP); err != nil {
		return err
	}
	r.sleep(ctx, d)
	_, err := r.lab.Signal(p.node, p.name, unix.SIGCONT)
	return err
}

// starve lets a process open no more files for a while. One that has ended meanwhile was
// given its own limit when it was started again.
func (r *runner) starve(ctx context.Context, p process, d time.Duration) error {
	defer r.disturb(p.node, false)()
	now, err := r.lab.Process(p.node, p.name)
	if err != nil {
		return err
	}
	var was unix.Rlimit
	if err := unix.Prlimit(now.PID, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		return fmt.Errorf("%s: limit of files: %w", p, err)
	}
	// What it has open stays; the lowest free number is not below this.
	none := unix.Rlimit{Cur: 3, Max: was.Max}
	if err := unix.Prlimit(now.PID, unix.RLIMIT_NOFILE, &none, nil); err != nil {
		return fmt.Errorf("%s: limit of files: %w", p, err)
	}
	r.sleep(ctx, d)
	if err := unix.Prlimit(now.PID, unix.RLIMIT_NOFILE, &was, nil); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("%s: limit of files: %w", p, err)
	}
	return nil
}

// changeZone changes one zone at both reflectors. Changes follow each other, so that
// their order is certain.
func (r *runner) changeZone(ctx context.Context, f Fault) error {
	r.zoneTurn.Lock()
	defer r.zoneTurn.Unlock()
	members := r.members(f.Zone)
	addr := r.fab.places[max(f.Member, 0)].Addr
	switch i := slices.Index(members, addr); {
	case f.Member < 0:
		members = nil
	case i < 0:
		members = append(members, addr)
	default:
		members = slices.Delete(members, i, i+1)
	}
	r.mu.Lock()
	r.truth.SetZone(f.Zone, members, time.Now())
	r.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	if f.Member < 0 {
		if err := r.dropZone(ctx, f.Zone); err != nil {
			return err
		}
	}
	return r.setZone(ctx, f.Zone, members)
}
