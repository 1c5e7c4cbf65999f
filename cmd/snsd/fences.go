package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux/portguard"
	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostagent/fencing"
	"github.com/openinof/inof/hostkernel"
)

// guardPins is where an array's blocks outlive its agent.
const guardPins = "/sys/fs/bpf/snsd"

// fences is what the agent of an array needs to fence paths of hosts.
type fences struct {
	target  *fencing.Target // nil: this agent fences none
	service *fencing.Service
	array   *fencing.Linux
	guard   *portguard.Guard

	mu     sync.Mutex
	cables map[netip.Addr][]string
	err    error // why nothing can be fenced now
}

// arrayStatus is what `snsd status` shows of it.
type arrayStatus struct {
	Fences  fencing.Counters        `json:"fences"`
	Callers fencing.ServiceCounters `json:"callers"`
	Error   string                  `json:"error,omitempty"`
}

// startFences has the agent of a host ask for fences, and that of an array fence.
func (s *service) startFences(ctx context.Context) (end func(), err error) {
	cfg := s.cfg.FenceService
	creds, err := fencing.NewCredentials(cfg)
	if err != nil {
		return nil, err
	}
	ways, reset := fencers(s.kernel.Tree, cfg, creds)
	go reset.Run(ctx)
	s.actor.FenceBy(ways)
	switch {
	case !cfg.Serves():
		return func() {}, nil
	case s.cfg.Mode == hostagent.ModeObserve:
		s.log.Warn("this agent observes: hosts that ask it for a fence get none")
		return func() {}, nil
	}
	return s.startArray(ctx, creds)
}

func (s *service) startArray(ctx context.Context, creds fencing.Credentials) (end func(), err error) {
	f := &s.fences
	served, err := s.kernel.Served()
	if err != nil {
		s.log.Warn("target", "error", err) // what was read counts
	}
	defer lockPins()()
	f.array = &fencing.Linux{Tree: s.kernel.Tree, Cables: f.cablesOf}
	if f.array.Watch, f.array.WatchErr = hostkernel.OpenTargetWatch(len(served) > 0); f.array.WatchErr != nil {
		s.log.Error("commands in execution cannot be watched: no host gets a fence", "error", f.array.WatchErr)
	} else if err := f.array.Watch.Pinned(); err != nil {
		s.log.Warn("after a restart of this agent hosts get no fence for a while", "error", err)
	}
	guard, err := portguard.Open(portguard.Config{Pins: guardPins, AtArray: true})
	switch {
	case guard == nil:
		f.array.GateErr = err
		s.log.Error("frames cannot be blocked: no host gets a fence", "error", err)
	case err != nil:
		s.log.Warn("blocks end with this agent", "error", err)
		fallthrough
	default:
		f.guard, f.array.Gate = guard, guard
	}
	work, cancel := context.WithCancel(ctx)
	f.target = fencing.NewTarget(work, f.array, s.cfg.FenceService.Hold, s.fenced)
	f.service = fencing.NewService(f.target, creds, s.fenced)
	s.agent.Serve(f.target)
	var doors sync.WaitGroup
	end = func() {
		cancel()
		doors.Wait()
		f.target.Wait()
		if f.guard != nil {
			_ = f.guard.Close() // blocks stay until their time
		}
		if f.array.Watch != nil {
			f.array.Watch.Close()
		}
	}
	for _, at := range s.cfg.FenceService.Listen {
		ln, err := net.Listen("tcp", at.String())
		if err != nil {
			end()
			return nil, fmt.Errorf("fence-service.listen: %w", err)
		}
		doors.Go(func() {
			if err := f.service.Run(work, ln); err != nil {
				s.log.Error("hosts cannot ask for fences", "listen", at, "error", err)
			}
		})
	}
	return end, s.look()
}

// lockPins keeps other agents of this machine from opening what all of them pin, until unlock is called: an
// array may have an agent for each controller, which start together.
func lockPins() (unlock func()) {
	dir, err := os.Open(filepath.Dir(guardPins))
	if err != nil {
		return func() {} // nothing can be pinned, which Open says
	}
	_ = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
	return func() { _ = dir.Close() }
}

// follow takes what is served now, and the interfaces.
func (f *fences) follow(served []hostkernel.Served, have []hostkernel.Interface, log *slog.Logger) {
	if f.target == nil {
		return
	}
	f.mu.Lock()
	before := f.cables
	f.mu.Unlock()
	cables, names := servedCables(served, have, before)
	errs := []error{f.array.Follow(served), f.array.GateErr}
	if f.guard != nil {
		errs = append(errs, guardAll(f.guard, names))
	}
	err := errors.Join(errs...)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && (f.err == nil || f.err.Error() != err.Error()) {
		log.Warn("hosts may get no fence", "error", err)
	}
	f.cables, f.err = cables, err
}

// servedCables returns by which cables frames to and from each served address pass, and all of them,
// sorted. An address that has gone from its interface has left connections there: it is fenced where it was.
func servedCables(served []hostkernel.Served, have []hostkernel.Interface, before map[netip.Addr][]string) (cables map[netip.Addr][]string, names []string) {
	cables = map[netip.Addr][]string{}
	var there []string
	for _, i := range have {
		there = append(there, i.Ports...)
		for _, a := range i.Addrs {
			cables[a] = i.Ports
		}
	}
	for a := range cables {
		if !slices.ContainsFunc(served, func(s hostkernel.Served) bool { return s.Addr == a }) {
			delete(cables, a)
		}
	}
	for _, s := range served {
		if _, here := cables[s.Addr]; !here && len(before[s.Addr]) > 0 {
			cables[s.Addr] = slices.DeleteFunc(slices.Clone(before[s.Addr]), func(name string) bool { return !slices.Contains(there, name) })
		}
	}
	for _, ports := range cables {
		names = append(names, ports...)
	}
	slices.Sort(names)
	return cables, slices.Compact(names)
}

func guardAll(g *portguard.Guard, names []string) error {
	var ports []fabric.GuardedPort
	var errs []error
	for _, name := range names {
		i, err := net.InterfaceByName(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		ports = append(ports, fabric.GuardedPort{Name: name, Index: i.Index})
	}
	for _, st := range g.SetPorts(ports) {
		errs = append(errs, st.Err)
	}
	return errors.Join(errs...)
}

func (f *fences) cablesOf(a netip.Addr) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cables[a]
}

func (f *fences) status() *arrayStatus {
	if f.target == nil {
		return nil
	}
	st := &arrayStatus{Fences: f.target.Counters(), Callers: f.service.Counters()}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		st.Error = f.err.Error()
	}
	return st
}

// fenced logs what an array did for a host.
func (s *service) fenced(e fencing.Event) {
	log := s.log.With("host", e.Host, "array", e.Array)
	if e.Error != "" {
		log.Warn(e.Text, "error", e.Error)
		return
	}
	log.Info(e.Text)
}

// fencers are the ways of a host to have its paths fenced at the array. The Reset must be run.
func fencers(t hostkernel.Tree, cfg hostagent.FenceServiceConfig, creds fencing.Credentials) (fencing.Fencers, *fencing.Reset) {
	reset := fencing.NewReset(t)
	if !cfg.Asks() {
		return fencing.Fencers{reset, fencing.NotAsked{}}, reset
	}
	return fencing.Fencers{reset, &fencing.Asker{Credentials: creds, Port: cfg.Port, KeepAlive: func(c *hostkernel.Controller) time.Duration {
		kato, _ := t.KeepAliveTimeout(c) // not known: the kernel's default counts
		return kato
	}}}, reset
}
