package bfd

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Reconcile makes the sessions be those of wanted: missing ones are made, changed
// ones follow (new timers by a Poll Sequence), others are taken down with AdminDown
// and end after the detection time of their peers. Of a session that is wanted more
// than once the larger timers count. What is wrong with single entries is returned
// joined; the others are taken.
func (m *Manager) Reconcile(wanted []Peer, now time.Time) error {
	t := m.advance(now)
	m.gen++
	var errs []error
	refused := 0
	for _, p := range merged(wanted, &errs) {
		s := m.byKey[p.index()]
		switch {
		case s != nil && s.gen == m.gen:
			errs = append(errs, &ConfigError{"BFD session to " + p.Key.String(), "wanted with two local addresses", "one session on an interface"})
			m.counters.Refused++
		case s != nil:
			s.gen = m.gen
			if s.lingers != never || !s.peer.equal(&p) {
				s.reconfigure(p, t)
			}
		case len(m.byDiscr) >= m.cfg.MaxSessions:
			refused++
		default:
			m.add(p, t)
		}
	}
	for _, s := range m.sorted() {
		if s.gen != m.gen && s.lingers == never {
			m.retire(s, t)
		}
	}
	m.counters.Refused += uint64(refused + len(errs))
	if refused > 0 {
		errs = append(errs, &LimitError{refused, m.cfg.MaxSessions})
	}
	return errors.Join(errs...)
}

// merged gives the valid entries in order of their keys, each key once.
func merged(wanted []Peer, errs *[]error) []Peer {
	list := make([]Peer, 0, len(wanted))
	for _, p := range wanted {
		if err := p.Validate(); err != nil {
			*errs = append(*errs, err)
			continue
		}
		p.Key, p.Timers = p.canonical(), p.Timers.withDefaults()
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b Peer) int { return compareKeys(&a.Key, &b.Key) })
	out := list[:0]
	for _, p := range list {
		if n := len(out); n > 0 && out[n-1].Key == p.Key {
			last := &out[n-1]
			last.Timers = last.Timers.Larger(p.Timers)
			last.AdminDown = last.AdminDown || p.AdminDown
			last.Passive = last.Passive && p.Passive
			last.MinTTL = max(last.MinTTL, p.MinTTL)
			if last.Auth == nil {
				last.Auth = p.Auth
			}
			continue
		}
		out = append(out, p)
	}
	return out
}

func compareKeys(a, b *Key) int {
	hops := func(k *Key) int {
		if k.Multihop {
			return 1
		}
		return 0
	}
	return cmp.Or(a.Peer.Compare(b.Peer), cmp.Compare(a.Interface, b.Interface), cmp.Compare(hops(a), hops(b)), a.Local.Compare(b.Local))
}

// sorted gives the sessions in order of their keys.
func (m *Manager) sorted() []*session {
	list := make([]*session, 0, len(m.byDiscr))
	for _, s := range m.byDiscr {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *session) int { return compareKeys(&a.peer.Key, &b.peer.Key) })
	return list
}

// onInterface gives the single-hop sessions bound to an interface.
func (m *Manager) onInterface(ifname string) []*session {
	if ifname == "" {
		return nil
	}
	var list []*session
	for _, s := range m.byDiscr {
		if s.peer.Interface == ifname && !s.peer.Multihop {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *session) int { return compareKeys(&a.peer.Key, &b.peer.Key) })
	return list
}

func (m *Manager) add(p Peer, now instant) {
	discr := m.discrs.take(func(n uint32) bool { return m.byDiscr[n] != nil })
	s := newSession(m, p, discr, now)
	s.gen = m.gen
	m.byDiscr[discr] = s
	m.byKey[p.index()] = s
	s.due = s.earliest()
	m.timers.Put(s, int64(s.due))
}

// retire takes a session down with AdminDown and keeps it for one detection time of
// the peer, so that the peer does not take our silence for a fault (RFC 5880 section
// 6.8.16). A session that nobody answers ends at once.
func (m *Manager) retire(s *session, now instant) {
	s.setState(StateAdminDown, DiagAdminDown, now)
	if s.remoteDiscr == 0 {
		m.drop(s)
		return
	}
	s.lingers = now + instant(s.detectMult)*s.interval()
	s.schedule(now)
	s.flush(now)
}

// drop forgets a session.
func (m *Manager) drop(s *session) {
	m.timers.Remove(s)
	delete(m.byDiscr, s.localDiscr)
	delete(m.byKey, s.peer.index())
	m.gone = append(m.gone, s.localDiscr)
}

// Shutdown takes all sessions down with AdminDown, so that peers see no fault when
// this device stops on purpose. The packets are in Sends.
func (m *Manager) Shutdown(now time.Time) {
	t := m.advance(now)
	for _, s := range m.sorted() {
		s.setAdmin(true, t)
		s.flush(t)
	}
}
