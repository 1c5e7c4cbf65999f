package hostnotify

import (
	"net/netip"

	"github.com/openinof/inof/snsd"
)

// SetFences says who knows what is blocked and fenced; nil: nothing is.
func (n *Notifier) SetFences(f Fences) { n.fences = f }

// Announce takes which extensions the machine of a host on a port understands, by an ack or a query
// of it. The last one counts, until the port loses its carrier or the machine is withdrawn. One that
// understands fences now is notified of those that it was not.
func (n *Notifier) Announce(port string, host netip.Addr, ext snsd.Extensions) {
	s, p := n.subs[host.Unmap()], n.ports[port]
	if s == nil || p == nil || s.link(p) == nil {
		return
	}
	a := s.link(p).agent
	rises := ext&snsd.ExtFence > a.ext&snsd.ExtFence
	if a.ext = ext; !rises {
		return
	}
	for _, s := range p.subs {
		if s.out != nil && s.out.agent == a {
			n.recomputeTold(s, nil)
		}
	}
}

// Refenced has all pairs of an address compared with the truth, after a change of what is blocked
// or fenced there.
func (n *Notifier) Refenced(addr netip.Addr) {
	addr = addr.Unmap()
	if subj := n.subjects[addr]; subj != nil {
		for i := len(subj.pairs) - 1; i >= 0; i-- { // backward: a pair may be removed
			n.recompute(subj.pairs[i], nil, false)
		}
	}
	if s := n.subs[addr]; s != nil {
		n.recomputeAll(s, nil, false)
	}
	v := n.look(addr)
	if v.known && v.state == snsd.Active { // a host that was not notified while it was blocked
		n.offer(&v, nil)
	}
}
