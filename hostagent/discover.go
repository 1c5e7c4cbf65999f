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

// Finder finds out over TCP which subsystems a target serves at one of its addresses.
type Finder func(ctx context.Context, source, target netip.Addr, h hostkernel.Connect) ([]Found, error)

// Found is one subsystem.
type Found struct {
	NQN  string
	Port uint16
}

// findWithin bounds one try over TCP; the kernel bounds its own.
const findWithin = 5 * time.Second

// subsystems tells what is to be connected: the notice names it, or the target is asked.
func (a *Actor) subsystems(ctx context.Context, n *snsd.Notice, base *hostkernel.Connect) ([]Found, error) {
	port := n.Service.Port
	if n.Service.NQN != "" {
		return []Found{{n.Service.NQN, cmp.Or(port, a.Policy().Port, portNVMe)}}, nil
	}
	var found []Found
	err := errors.New("no discovery")
	switch {
	case base.Transport == "rdma":
		found, err = a.askKernel(ctx, n, *base)
	case a.find != nil:
		ctx, cancel := context.WithTimeout(ctx, findWithin)
		found, err = a.find(ctx, n.Host, n.Subject, *base)
		cancel()
	}
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
	return at(log, nvmetcp.TCP, target), nil
}

// at lists the subsystems that a log names at an address. An entry with the unspecified address is of
// a controller that listens on all of its own: it means the one that was asked.
func at(log *nvmetcp.Log, over nvmetcp.Transport, target netip.Addr) (list []Found) {
	for _, e := range log.Entries {
		f := Found{e.NQN, e.Port}
		here := e.Addr.Unmap().IsUnspecified() || e.Addr.Unmap() == target.Unmap()
		if e.Kind == nvmetcp.Subsystem && e.Transport == over && here && e.Port != 0 && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// askKernel has the kernel connect a discovery controller over RDMA, which no program can do by
// itself, reads its log, and deletes it. It is one of the connects that may be under way at once,
// and goes on to its end where ctx ends before.
func (a *Actor) askKernel(ctx context.Context, n *snsd.Notice, base hostkernel.Connect) ([]Found, error) {
	select {
	case a.connects <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type result struct {
		log *nvmetcp.Log
		err error
	}
	done := make(chan result, 1)
	owner := a.Policy().Owner
	go func() {
		defer func() { <-a.connects }()
		log, err := readLog(a.kernel, owner, &hostkernel.Connect{Transport: base.Transport, NQN: nvmetcp.DiscoveryNQN, Source: n.Host,
			Target:  netip.AddrPortFrom(n.Subject, cmp.Or(n.Service.Port, a.Policy().Port, portNVMe)),
			HostNQN: base.HostNQN, HostID: base.HostID})
		done <- result{log, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, r.err
		}
		return at(r.log, nvmetcp.RDMA, n.Subject), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readLog connects a discovery controller for as long as its log is read.
func readLog(k hostkernel.Kernel, owner string, c *hostkernel.Connect) (*nvmetcp.Log, error) {
	instance, err := k.Connect(c)
	if err != nil {
		return nil, err
	}
	d := hostkernel.Controller{Instance: instance}
	_ = k.Claim(instance, owner) // so that dropDiscovery finds it
	log, err := k.DiscoveryLog(&d)
	return log, errors.Join(err, k.Delete(&d), k.Release(instance))
}

// dropDiscovery deletes the discovery controllers that an earlier process of this agent left when
// it ended while it asked.
func (a *Actor) dropDiscovery() {
	owner := a.Policy().Owner
	for _, c := range a.known {
		if c.Discovery && c.Owner == owner {
			go func() { _ = errors.Join(a.kernel.Delete(&c), a.kernel.Release(c.Instance)) }()
		}
	}
}
