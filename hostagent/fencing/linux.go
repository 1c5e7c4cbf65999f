package fencing

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/hostkernel"
)

// Linux is an array with the kernel's own target.
type Linux struct {
	Tree     hostkernel.Tree
	Watch    *hostkernel.TargetWatch
	WatchErr error // why there is none
	Gate     fence.Dataplane
	GateErr  error                     // why there is none
	Cables   func(netip.Addr) []string // by which frames to and from an address of this machine pass
}

var _ Kernel = (*Linux)(nil)

// blindTime is how long after its begin a watch beside a target that served already says nothing: a
// connection that was closed before may have commands in execution, as long as the block layer's
// default time-out.
const blindTime = 30 * time.Second

// Follow has the watch follow the ports that are served now. It is to be called each second: of a
// connection that came and was closed before, the watch knows nothing.
func (l *Linux) Follow(served []hostkernel.Served) error {
	if l.Watch == nil {
		return l.WatchErr
	}
	return l.Watch.Serve(tcpPorts(served))
}

func tcpPorts(served []hostkernel.Served) (ports []uint16) {
	for _, s := range served {
		if s.Transport == "tcp" && !slices.Contains(ports, s.Port) {
			ports = append(ports, s.Port)
		}
	}
	return ports
}

// at returns what is served at an address.
func (l *Linux) at(array netip.Addr) ([]hostkernel.Served, error) {
	served, err := l.Tree.Served()
	served = slices.DeleteFunc(served, func(s hostkernel.Served) bool { return s.Addr != array })
	if len(served) > 0 {
		return served, nil
	}
	return nil, errors.Join(refuse(CodeUnknown, "this machine's kernel serves no subsystem at %v", array), err)
}

// Serves implements Kernel.
func (l *Linux) Serves(array netip.Addr) error {
	served, err := l.at(array)
	if err != nil {
		return err
	}
	if l.Gate == nil {
		return refuse(CodeBlock, "%v", l.GateErr)
	}
	if len(l.Cables(array)) == 0 {
		return refuse(CodeBlock, "no interface of this machine has %v", array)
	}
	if rdma(served) {
		if _, err := l.Tree.TargetControllers(); err != nil {
			return refuse(CodeFailed, "NVMe/RDMA: %v", err)
		}
	}
	ports := tcpPorts(served)
	if len(ports) == 0 {
		return nil
	}
	if l.Watch == nil {
		return refuse(CodeFailed, "%v", l.WatchErr)
	}
	if err := cmp.Or(hostkernel.CanDestroy(), hostkernel.CanWait()); err != nil {
		return refuse(CodeFailed, "%v", err)
	}
	switch ago, blind, err := l.Watch.Blind(); {
	case err != nil:
		return refuse(CodeFailed, "%v", err)
	case blind && ago < blindTime:
		return refuse(CodeFailed, "this agent watches the target's connections for %v only: wait until %v", ago.Round(time.Second), blindTime)
	}
	if err := l.Watch.Serve(ports); err != nil {
		return refuse(CodeFailed, "%v", err)
	}
	return nil
}

func rdma(served []hostkernel.Served) bool {
	return slices.ContainsFunc(served, func(s hostkernel.Served) bool { return s.Transport == "rdma" })
}

// Block implements Kernel: at each cable of the array's address.
func (l *Linux) Block(p Path, until time.Time) error {
	if l.Gate == nil {
		return l.GateErr
	}
	cables := l.Cables(p.Array)
	if len(cables) == 0 {
		return fmt.Errorf("no interface of this machine has %v", p.Array)
	}
	for _, cable := range cables {
		if _, err := l.Gate.Block(fence.Key{Port: cable, Array: p.Array, Host: p.Host}, until); err != nil {
			return err
		}
	}
	return nil
}

// Lift implements Kernel.
func (l *Linux) Lift(p Path) error {
	if l.Gate == nil {
		return l.GateErr
	}
	var errs []error
	for _, cable := range l.Cables(p.Array) {
		errs = append(errs, l.Gate.Lift(fence.Key{Port: cable, Array: p.Array, Host: p.Host}))
	}
	return errors.Join(errs...)
}

// connections lists the open connections of a path.
func (l *Linux) connections(p Path) ([]hostkernel.Connection, error) {
	served, err := l.Tree.Served()
	if err != nil && len(served) == 0 {
		return nil, err
	}
	list, err := hostkernel.Connections(tcpPorts(served))
	return slices.DeleteFunc(list, func(c hostkernel.Connection) bool { return c.Host != p.Host || c.Array != p.Array }), err
}

// controllers lists the RDMA controllers of a path. Those of TCP are known by their connections.
func (l *Linux) controllers(p Path) ([]hostkernel.TargetController, error) {
	if served, err := l.at(p.Array); err != nil || !rdma(served) {
		return nil, err
	}
	list, err := l.Tree.TargetControllers()
	return slices.DeleteFunc(list, func(c hostkernel.TargetController) bool {
		return c.Transport != "rdma" || c.Host != p.Host || c.Array != p.Array
	}), err
}

// End implements Kernel.
func (l *Linux) End(p Path) error {
	open, err := l.connections(p)
	errs := []error{err}
	for i := range open {
		errs = append(errs, open[i].Abort())
	}
	cs, err := l.controllers(p)
	errs = append(errs, err)
	for i := range cs {
		errs = append(errs, cs[i].Fatal())
	}
	return errors.Join(errs...)
}

// Existing implements Kernel.
func (l *Linux) Existing(p Path) (int, error) {
	open, err := l.connections(p)
	if err != nil {
		return 0, err
	}
	cs, err := l.controllers(p)
	if err != nil {
		return 0, err
	}
	n := 0
	if l.Watch != nil {
		if n, err = l.Watch.Existing(p.Host, p.Array); err != nil {
			return 0, err
		}
	}
	return max(len(open), n) + len(cs), nil
}

// Settle implements Kernel.
func (l *Linux) Settle() error { return hostkernel.GracePeriod() }

// Paths implements Kernel.
func (l *Linux) Paths() (list []Path, err error) {
	served, err := l.Tree.Served()
	if err != nil && len(served) == 0 {
		return nil, err
	}
	open, err := hostkernel.Connections(tcpPorts(served))
	for _, c := range open {
		if p := (Path{c.Host, c.Array}); !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list, err
}
