package client

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// This file decides which hosts there are, and which of them can be reached, by what each
// reflector says. One that says a host is enough. Of two the later state of the host's device
// counts, so that an old word never takes the place of a newer one. That a reflector is silent,
// lost or in the midst of its sync withdraws nothing.

// touched are hosts and ports of which a reflector says something else now.
type touched struct {
	hosts map[zone.HostKey]snsd.Reason // why they are gone, if they are
	ports map[wire.PortKey]struct{}
}

func newTouched() *touched {
	return &touched{hosts: map[zone.HostKey]snsd.Reason{}, ports: map[wire.PortKey]struct{}{}}
}

func (t *touched) host(k zone.HostKey, why snsd.Reason) { t.hosts[k] = why }

// put takes what reflector i says of a host.
func (l *replicas) put(i int, h *zone.Host, stamp wire.Stamp, t *touched) {
	s, k := &l.list[i], h.HostKey
	host := *h
	s.hosts[k] = saidHost{host: &host, stamp: stamp, session: s.session}
	delete(s.ended, k)
	t.host(k, snsd.ReasonNone)
}

// endHost takes from reflector i that the device of a host has withdrawn it.
func (l *replicas) endHost(i int, k zone.HostKey, e ending, why snsd.Reason, t *touched) {
	s := &l.list[i]
	if l.expected > 1 || len(l.list) > 1 {
		s.ended[k] = e
	}
	delete(s.hosts, k)
	t.host(k, why)
}

// withdraw takes from reflector i that it says a host no more, as of a state of the host's
// device. Where all others that say the host are silent, or have not said it since their
// session began, they are overruled; what they know of a later state stands.
func (l *replicas) withdraw(i int, k zone.HostKey, stamp wire.Stamp, why snsd.Reason, t *touched) {
	if _, said := l.list[i].hosts[k]; !said {
		return
	}
	delete(l.list[i].hosts, k)
	t.host(k, why)
	for j := range l.list {
		o := &l.list[j]
		if h, ok := o.hosts[k]; ok && o.sure(&h) {
			return
		}
	}
	for j := range l.list {
		if h, ok := l.list[j].hosts[k]; ok && !stamp.Before(h.stamp) {
			h.overruled = true
			l.list[j].hosts[k] = h
		}
	}
}

// fault takes what reflector i says of a port. Its hosts there are of that state of their
// device then, whether they are on the list or no longer.
func (l *replicas) fault(i int, r *wire.FaultRecord, stamp wire.Stamp, t *touched) {
	s, pk := &l.list[i], wire.PortKey{Device: r.Device, Port: r.Port}
	old := s.faultAt(pk)
	if r.Op == wire.Put {
		s.faults[pk] = saidFault{*r, s.session}
	} else {
		delete(s.faults, pk)
	}
	t.ports[pk] = struct{}{}
	for _, addr := range wire.Union(old.Addrs, r.Addrs) {
		k := zone.HostKey{Addr: addr, Device: r.Device, Port: r.Port}
		if h, ok := s.hosts[k]; ok && h.stamp.Before(stamp) {
			h.stamp = stamp
			s.hosts[k] = h
			t.again(k)
		}
	}
}

// again has a host looked at for which there is no other reason to.
func (t *touched) again(k zone.HostKey) {
	if _, known := t.hosts[k]; !known {
		t.hosts[k] = snsd.ReasonNone
	}
}

// faultAt is what a Change of a port's fault refers to: what was said of it before, but in a
// full sync only what was said in that.
func (s *replica) faultAt(pk wire.PortKey) wire.FaultRecord {
	f := s.faults[pk]
	if s.anew && f.session != s.session {
		return wire.FaultRecord{}
	}
	return f.FaultRecord
}

