package model

import "fmt"

// hookFlow is deadlock prevention by an uplink group: traffic that enters and leaves
// a switch through ports of the group goes up again after it came down; it is moved
// to another class, so that pauses of the first class cannot form a cycle.
type hookFlow struct {
	passive
	member []bool // by switch port
	rules  []HookRule
	old    bool             // what must wait is paused in the class it came in
	from   [NumQueues]uint8 // by class after a rule: the classes before, a mask
	hits   uint64
}

// HookRule moves frames of one DSCP to another.
type HookRule struct {
	From, To uint8 // DSCP 0..63
}

// Arrive moves frames that go up again.
func (h *hookFlow) Arrive(sw Switch, f Frame, in, out PortID) int {
	base, p := sw.Port(0), f.packet()
	if !h.member[in-base] || !h.member[out-base] || p.kind() != kindData {
		return PassOn
	}
	for i := range h.rules {
		if p.tos>>2 == h.rules[i].From {
			p.tos = h.rules[i].To<<2 | p.tos&ecnMask
			h.hits++
			return int(sw.s.switches[sw.i].dscp[p.tos>>2])
		}
	}
	return PassOn
}

// pausedFor gives the classes in which the peer of port in must be told of a change in
// class q of the ingress.
func (s *Sim) pausedFor(in int32, pt *port, q int32) uint8 {
	if pt.sw >= 0 {
		if h := s.switches[pt.sw].hook; h != nil && h.old && h.from[q] != 0 && h.member[in-s.switches[pt.sw].portBase] {
			return h.from[q]
		}
	}
	return 1 << q
}

// mustWait reports whether the peer of port in must not send in class q.
func (s *Sim) mustWait(in int32, pt *port, q int32) bool {
	if s.ingress[in*NumQueues+q].xoff && s.pausedFor(in, pt, q)>>q&1 != 0 {
		return true
	}
	if pt.sw < 0 {
		return false
	}
	h := s.switches[pt.sw].hook
	if h == nil || !h.old {
		return false
	}
	for to := range int32(NumQueues) {
		if h.from[to]>>q&1 != 0 && s.ingress[in*NumQueues+to].xoff && h.member[in-s.switches[pt.sw].portBase] {
			return true
		}
	}
	return false
}

// SetUplinkGroup makes the ports of a switch that lead to other switches its uplink
// group, with at most two rules of distinct DSCPs.
//
// When what was moved fills its share of the buffer, the switch pauses the class it was moved
// to. The guides differ here: their older edition pauses the class in which the traffic
// comes. By the newer one, the default, frames of the old class keep coming and may be lost;
// by the older one (oldPriority) nothing is lost, but the old class waits again, and with it
// the cycle that the group is to break.
func (s *Sim) SetUplinkGroup(n NodeID, rules []HookRule, oldPriority bool) error {
	nd := &s.nodes[n]
	if nd.sw < 0 {
		return fmt.Errorf("%w: uplink group on host %s", ErrTopology, nd.name)
	}
	if len(rules) == 0 || len(rules) > 2 {
		return fmt.Errorf("%w: %d uplink group rules, want 1 or 2", ErrProfile, len(rules))
	}
	h := &hookFlow{member: make([]bool, nd.nports), rules: rules, old: oldPriority}
	for _, r := range rules {
		if r.From > 63 || r.To > 63 || r.From == r.To {
			return fmt.Errorf("%w: uplink group rule %d -> %d, want two DSCPs 0..63", ErrProfile, r.From, r.To)
		}
	}
	for _, r := range rules {
		sw := &s.switches[nd.sw]
		if a, b := sw.dscp[r.From], sw.dscp[r.To]; a != b {
			h.from[b] |= 1 << a
		}
	}
	for k := range nd.nports {
		h.member[k] = s.ports[s.ports[nd.portBase+k].peer].sw >= 0
	}
	s.switches[nd.sw].hook = h
	s.addStage(nd.sw, h)
	return nil
}

// HookHits gives how many frames the uplink group of a switch has rewritten.
func (s *Sim) HookHits(n NodeID) uint64 {
	if nd := &s.nodes[n]; nd.sw >= 0 && s.switches[nd.sw].hook != nil {
		return s.switches[nd.sw].hook.hits
	}
	return 0
}
