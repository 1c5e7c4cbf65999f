package hostagent

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// frame takes a frame. The existing agent takes notices of everybody.
func (a *Agent) frame(p *port, f fabric.Frame) {
	if f.EtherType == fabric.EtherTypeLLDP && p.trust.lldp(&f, a.now()) {
		a.tellLine(Line{Time: a.now(), Event: "switch", Interface: p.Interface, Switch: f.Src.String()})
	}
	if f.EtherType == fabric.EtherTypeNTS && !p.Like {
		ok, event := p.trust.nts(&f)
		if event != "" {
			a.tellLine(Line{Time: a.now(), Event: "refused", Interface: p.Interface, Error: event})
		}
		if !ok {
			return
		}
	}
	if p.machine != nil {
		a.take(p, p.machine.Frame(f, a.now()))
	}
}

// link follows the link of a port.
func (a *Agent) link(p *port, at time.Time, up bool, name string) {
	if up == p.up && name != "gone" {
		return
	}
	was := p.up
	p.up = up
	if was && !up && a.actor != nil { // before all words: I/O stands still
		if lost := a.unreachable(p); len(lost) > 0 {
			a.actor.LinkDown(lost, a.hearsFences(p), at)
		}
	}
	if was && !up && a.array != nil {
		a.array.PortLost(a.unreachable(p))
	}
	if !was && up && a.actor != nil {
		a.actor.LinkUp(p.Addrs, at)
	}
	if !up {
		p.trust.down()
	}
	a.tellLine(Line{Time: at, Event: "link", Interface: p.Interface, Link: name})
	switch {
	case p.machine == nil:
	case up:
		a.take(p, p.machine.LinkUp(a.now()))
	default:
		a.take(p, p.machine.LinkDown(a.now()))
		clear(p.ignored)
	}
}

// hearsFences reports whether a switch may notify of the fences of a port that lost its link at
// another one: it knows by the NQN that both are of one host.
func (a *Agent) hearsFences(lost *port) bool {
	for _, p := range a.ports {
		own, ok := p.machine.(*snsd.Agent)
		if ok && p != lost && p.up && own.Agreed()&snsd.ExtFence != 0 && p.Service.NQN == lost.Service.NQN && p.Service.NQN != "" {
			return true
		}
	}
	return false
}

// elsewhere reports of addresses whether another port has them.
func (a *Agent) elsewhere(p *port) func(netip.Addr) bool {
	return func(addr netip.Addr) bool {
		for _, o := range a.ports {
			if o != p && slices.Contains(o.Addrs, addr) {
				return true
			}
		}
		return false
	}
}

// unreachable lists the addresses of a port that lost its link and that no other port has: a bond
// has them on several.
func (a *Agent) unreachable(p *port) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(p.Addrs), func(addr netip.Addr) bool {
		for _, o := range a.ports {
			if o.up && slices.Contains(o.Addrs, addr) {
				return true
			}
		}
		return false
	})
}
