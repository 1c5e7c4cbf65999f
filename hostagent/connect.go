package hostagent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// Times of connecting.
const (
	firstRetry   = time.Second
	longestRetry = time.Minute
	portNVMe     = 4420
)

// connect begins to connect a target after a time, and goes on until it is done or the target
// is not active any more.
func (a *Actor) connect(ctx context.Context, p path, st *pathState, after time.Duration) {
	ctx, st.cancel = context.WithCancel(ctx)
	st.wanted, st.working = true, true
	n := st.last
	if policy := a.Policy(); policy.Observe {
		if !st.observed {
			st.observed = true
			a.report(Action{Kind: "connect", Subject: p.subject, Host: p.host, Seq: n.Seq, Received: a.now(), Begun: a.now(), Done: a.now(), Observed: true})
		}
		return
	}
	st.observed = false
	go func() {
		if after > 0 && !sleep(ctx, after) {
			return
		}
		for wait := firstRetry; ; wait = min(2*wait, longestRetry) {
			if a.connectAll(ctx, &n) || !sleep(ctx, wait) {
				break
			}
		}
		if ctx.Err() == nil {
			a.idle(p)
		}
	}()
}

// idle says that nobody connects a path any more.
func (a *Actor) idle(p path) {
	a.mu.Lock()
	a.finished = append(a.finished, p)
	a.mu.Unlock()
	a.poke()
}

// connectAll makes one try at each subsystem, and reports whether nothing is left to be tried.
func (a *Actor) connectAll(ctx context.Context, n *snsd.Notice) bool {
	policy := a.Policy()
	base, own := policy.Of[n.Host]
	if !own {
		base = policy.Options
	}
	base.Source = n.Host
	switch n.Service.Protocol {
	case snsd.ProtocolTCP:
		base.Transport = "tcp"
	case snsd.ProtocolRoCE:
		base.Transport, base.Iface = "rdma", ""
	default:
		return true // hooks see to it
	}
	act := Action{Kind: "connect", Subject: n.Subject, Host: n.Host, Seq: n.Seq, Received: a.now(), Begun: a.now()}
	found, err := a.subsystems(ctx, n, &base)
	if err != nil {
		if ctx.Err() == nil {
			act.fail(err)
			act.Done = a.now()
			a.report(act)
		}
		return false
	}
	all := true
	for _, f := range found {
		c := base
		c.NQN, c.Target = f.NQN, netip.AddrPortFrom(n.Subject, f.Port)
		if policy.Fence == FenceRequire {
			policy.patient(&c)
		}
		all = a.connectOne(ctx, n, c, act) && all
	}
	return all
}

// connectOne makes a controller unless there is one, and reports whether there is one now or must
// not be.
func (a *Actor) connectOne(ctx context.Context, n *snsd.Notice, c hostkernel.Connect, act Action) bool {
	have, err := a.kernel.Controllers()
	if slices.ContainsFunc(have, func(o hostkernel.Controller) bool {
		return o.NQN == c.NQN && o.Target == c.Target && o.On(c.Source, c.Target.Addr())
	}) {
		return true
	}
	if err != nil && len(have) == 0 {
		act.fail(err)
	}
	excluded, xerr := a.kernel.Exclusions()
	act.fail(xerr)
	if excluded.Match(&c) {
		act.Left = append(act.Left, c.NQN+": excluded")
		act.Done = a.now()
		a.report(act)
		return true
	}
	select {
	case a.connects <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if known, err := a.kernel.Options(); err == nil {
		for _, key := range c.Only(known) {
			act.Left = append(act.Left, key+": this kernel does not know it")
		}
	}
	type result struct {
		instance int
		err      error
	}
	done := make(chan result, 1)
	owner := a.Policy().Owner
	go func() {
		defer func() { <-a.connects }()
		instance, err := a.kernel.Connect(&c)
		if err == nil {
			err = a.kernel.Claim(instance, owner)
		}
		done <- result{instance, err}
		if err == nil && ctx.Err() != nil { // it is not wanted any more: what was said of it meanwhile holds for it
			a.reconsider(path{n.Host, n.Subject})
		}
	}()
	select {
	case <-ctx.Done():
		return false
	case r := <-done:
		if errors.Is(r.err, hostkernel.ErrConnected) {
			return true
		}
		if r.err == nil {
			act.Controllers = []string{fmt.Sprintf("nvme%d", r.instance)}
		}
		act.fail(r.err)
		act.Done = a.now()
		a.report(act)
		return r.err == nil
	}
}
