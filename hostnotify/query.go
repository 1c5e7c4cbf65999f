package hostnotify

import (
	"net/netip"
	"time"
)

// Query answers a host's zone query: it is notified of all its active peers again, except those of which
// a notice is under way, which is repeated until the host acks it, or has left since it asked.
func (n *Notifier) Query(host netip.Addr, now time.Time) {
	n.touch(now)
	s := n.subs[host.Unmap()]
	if s == nil { // it will be told everything when it registers
		n.counters.QueriesUnknown++
		return
	}
	n.counters.Queries++
	s.asked = n.now
	interval := stamp(n.cfg.QueryInterval)
	switch {
	case s.queryDue != never:
		n.counters.QueriesDeferred++
	case s.answered != never && n.now-s.answered < interval:
		n.counters.QueriesDeferred++
		s.queryDue = s.answered + interval
		n.keepHost(s)
		n.deferred = append(n.deferred, s)
	default:
		n.answer(s)
	}
}

func (n *Notifier) answerDeferred() {
	rest := n.deferred[:0]
	for _, s := range n.deferred {
		if s.queryDue > n.now {
			rest = append(rest, s)
			continue
		}
		n.answer(s)
	}
	clear(n.deferred[len(rest):])
	n.deferred = rest
}

// answer notifies s of all its active peers again, and of those that it knows and that cannot be
// reached: its agent may have been started anew, and the kernel still uses those paths. One that
// cannot be told now hears all when it can.
func (n *Notifier) answer(s *subscriber) {
	s.answered, s.queryDue = n.now, never
	n.keepHost(s)
	n.recomputeAll(s, nil, true)
	if s.out == nil {
		return
	}
	for i := len(s.list) - 1; i >= 0; i-- { // backward: repeat may remove the pair
		if p := s.list[i]; p.told.acked && !p.told.isActive() && !p.ended {
			n.repeat(p)
		}
	}
}

// repeat sends what was told of a pair once more, with its number: an agent that has forgotten it
// learns it, another one acks it again.
func (n *Notifier) repeat(p *pair) {
	if p.told.none() || p.flight.on || p.waits.class != idle {
		return
	}
	p.told.acked = false
	n.keepPair(p)
	n.launch(p)
	n.enqueue(p, retryClass(p.told.verdict))
	n.recompute(p, nil, false) // there may be no ground for it yet
}
