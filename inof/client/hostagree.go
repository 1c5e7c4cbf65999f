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

// touched are hosts of which a reflector says something else now, and why they are gone, if
// they are.
type touched struct {
	hosts map[zone.HostKey]snsd.Reason
}

func newTouched() *touched { return &touched{hosts: map[zone.HostKey]snsd.Reason{}} }

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
		s.endings = append(s.endings, endedHost{k, e.at})
		s.forgetEndings(e.at, l.most.hosts)
	}
	delete(s.hosts, k)
	l.unfence(i, k)
	t.host(k, why)
}

// forgetEndings forgets withdrawals of long ago, and the oldest of those beyond so many: a device
// may withdraw other hosts without end.
func (s *replica) forgetEndings(now time.Time, most int) {
	for len(s.endings) > 0 && (now.Sub(s.endings[0].at) > endingTime || len(s.endings) > most) {
		first := s.endings[0]
		s.endings = s.endings[1:]
		if s.ended[first.key].at.Equal(first.at) { // else it came back, or was withdrawn again
			delete(s.ended, first.key)
		}
	}
}

// withdraw takes from reflector i that it says a host no more, as of a state of the host's
// device. Where all others that say the host are silent, or have not said it since their
// session began, they are overruled; what they know of a later state stands.
func (l *replicas) withdraw(i int, k zone.HostKey, stamp wire.Stamp, why snsd.Reason, t *touched) {
	if _, said := l.list[i].hosts[k]; !said {
		return
	}
	delete(l.list[i].hosts, k)
	l.unfence(i, k)
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

// down takes from reflector i whether hosts can be reached, as of a state of their device.
func (l *replicas) down(i int, r *wire.DownRecord, stamp wire.Stamp, t *touched) {
	s := &l.list[i]
	for _, addr := range r.Addrs {
		k := r.Key(addr)
		h, said := s.hosts[k]
		if !said {
			continue
		}
		host := *h.host
		host.Down, h.host = r.Down, &host
		if h.stamp.Before(stamp) {
			h.stamp = stamp
		}
		s.hosts[k] = h
		t.again(k)
	}
}

// again has a host looked at for which there is no other reason to.
func (t *touched) again(k zone.HostKey) {
	if _, known := t.hosts[k]; !known {
		t.hosts[k] = snsd.ReasonNone
	}
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
	downs := wire.Downs{}
	for k, why := range t.hosts {
		was, known := l.hosts[k]
		i := l.decideHost(k)
		delete(l.recalled.hosts, k)
		if i < 0 {
			if known {
				delete(l.hosts, k)
				delete(l.disputes, k)
				a.Hosts = append(a.Hosts, wire.HostRecord{Op: wire.Withdraw, Host: zone.Host{HostKey: k}, Why: why})
			}
			continue
		}
		is := knownHost{l.list[i].hosts[k].host, l.claim(k, now)}
		l.hosts[k] = is
		if !known || was.host != is.host && !was.said(is.claim).SameButDown(is.record()) {
			a.Hosts = append(a.Hosts, wire.HostRecord{Op: wire.Put, Host: *is.record()})
			continue
		}
		if was.claim != is.claim {
			a.Claims = append(a.Claims, *is.record())
		}
		if !was.host.Down.Same(is.host.Down) {
			downs[k] = is.host.Down
		}
	}
	a.Downs = append(a.Downs, downs.Records()...)
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
