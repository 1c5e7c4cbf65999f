package hostnotify

import "time"

// While the Notifier observes, it decides and records every notice and sends none. Each counts as
// acked at once, so that nothing is repeated; what the host has really heard is kept beside it in
// pair.heard, and that is what outlives the process.

// SetObserving begins or ends that. At its end every host is told what is true: what is active
// again, and what became inactive meanwhile.
func (n *Notifier) SetObserving(on bool, now time.Time) {
	n.touch(now)
	if on == n.observing {
		return
	}
	n.observing = on
	for _, s := range n.order {
		for i := len(s.list) - 1; i >= 0; i-- { // backward: a pair may be removed
			if p := s.list[i]; on {
				n.supersede(p)
			} else {
				n.restoreHeard(p)
			}
		}
		if !on {
			s.owed = true
			n.keepHost(s)
			n.payBack(s)
		}
	}
}

// restoreHeard ends what was only recorded of a pair.
func (n *Notifier) restoreHeard(p *pair) {
	if p.heard == nil {
		return
	}
	p.told, p.heard = *p.heard, nil
	p.ended = false
	n.keepPair(p)
	if p.told.none() {
		n.unqueue(p)
		n.remove(p)
	}
}
