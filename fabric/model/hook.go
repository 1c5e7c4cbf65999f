package model

import "fmt"

// hookFlow is deadlock prevention by an uplink group: traffic that enters and leaves
// a switch through ports of the group goes up again after it came down; it is moved
// to another class, so that pauses of the first class cannot form a cycle.
type hookFlow struct {
	member []bool // by switch port
	rules  []HookRule
	hits   uint64
}

// HookRule moves frames of one DSCP to another.
type HookRule struct {
	From, To uint8 // DSCP 0..63
}

func (h *hookFlow) rewrite(s *Sim, p *packet, in, out int32) {
	base := s.switches[s.ports[in].sw].portBase
	if !h.member[in-base] || !h.member[out-base] || p.kind() != kindData {
		return
	}
	for i := range h.rules {
		if p.tos>>2 == h.rules[i].From {
			p.tos = h.rules[i].To<<2 | p.tos&ecnMask
			h.hits++
			return
		}
	}
}

// SetUplinkGroup makes the ports of a switch that lead to other switches its uplink
// group, with at most two rules of distinct DSCPs.
func (s *Sim) SetUplinkGroup(n NodeID, rules []HookRule) error {
	nd := &s.nodes[n]
	if nd.sw < 0 {
		return fmt.Errorf("%w: uplink group on host %s", ErrTopology, nd.name)
	}
	if len(rules) == 0 || len(rules) > 2 {
		return fmt.Errorf("%w: %d uplink group rules, want 1 or 2", ErrProfile, len(rules))
	}
	h := &hookFlow{member: make([]bool, nd.nports), rules: rules}
	for _, r := range rules {
		if r.From > 63 || r.To > 63 || r.From == r.To {
			return fmt.Errorf("%w: uplink group rule %d -> %d, want two DSCPs 0..63", ErrProfile, r.From, r.To)
		}
	}
	for k := range nd.nports {
		h.member[k] = s.ports[s.ports[nd.portBase+k].peer].sw >= 0
	}
	s.switches[nd.sw].hook = h
	return nil
}

// HookHits gives how many frames the uplink group of a switch has rewritten.
func (s *Sim) HookHits(n NodeID) uint64 {
	if nd := &s.nodes[n]; nd.sw >= 0 && s.switches[nd.sw].hook != nil {
		return s.switches[nd.sw].hook.hits
	}
	return 0
}
