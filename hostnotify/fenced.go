package hostnotify

import (
	"net/netip"

	"github.com/openinof/inof/snsd"
)

// Fences is what is known of blocks between two addresses, whichever of them is the array's.
type Fences interface {
	// Between reports how far the two are fenced, and whether a block stands: then neither reaches
	// the other, whatever else is known.
	Between(a, b netip.Addr) (f snsd.Fence, blocked bool)
}

func (n *Notifier) between(s *subscriber, subject netip.Addr) (snsd.Fence, bool) {
	if n.fences == nil {
		return snsd.Fence{}, false
	}
	return n.fences.Between(s.addr, subject)
}

// understandsFences reports whether the host's agent has announced sub-TLV 10 on the link that its
// notices go through.
func (s *subscriber) understandsFences() bool {
	return s.out != nil && s.out.agent.ext&snsd.ExtFence != 0
}

// fenceOf is what a notice of a fault carries: nil where the agent does not understand it, or is
// not to wait for a fence.
func (n *Notifier) fenceOf(p *pair, v verdict) *snsd.Fence {
	if v.isActive() || v.none() || v.reason.Disconnects() || !p.sub.understandsFences() {
		return nil
	}
	f, _ := n.between(p.sub, p.subj.addr)
	return &f
}

// rises reports whether a host that was notified of a fault is to be notified once more, because
// more is fenced now.
func (p *pair) rises(is truth) bool {
	was := &p.told
	if was.isActive() || was.none() || was.reason.Disconnects() || is.over || !p.sub.understandsFences() {
		return false
	}
	level := snsd.FenceNone
	if was.fence != nil {
		level = was.fence.Level
	}
	return is.fence.Level > level
}
