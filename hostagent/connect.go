package hostagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/nvmetcp"
	"github.com/openinof/inof/snsd"
)

// Finder finds out which subsystems a target serves at one of its addresses.
type Finder func(ctx context.Context, source, target netip.Addr, h hostkernel.Connect) ([]Found, error)

// Found is one subsystem.
type Found struct {
	NQN  string
	Port uint16
}

// Times of connecting.
const (
	findWithin   = 5 * time.Second
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
		all = a.connectOne(ctx, n, c, act) && all
	}
	return all
}

// subsystems tells what is to be connected: the notice names it, or the target is asked.
func (a *Actor) subsystems(ctx context.Context, n *snsd.Notice, base *hostkernel.Connect) ([]Found, error) {
	port := n.Service.Port
	if n.Service.NQN != "" {
		if port == 0 {
			port = cmp.Or(a.Policy().Port, portNVMe)
		}
		return []Found{{n.Service.NQN, port}}, nil
	}
	if base.Transport != "tcp" {
		return nil, fmt.Errorf("%v registers no subsystem name, and only targets over TCP are asked for it", n.Subject)
	}
	if a.find == nil {
		return nil, errors.New("no discovery")
	}
	ctx, cancel := context.WithTimeout(ctx, findWithin)
	defer cancel()
	found, err := a.find(ctx, n.Host, n.Subject, *base)
	if err != nil {
		return nil, fmt.Errorf("discovery at %v: %w", n.Subject, err)
	}
	if port != 0 {
		found = slices.DeleteFunc(found, func(f Found) bool { return f.Port != port })
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the discovery log of %v names no subsystem at that address", n.Subject)
	}
	return found, nil
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

// Discover asks a target over NVMe/TCP.
func Discover(ctx context.Context, source, target netip.Addr, h hostkernel.Connect) ([]Found, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0))}
	conn, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(target, nvmetcp.DiscoveryPort).String())
	if err != nil {
		return nil, err
	}
	host := nvmetcp.Host{NQN: h.HostNQN}
	if host.ID, err = hostkernel.ParseID(h.HostID); err != nil {
		conn.Close()
		return nil, err
	}
	c, err := nvmetcp.Open(ctx, conn, host, nvmetcp.Options{})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	log, err := c.Log(ctx)
	if err != nil {
		return nil, err
	}
	var list []Found
	for _, e := range log.Entries {
		f := Found{e.NQN, e.Port}
		if e.Kind == nvmetcp.Subsystem && e.Transport == nvmetcp.TCP && e.Addr == target && e.Port != 0 && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list, nil
}
