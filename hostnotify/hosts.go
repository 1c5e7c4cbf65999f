package hostnotify

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// port is a switch port with the hosts that are registered on it.
type port struct {
	name string
	mac  fabric.MAC
	up   bool
	// isDown: it was said to be down; after a start neither may have been said yet.
	isDown bool
	subs   []*subscriber // with a link to this port
	rings  [classes]ring // the hosts whose turn it is, by class
	pace   pacer
	// leaving: it is about to be shut in order.
	leaving bool
}

// agentKey names a host as a machine: its addresses share one queue there.
type agentKey struct {
	port string
	mac  fabric.MAC
}

// link is one port on which an address registered.
type link struct {
	port  *port
	mac   fabric.MAC
	agent *agent
	// moved: the port lost its carrier while the process was away, and the host has not been
	// told everything, nor acked anything over it, since.
	moved bool
}

// subscriber is one local host address that wants notices.
type subscriber struct {
	addr  netip.Addr
	role  snsd.Role  // of the host, as far as it is known
	mac   fabric.MAC // of the machine that holds the address; links with another one are rivals
	links []*link
	out   *link // the one notices go through; nil while there is none

	pairs map[netip.Addr]*pair // by subject
	list  []*pair              // the same, in an order that does not depend on the map

	waiting  [classes]pairList
	turns    [classes]turn
	inFlight int // notices sent and not acked
	// heard is when it acked last, or its notices under way began to wait for that.
	heard stamp

	answered stamp  // when the last zone query was answered
	queryDue stamp  // when a deferred one will be
	restored bool   // not registered since Restore
	early    bool   // see SubscribeAs
	unkept   bool   // its row has changed
	life     uint32 // counts when it came to have no usable port, and one again
	// owed: its last link went down since it was told everything, or another claim had the
	// address. The host agent may forget then, and its query may be lost, or others tell it
	// things: it is told all again once the link, or the address, is back.
	owed bool
}

func (s *subscriber) link(p *port) *link {
	for _, l := range s.links {
		if l.port == p {
			return l
		}
	}
	return nil
}

// holds tells whether a link with this MAC is left.
func (s *subscriber) holds(mac fabric.MAC) bool {
	return slices.ContainsFunc(s.links, func(l *link) bool { return l.mac == mac })
}

// isCutOff tells whether all ports of the host are down, or were while the process was away.
func (s *subscriber) isCutOff() bool {
	return !slices.ContainsFunc(s.links, func(l *link) bool { return !l.port.isDown && !l.moved && l.mac == s.mac })
}

// yields tells whether another claim has the address, see Yield.
func (s *subscriber) yields() bool { return len(s.links) == 0 && !s.restored }

func (s *subscriber) usable(l *link) bool { return l.port.up && l.mac == s.mac }

func (n *Notifier) addSubscriber(host netip.Addr, mac fabric.MAC) *subscriber {
	s := &subscriber{addr: host, mac: mac, pairs: make(map[netip.Addr]*pair), answered: never, queryDue: never}
	for c := range s.turns {
		s.turns[c].sub = s
	}
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
	news := false
	l := s.link(p)
	switch {
	case l == nil:
		news = len(s.links) == 0
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
			return false
		}
		n.takeOver(s, mac)
		news = true
	}
	s.restored = false
	n.choose(s)
	return news
}

// setMAC moves the link to another machine's account.
func (n *Notifier) setMAC(l *link, mac fabric.MAC) {
	n.leaveAgent(l)
	key := agentKey{l.port.name, mac}
	a := n.agents[key]
	if a == nil {
		a = n.newAgent()
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

// prefers tells whether notices rather go through l than through o: not over a port that
// is about to be shut, and where they go now.
func (s *subscriber) prefers(l, o *link) bool {
	if l.port.leaving != o.port.leaving {
		return o.port.leaving
	}
	return l == s.out
}

// rotate moves s to its next usable link, after a notice sent on p stayed unanswered.
func (n *Notifier) rotate(s *subscriber, p *port) {
	if len(s.links) < 2 || s.out == nil || s.out.port != p {
		return
	}
	at := slices.Index(s.links, s.out)
	for i := 1; i < len(s.links); i++ {
		if l := s.links[(at+i)%len(s.links)]; s.usable(l) {
			n.setOut(s, l)
			return
		}
	}
}

func (n *Notifier) setOut(s *subscriber, l *link) {
	for c := range s.turns {
		s.turns[c].leave()
	}
	if s.out == nil {
		s.heard = n.now // it could not answer before
	}
	if s.out == nil || l == nil {
		s.life++
	}
	s.out = l
	for c := range s.turns {
		n.enter(s, class(c))
	}
}

// hurry makes the retries of everything under way to s due at once.
func (n *Notifier) hurry(s *subscriber) {
	s.out.agent.rto.shift = 0
	for _, p := range s.list {
		if p.inFlight && p.class == idle {
			n.land(p)
			n.arm(p.with)
			p.tries = 0
			n.enqueue(p, retryClass(p.told))
		}
	}
	n.arm(s.out.agent)
}
