package hostagent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// Foresight is what is known beforehand of the fence of a path, and what that means when the path
// is to be left.
type Foresight struct {
	Controller string          `json:"controller"`
	NQN        string          `json:"nqn"`
	Source     netip.Addr      `json:"source"`
	Target     netip.Addr      `json:"target"`
	Level      snsd.FenceLevel `json:"level"`         // the best that can be had
	Way        snsd.FenceWay   `json:"way,omitempty"` // of it
	Lacks      []string        `json:"lacks"`         // why not more, or not faster
	Stall      string          `json:"stall"`         // how long I/O in flight waits
	Data       string          `json:"data"`          // what can become of acknowledged writes
}

// foreseeable is what Foresight depends on.
type foreseeable struct {
	mode     FenceMode
	observe  bool
	wait     time.Duration
	settle   *time.Duration
	kato     time.Duration
	announce bool  // the switch announced fences at the port of the source
	array    error // nil: the Fencer could fence
}

// defaultHold is fence.hold of a switch that says nothing else; it is known of a fence only.
const defaultHold = 20 * time.Second

var errNoFencer = errors.New("no fence-service is configured: the array's agent is not asked")

// judge fills in what the facts mean.
func (f *Foresight) judge(x foreseeable) {
	need := holdNeeded(x.kato)
	network := x.announce && x.kato > 0 && need <= defaultHold
	switch {
	case !x.announce:
		f.Lacks = append(f.Lacks, "the switch did not announce fences")
	case x.kato == 0:
		f.Lacks = append(f.Lacks, "the controller has no keep-alive: no block of a switch outlasts its connection")
	case !network:
		f.Lacks = append(f.Lacks, fmt.Sprintf("keep-alive-tmo %v: a switch must hold its block for %v, fence.hold is %v by default", x.kato, need, defaultHold))
	}
	if x.array != nil {
		f.Lacks = append(f.Lacks, x.array.Error())
	}
	switch {
	case x.array == nil:
		f.Level, f.Way = snsd.FenceArray, snsd.FenceByTarget
	case network && x.settle != nil:
		f.Level, f.Way = snsd.FenceArray, snsd.FenceBySettle
	case network:
		f.Level, f.Way = snsd.FenceNetwork, snsd.FenceBySwitch
	}
	if f.Level < snsd.FenceArray && x.settle == nil {
		f.Lacks = append(f.Lacks, "arrays[].settle is not set")
	}
	const (
		safe    = "no late copy of a write can overwrite a newer one"
		kernel  = "until the kernel leaves by itself (its keep-alive, or io_timeout)"
		corrupt = "a copy of a write that is still under way can overwrite a newer one that was acknowledged"
	)
	settled := f.Way == snsd.FenceBySettle
	switch {
	case x.observe:
		f.Stall, f.Data = kernel, corrupt
	case x.mode == FenceOff:
		f.Stall, f.Data = "some 50 ms", corrupt
	case f.Level == snsd.FenceArray && settled && (x.mode == FenceRequire || *x.settle <= networkRest):
		f.Stall, f.Data = fmt.Sprintf("some 50 ms and the settle, %v", *x.settle), safe+", if the array keeps to its settle"
	case f.Level == snsd.FenceArray && !settled:
		f.Stall, f.Data = "some 50 ms, and as long as the array executes what it has", safe
	case x.mode == FenceRequire:
		f.Stall, f.Data = kernel, corrupt+" once the kernel left"
	case f.Level != snsd.FenceNone:
		f.Stall, f.Data = fmt.Sprintf("some %v", networkRest), fmt.Sprintf("a write that had reached the array, and is executed more than %v later, can overwrite a newer one", networkRest)
	default:
		patience := answerWithin + answerLate
		if x.announce {
			patience += x.wait
		}
		f.Stall, f.Data = fmt.Sprintf("some %v, if the path gives no answer; until the kernel leaves if it does", patience), corrupt
	}
}

// Foresee says of each controller that is connected what its fence can be. Blocks for as long as
// the Fencer takes to be asked, or until ctx ends.
func (a *Actor) Foresee(ctx context.Context, ports []PortStatus) ([]Foresight, error) {
	all, err := a.kernel.Controllers()
	policy := a.Policy()
	list := []Foresight{}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range all {
		c := &all[i]
		if c.Discovery {
			continue
		}
		wg.Go(func() {
			f := Foresight{Controller: c.Name(), NQN: c.NQN, Source: c.Source, Target: c.Target.Addr(), Lacks: []string{}}
			x := foreseeable{mode: policy.Fence, observe: policy.Observe, wait: policy.FenceWait, array: a.couldFence(ctx, c, all)}
			if settle, known := policy.settle(c); known {
				x.settle = &settle
			}
			x.kato, _ = a.kernel.KeepAliveTimeout(c) // unknown: none
			x.announce = slices.ContainsFunc(ports, func(p PortStatus) bool { return p.Fences && slices.Contains(p.Addresses, c.Source) })
			f.judge(x)
			mu.Lock()
			defer mu.Unlock()
			list = append(list, f)
		})
	}
	wg.Wait()
	slices.SortFunc(list, func(x, y Foresight) int {
		return slices.IndexFunc(all, func(c hostkernel.Controller) bool { return c.Name() == x.Controller }) -
			slices.IndexFunc(all, func(c hostkernel.Controller) bool { return c.Name() == y.Controller })
	})
	return list, err
}

// couldFence returns nil if the Fencer could fence the path of a controller.
func (a *Actor) couldFence(ctx context.Context, c *hostkernel.Controller, all []hostkernel.Controller) error {
	if a.fencer == nil {
		return errNoFencer
	}
	living := slices.DeleteFunc(slices.Clone(all), func(o hostkernel.Controller) bool {
		return !o.Joins(c) || !o.Usable() || o.On(c.Source, c.Target.Addr())
	})
	if len(living) == 0 {
		return errNoLiving
	}
	check, ok := a.fencer.(FenceChecker)
	if !ok {
		return nil
	}
	return check.Check(ctx, FencePair{Host: c.Source, Array: c.Target.Addr(), NQN: c.NQN, Controllers: []hostkernel.Controller{*c}, Living: living})
}
