package hostnotify

import (
	"net/netip"
	"time"
)

// Nudge sends a host once more one notice that it has acked, with its number: if the host is there
// it acks that too. An inactive one is taken where there is one, as an active one has the agent
// connect anew, but none of a subject that is gone and only kept. A host to which something is
// under way needs none.
func (n *Notifier) Nudge(host netip.Addr, now time.Time) {
	n.touch(now)
	s := n.subs[host.Unmap()]
	if s == nil || s.out == nil || s.inFlight > 0 {
		return
	}
	var best *pair
	for _, p := range s.list {
		if p.told.acked && p.waits.class == idle && !p.kept && !p.told.none() && (best == nil || best.told.isActive() && !p.told.isActive()) {
			best = p
		}
	}
	if best == nil {
		return
	}
	best.told.acked, best.flight.tries = false, 0
	n.launch(best)
	n.enqueue(best, retryClass(best.told.verdict))
}
