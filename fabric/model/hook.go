package model

// hookFlow is deadlock prevention by an uplink group: traffic that enters and leaves
// a switch through ports of the group goes up again after it came down; it is moved
// to another class, so that pauses of the first class cannot form a cycle.
type hookFlow struct {
	member []bool // by switch port
	rules  []HookRule
	Hits   uint64
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
			h.Hits++
			return
		}
	}
}
