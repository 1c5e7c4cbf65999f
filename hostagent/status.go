package hostagent

import (
	"context"
	"net/netip"
	"slices"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// keptActions is how many of the last actions Status shows.
const keptActions = 200

// Status is what the agent knows and did.
type Status struct {
	Ports   []PortStatus     `json:"ports"`
	Actions []Action         `json:"actions"` // the last ones, oldest first
	Counts  map[string]Count `json:"counts"`  // by kind of action
	Mode    string           `json:"mode"`    // act or observe
	Fence   FenceMode        `json:"fence"`   // the policy
	Fences  []FenceCount     `json:"fences"`  // of paths that were left
	Hooks   HookCounters     `json:"hooks"`
}

// PortStatus is one port.
type PortStatus struct {
	Interface string             `json:"interface"`
	Link      string             `json:"link"` // up or down
	Addresses []netip.Addr       `json:"addresses"`
	Service   snsd.Service       `json:"service"`
	Counters  snsd.AgentCounters `json:"counters"`
	Peers     []snsd.Notice      `json:"peers"`    // the last word about each
	Switches  []fabric.MAC       `json:"switches"` // whose notices count
	Fences    bool               `json:"fences"`   // the switch announced fences
	Refusals  Refusals           `json:"refusals"` // frames that were not read
	Warnings  []string           `json:"warnings,omitempty"`
}

// Count is how often something was done.
type Count struct {
	Done   uint64 `json:"done"`
	Failed uint64 `json:"failed"` // with an error
}

// FenceCount is how often a path was left with that fence.
type FenceCount struct {
	Level snsd.FenceLevel `json:"level"` // none: not fenced
	Way   snsd.FenceWay   `json:"way,omitempty"`
	Count uint64          `json:"count"`
}

type statusLog struct {
	fences  []FenceCount
	actions []Action
	counts  map[string]Count
}

func (s *statusLog) note(act Action) {
	if len(s.actions) >= keptActions {
		s.actions = slices.Delete(s.actions, 0, 1)
	}
	s.actions = append(s.actions, act)
	if s.counts == nil {
		s.counts = make(map[string]Count)
	}
	if act.Fence != nil && (act.Kind == "failover" || act.Kind == "kernel-left") {
		s.fenced(&act.Fence.Fence)
	}
	kind := act.Kind
	if act.Observed {
		kind = "observed-" + kind
	}
	c := s.counts[kind]
	c.Done++
	if act.Error != "" {
		c.Failed++
	}
	s.counts[kind] = c
}

func (s *statusLog) fenced(f *snsd.Fence) {
	i := slices.IndexFunc(s.fences, func(c FenceCount) bool { return c.Level == f.Level && c.Way == f.Way })
	if i < 0 {
		i = len(s.fences) // a way is of a byte, and most are not known
		s.fences = append(s.fences, FenceCount{Level: f.Level, Way: f.Way})
	}
	s.fences[i].Count++
}

// Status asks the loop.
func (a *Agent) Status(ctx context.Context) (Status, error) {
	reply := make(chan Status, 1)
	select {
	case a.asks <- reply:
	case <-ctx.Done():
		return Status{}, ctx.Err()
	}
	select {
	case s := <-reply:
		return s, nil
	case <-ctx.Done():
		return Status{}, ctx.Err()
	}
}

func (a *Agent) snapshot() Status {
	s := Status{Ports: []PortStatus{}, Actions: slices.Clone(a.status.actions), Counts: map[string]Count{}, Hooks: a.hooks.counters()}
	for k, c := range a.status.counts {
		s.Counts[k] = c
	}
	if s.Fences = slices.Clone(a.status.fences); s.Fences == nil {
		s.Fences = []FenceCount{}
	}
	s.Mode = "act"
	if a.actor != nil {
		policy := a.actor.Policy()
		s.Fence = policy.Fence
		if policy.Observe {
			s.Mode = "observe"
		}
	}
	if s.Actions == nil {
		s.Actions = []Action{}
	}
	for _, name := range a.names() {
		p := a.ports[name]
		ps := PortStatus{Interface: name, Link: map[bool]string{true: "up", false: "down"}[p.up], Addresses: slices.Clone(p.Addrs), Service: p.Service, Peers: []snsd.Notice{}}
		if ps.Switches = p.trust.switches(); ps.Switches == nil {
			ps.Switches = []fabric.MAC{}
		}
		ps.Refusals = p.trust.count
		if len(ps.Switches) == 0 && p.up && !p.Like {
			ps.Warnings = append(ps.Warnings, noSwitch)
		}
		if p.machine != nil {
			ps.Counters = p.machine.Counters()
			if own, ok := p.machine.(*snsd.Agent); ok {
				ps.Peers, ps.Fences = own.Peers(), own.Agreed()&snsd.ExtFence != 0
			}
		}
		s.Ports = append(s.Ports, ps)
	}
	return s
}
