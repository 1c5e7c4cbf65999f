package client

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
)

// complete ends the sync of reflector i. After a full one it does not say any more what it
// has not said in this session; hosts that go with it have no reason, as nobody told one. What
// it said of devices of which it may know more than it has room for stands as of before. All
// else counts as said in this session.
func (l *replicas) complete(i int, m *wire.EndOfSync, a *Applied, now time.Time) {
	s := &l.list[i]
	s.synced, s.heard, s.members = true, true, m.Members
	if l.waitUntil.IsZero() {
		l.waitUntil = now.Add(l.wait)
	}
	if !l.waited && (!l.missing() || l.wait <= 0) {
		l.waited = true
	}
	t := newTouched()
	short := make(map[netip.Addr]bool, len(m.Short))
	for _, dev := range m.Short {
		short[dev] = true
	}
	open := func(session uint32, dev netip.Addr) bool { // nobody knows
		if m.Resumed { // nor did they before
			return session < s.whole
		}
		return session != s.session && short[dev]
	}
	for k, h := range s.hosts {
		switch {
		case open(h.session, k.Device):
			continue
		case !m.Resumed && h.session != s.session:
			l.withdraw(i, k, wire.Stamp{}, snsd.ReasonNone, t)
			continue
		case h.overruled:
			t.host(k, snsd.ReasonNone)
		}
		h.session, h.overruled = s.session, false
		s.hosts[k] = h
	}
	s.whole = s.session
	s.forgetEndings(now, l.most.hosts)
	if s.staged != nil || len(s.pending) > 0 || s.zones != nil && s.zones.cluster != m.Cluster {
		l.hearZones(i, &wire.Update{Cluster: m.Cluster}, a)
	}
	l.revote(a)
	l.completeFences(i, m.Resumed)
	l.decideFences(a)
	l.decide(t, a, now)
	for _, d := range l.disputes {
		d.since = now
	}
	l.recount(a, now)
	l.endRecall(a, now)
	a.sort()
}

// end closes the session of a reflector. What it said stands; what it was about to say it has
// to begin again.
func (l *replicas) end(id netip.Addr, a *Applied, now time.Time) {
	i, up := l.index(id)
	if !up {
		return
	}
	s := &l.list[i]
	s.up, s.synced, s.staged, s.pending = false, false, nil, nil
	l.recount(a, now)
}