// decideHost gives the table that is right about a host, by the newest state of the host's
// device; -1: the host is not there.
func (l *replicas) decideHost(k zone.HostKey) int {
	best := -1
	for i := range l.list {
		h, ok := l.list[i].hosts[k]
		if !ok || h.overruled || l.endedSince(k, i, h.stamp) {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		if was := l.list[best].hosts[k].stamp; was.Before(h.stamp) || !was.Known() && h.stamp.Known() {
			best = i
		}
	}
	return best
}

// endedSince reports whether another reflector than i says that the device has withdrawn a
// host after a state.
func (l *replicas) endedSince(k zone.HostKey, i int, stamp wire.Stamp) bool {
	for j := range l.list {
		if e, ok := l.list[j].ended[k]; ok && j != i && stamp.Before(e.stamp) {
			return true
		}
	}
	return false
}

// decide brings what is in force in step with the tables, for what was touched.
func (l *replicas) decide(t *touched, a *Applied, now time.Time) {
	for k, why := range t.hosts {
		pk := wire.PortKey{Device: k.Device, Port: k.Port}
		if _, ok := l.faults[pk]; ok || l.anyFault(pk) {
			t.ports[pk] = struct{}{}
		}
		was, known := l.hosts[k]
		i := l.decideHost(k)
		switch {
		case i < 0 && known:
			delete(l.hosts, k)
			delete(l.disputes, k)
			a.Hosts = append(a.Hosts, wire.HostRecord{Op: wire.Withdraw, Host: zone.Host{HostKey: k}, Why: why})
		case i < 0:
		default:
			is := knownHost{l.list[i].hosts[k].host, l.claim(k, now)}
			l.hosts[k] = is
			before := was
			before.claim = is.claim
			switch {
			case !known || was.host != is.host && !before.record().Same(is.record()):
				a.Hosts = append(a.Hosts, wire.HostRecord{Op: wire.Put, Host: *is.record()})
			case was.claim != is.claim:
				a.Claims = append(a.Claims, *is.record())
			}
		}
	}
	for pk := range t.ports {
		l.decidePort(pk, a)
	}
}

func (l *replicas) anyFault(pk wire.PortKey) bool {
	for i := range l.list {
		if _, ok := l.list[i].faults[pk]; ok {
			return true
		}
	}
	return false
}

// decidePort gives the fault of a port: the hosts in force there that the table which is right
// about them says are unreachable.
func (l *replicas) decidePort(pk wire.PortKey, a *Applied) {
	is := wire.FaultRecord{Op: wire.Put, Device: pk.Device, Port: pk.Port}
	var newest wire.Stamp
	for i := range l.list {
		for _, addr := range l.list[i].faults[pk].Addrs {
			k := zone.HostKey{Addr: addr, Device: pk.Device, Port: pk.Port}
			if _, known := l.hosts[k]; !known || l.decideHost(k) != i {
				continue
			}
			h := l.list[i].hosts[k]
			f := l.list[i].downAt(k, &h)
			if f == nil {
				continue
			}
			if len(is.Addrs) == 0 || newest.Before(h.stamp) {
				is.Why, is.Since, newest = f.Why, f.Since, h.stamp
			}
			is.Addrs = append(is.Addrs, addr)
		}
	}
	was, had := l.faults[pk]
	switch is.Addrs = wire.SortedAddrs(is.Addrs); {
	case len(is.Addrs) > 0 && (!had || !sameFault(&was, &is)):
		l.faults[pk] = is
		a.Faults = append(a.Faults, is)
	case len(is.Addrs) == 0 && had:
		delete(l.faults, pk)
		a.Faults = append(a.Faults, wire.FaultRecord{Op: wire.Withdraw, Device: pk.Device, Port: pk.Port})
	}
}

// SaidBy gives the reflectors that say a remote host.
func (c *Client) SaidBy(k zone.HostKey) []netip.Addr {
	var out []netip.Addr
	for i := range c.learned.list {
		if _, ok := c.learned.list[i].hosts[k]; ok {
			out = append(out, c.learned.list[i].id)
		}
	}
	return out
}
