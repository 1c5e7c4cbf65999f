package hostnotify

import (
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// refresh takes over what is known about a subject itself.
func (n *Notifier) refresh(s *subject, v *view) {
	if !v.known {
		return
	}
	s.why, s.device = snsd.ReasonNone, v.device
	if v.moves > s.moves { // it begins anew with an address that was not known for a while
		s.holder++
	}
	s.moves = v.moves
	if *s.service == v.svc {
		return
	}
	s.know(v.svc)
	n.keepSubject(s)
	for _, p := range s.pairs {
		n.keepPair(p) // what it was told is another service now
	}
}

// changed recomputes all pairs of one address.
func (n *Notifier) changed(ch zone.Change, by *cause) {
	addr, why := ch.Addr.Unmap(), ch.Why
	v := n.look(addr)
	if subj := n.subjects[addr]; subj != nil {
		n.refresh(subj, &v)
		if !v.known && why != snsd.ReasonNone {
			subj.why = why
		}
		for i := len(subj.pairs) - 1; i >= 0; i-- { // backward: judge may remove the pair
			p := subj.pairs[i]
			n.judge(p, &v, v.known && n.dir.Share(p.sub.addr, addr), by, false)
		}
	}
	if v.known && v.state == snsd.Active {
		n.offer(&v, by)
	}
	// A fault of the host's own port alone changes nothing about its peers.
	fromFault := why != snsd.ReasonNone && keepAlive(why)
	if s := n.subs[addr]; s != nil && (ch.Peers || !fromFault) {
		n.meet(s)
		n.recomputeAll(s, by, false)
	}
}

// offer tells an active subject to the local hosts that share a zone with it and were
// not told of it. Of its peers and the local hosts it walks the smaller set.
func (n *Notifier) offer(v *view, by *cause) {
	left := len(n.order)
	for peer := range n.dir.Peers(v.addr) {
		if left--; left < 0 {
			break
		}
		// A subject may be an address that asked here before it registered: its peers are then those
		// that it is to hear of, more than those that are to hear of it.
		if s := n.subs[peer]; s != nil && n.dir.Share(peer, v.addr) {
			n.introduce(s, v, by)
		}
	}
	if left >= 0 {
		return
	}
	for _, s := range n.order {
		if s.pairs[v.addr] == nil && n.dir.Share(s.addr, v.addr) {
			n.introduce(s, v, by)
		}
	}
}

// introduce makes the pair of a host and an active subject that shares a zone with it.
func (n *Notifier) introduce(s *subscriber, v *view, by *cause) *pair {
	p := s.pairs[v.addr]
	switch {
	case p != nil || n.recall || s.yields() || v.state != snsd.Active || v.own(s) || !n.concerns(s, v):
		return p
	case v.addr.Is4() != s.addr.Is4():
		n.counters.FamilyMismatch++
		return nil
	case n.pairs >= n.cfg.MaxPairs || snsd.CheckAddr(v.addr) != nil:
		n.counters.PairsRefused++
		return nil
	}
	p = n.addPair(s, v.addr)
	n.refresh(p.subj, v)
	n.judge(p, v, true, by, false)
	return p
}

// recomputeAll compares everything s was told with the truth, and introduces what is
// new. again asks for active peers to be told once more.
func (n *Notifier) recomputeAll(s *subscriber, by *cause, again bool) {
	n.visit++
	for peer := range n.dir.Peers(s.addr) {
		v := n.look(peer)
		if !v.known || !n.dir.Share(s.addr, peer) { // as in offer: one that asked here may be known elsewhere
			continue
		}
		if p := s.pairs[peer]; p != nil {
			p.mark = n.visit
			n.refresh(p.subj, &v)
			n.judge(p, &v, true, by, again)
		} else if p = n.introduce(s, &v, by); p != nil {
			p.mark = n.visit
		}
	}
	for i := len(s.list) - 1; i >= 0; i-- {
		if p := s.list[i]; p.mark != n.visit {
			n.recompute(p, by, again)
		}
	}
}

// recomputeTold compares what s was told with the truth.
func (n *Notifier) recomputeTold(s *subscriber, by *cause) {
	for i := len(s.list) - 1; i >= 0; i-- {
		n.recompute(s.list[i], by, false)
	}
}

func (n *Notifier) recompute(p *pair, by *cause, again bool) {
	v := n.look(p.subj.addr)
	n.refresh(p.subj, &v)
	n.judge(p, &v, v.known && n.dir.Share(p.sub.addr, v.addr), by, again)
}

// meet takes over what is known of a subscriber itself.
func (n *Notifier) meet(s *subscriber) {
	if h, ok := n.dir.Host(s.addr); ok {
		s.role = h.Role
	}
}

// observed ends a notice that was recorded and not sent.
func (n *Notifier) observed(p *pair) {
	n.counters.Observed++
	n.history.observe(p.told.rec)
	p.told.acked = true
	n.stopRetry(p)
	if removes(p.told.verdict) && !p.ended {
		n.recompute(p, p.told.by, false) // an active notice may have waited for this, see wantActive
	}
}
