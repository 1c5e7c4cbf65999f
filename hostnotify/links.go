package hostnotify

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/fabric"
)

func (n *Notifier) addSubscriber(host netip.Addr, mac fabric.MAC) *subscriber {
	s := &subscriber{addr: host, mac: mac, pairs: make(map[netip.Addr]*pair), asked: never, answered: never, queryDue: never, until: never}
	n.subs[host] = s
	n.order = append(n.order, s)
	n.keepHost(s)
	return s
}

func (n *Notifier) port(name string) *port {
	p := n.ports[name]
	if p == nil {
		p = &port{name: name, pace: newPacer(n.cfg)}
		n.ports[name] = p
		at, _ := slices.BinarySearchFunc(n.portList, name, func(p *port, name string) int { return strings.Compare(p.name, name) })
		n.portList = slices.Insert(n.portList, at, p)
	}
	return p
}

func (n *Notifier) removePort(p *port) {
	delete(n.ports, p.name)
	n.portList = slices.DeleteFunc(n.portList, func(x *port) bool { return x == p })
}

// confirm notes that s was heard on p. It tells whether s must be compared with the
// truth: it is new there, or another machine now.
func (n *Notifier) confirm(s *subscriber, p *port, mac fabric.MAC) bool {
	news, joins := false, false
	s.claims = slices.DeleteFunc(s.claims, func(port string) bool { return port == p.name })
	l := s.link(p)
	switch {
	case l == nil:
		news = len(s.links) == 0
		joins = !news
		l = &link{port: p}
		s.links = append(s.links, l)
		p.subs = append(p.subs, s)
		n.setMAC(l, mac)
	case l.mac != mac:
		n.setMAC(l, mac)
	}
	if mac != s.mac {
		if s.holds(s.mac) {
			n.counters.Conflicts++
			n.choose(s) // what is under way went to the other machine
			return false
		}
		n.takeOver(s, mac)
		news = true
	}
	s.restored, s.until = false, never
	n.choose(s)
	if joins && s.out != l && s.usable(l) && s.unanswered() { // it has moved there, for all we hear
		n.setOut(s, l)
		n.hurry(s)
	}
	return news
}

// unanswered reports whether the host did not ack something even when it was repeated.
func (s *subscriber) unanswered() bool {
	return slices.ContainsFunc(s.list, func(p *pair) bool { return p.flight.on && p.flight.tries > 0 })
}

// setMAC moves the link to another machine's account.
func (n *Notifier) setMAC(l *link, mac fabric.MAC) {
	n.leaveAgent(l)
	key := agentKey{l.port.name, mac}
	a := n.agents[key]
	if a == nil {
		a = &agent{acked: never, expired: never}
		n.agents[key] = a
	}
	a.addrs++
	l.mac, l.agent = mac, a
}

func (n *Notifier) leaveAgent(l *link) {
	if l.agent == nil {
		return
	}
	if l.agent.addrs--; l.agent.addrs == 0 {
		delete(n.agents, agentKey{l.port.name, l.mac})
	}
	l.agent = nil
}

// takeOver gives the address to another machine, which knows nothing of what the
// former one was told.
func (n *Notifier) takeOver(s *subscriber, mac fabric.MAC) {
	n.forgetAll(s)
	s.mac = mac
	n.keepHost(s)
	n.choose(s)
}

func (n *Notifier) detach(s *subscriber, p *port) {
	l := s.link(p)
	if l == nil {
		return
	}
	n.leaveAgent(l)
	s.links = slices.DeleteFunc(s.links, func(x *link) bool { return x == l })
	p.subs = slices.DeleteFunc(p.subs, func(x *subscriber) bool { return x == s })
	n.choose(s)
}

// drop gives a host up.
func (n *Notifier) drop(s *subscriber) {
	n.forgetAll(s)
	delete(n.subs, s.addr)
	n.order = slices.DeleteFunc(n.order, func(x *subscriber) bool { return x == s })
	n.deferred = slices.DeleteFunc(n.deferred, func(x *subscriber) bool { return x == s })
	n.keepHost(s)
}

func (n *Notifier) forgetAll(s *subscriber) {
	for i := len(s.list) - 1; i >= 0; i-- {
		n.remove(s.list[i])
	}
}

// choose settles the link that notices for s go through: the present one while it is
// usable, else the first that is. What is under way on a link that was lost is due at
// once on the next.
func (n *Notifier) choose(s *subscriber) {
	var best *link
	for _, l := range s.links {
		if s.usable(l) && (best == nil || s.prefers(l, best)) {
			best = l
		}
	}
	if best == s.out {
		return
	}
	n.setOut(s, best)
	if best != nil {
		n.hurry(s)
	}
}

// hurry makes the retries of everything under way to s due at once.
func (n *Notifier) hurry(s *subscriber) {
	s.out.agent.acked, s.out.agent.shift = n.now, 0 // it could not ack before
	for _, p := range s.list {
		if p.flight.on && p.waits.class == idle {
			n.land(p)
			n.arm(p.flight.with)
			p.flight.tries = 0
			n.enqueue(p, retryClass(p.told.verdict))
		}
	}
	n.arm(s.out.agent)
}

// mayReturn has a host forgotten that does not register in time.
func (n *Notifier) mayReturn(s *subscriber) {
	s.until = n.now + stamp(n.cfg.Grace)
	if n.graceEnd == never || s.until < n.graceEnd {
		n.graceEnd = s.until
	}
}

// endGrace forgets the hosts that did not register in time.
func (n *Notifier) endGrace() {
	n.graceEnd = never
	for _, s := range slices.Clone(n.order) {
		switch {
		case s.until == never:
		case s.until <= n.now:
			n.drop(s)
		case n.graceEnd == never || s.until < n.graceEnd:
			n.graceEnd = s.until
		}
	}
}

// makeRoom forgets a host that may return for one that is there; it reports whether there was one.
func (n *Notifier) makeRoom() bool {
	i := slices.IndexFunc(n.order, func(s *subscriber) bool { return s.isAwaited() && !s.restored })
	if i >= 0 {
		n.drop(n.order[i])
	}
	return i >= 0
}
