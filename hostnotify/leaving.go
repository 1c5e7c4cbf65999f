package hostnotify

import (
	"net/netip"
	"slices"
	"time"
)

// SetLeaving makes known that the port is about to be shut in order, or is not any more.
// Its hosts that have no other port are told that all their peers have left, so that
// they use other paths before this one goes; when it is over they are told what is true.
func (n *Notifier) SetLeaving(port string, on bool, now time.Time) {
	n.touch(now)
	p := n.port(port)
	if p.leaving == on {
		return
	}
	p.leaving = on
	for _, s := range p.subs {
		n.choose(s)
		n.recomputeAll(s, nil, false)
	}
}

// Unsettled reports whether a host on the port, or a host that is told of one of the
// addresses, has something to be told that it has not acked.
func (n *Notifier) Unsettled(port string, addrs []netip.Addr) bool {
	if p := n.ports[port]; p != nil {
		for _, s := range p.subs {
			if s.out == nil {
				continue // nobody can tell it anything
			}
			if s.inFlight > 0 || slices.ContainsFunc(s.waiting[:], func(l pairList) bool { return l.head != nil }) {
				return true
			}
		}
	}
	for _, a := range addrs {
		subj := n.subjects[a]
		if subj == nil {
			continue
		}
		for _, p := range subj.pairs {
			if p.sub.out != nil && (p.flight.on || p.waits.class != idle) {
				return true
			}
		}
	}
	return false
}
