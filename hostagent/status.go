package hostagent

import (
	"context"
	"net/netip"
	"slices"

	"github.com/openinof/inof/snsd"
)

// keptActions is how many of the last actions Status shows.
const keptActions = 200

// Status is what the agent knows and did.
type Status struct {
	Ports   []PortStatus     `json:"ports"`
	Actions []Action         `json:"actions"` // the last ones, oldest first
	Counts  map[string]Count `json:"counts"`  // by kind of action
	Hooks   HookCounters     `json:"hooks"`
}

// PortStatus is one port.
type PortStatus struct {
	Interface string             `json:"interface"`
	Link      string             `json:"link"` // up or down
	Addresses []netip.Addr       `json:"addresses"`
	Service   snsd.Service       `json:"service"`
	Counters  snsd.AgentCounters `json:"counters"`
	Peers     []snsd.Notice      `json:"peers"` // the last word about each
}

// Count is how often something was done.
type Count struct {
	Done   uint64 `json:"done"`
	Failed uint64 `json:"failed"` // with an error
}

type statusLog struct {
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
	c := s.counts[act.Kind]
	c.Done++
	if act.Error != "" {
		c.Failed++
	}
	s.counts[act.Kind] = c
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
	if s.Actions == nil {
		s.Actions = []Action{}
	}
	for _, name := range a.names() {
		p := a.ports[name]
		ps := PortStatus{Interface: name, Link: map[bool]string{true: "up", false: "down"}[p.up], Addresses: slices.Clone(p.Addrs), Service: p.Service, Peers: []snsd.Notice{}}
		if p.machine != nil {
			ps.Counters = p.machine.Counters()
			if own, ok := p.machine.(*snsd.Agent); ok {
				ps.Peers = own.Peers()
			}
		}
		s.Ports = append(s.Ports, ps)
	}
	return s
}
