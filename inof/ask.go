package inof

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/zone"
)

// This file is the client's side of standings. A client gets only the hosts of zones
// that concern it, so that a reflector which does not say a host may not know it, or
// have it in a zone elsewhere. Where another reflector says the host, the first is
// asked. claim.stands has, for each reflector that is silent about a host, what follows:
//
//	0                 nothing is known: the host is not in the default zone
//	standingPresumed  it has had no say until now: the host stays in the default zone
//	                  if it is there, and does not come there
//	StandingFree      by its answer, the host is in no zone
//	StandingZoned     by its answer, or as it withdrew the host for its zones or left it out
//	                  of a full sync, the host is in a zone elsewhere, and not in the default zone
//
// Presumed becomes a reflector whose session begins, or that withdraws a host which it knows
// no more. Before the first sync is complete hosts are told nothing, and presumed is as 0.
//
// Silent is also a reflector that has said the host in a former session alone, until its
// End-of-Sync: the full sync that is under way may have left the host out, and a
// reflector that has lost its state ends it after minutes.

const (
	// askDelay is how long another reflector may say a host too before it is asked: it
	// hears of the same change a moment earlier or later.
	askDelay = 100 * time.Millisecond
	// bulkQuiet is how long after the last part of a full sync a reflector is asked, if
	// its End-of-Sync does not come before: it may be about to say the host.
	bulkQuiet = time.Second
)

// asking is what a client has asked, or is about to ask.
type asking struct {
	able    map[netip.Addr]struct{} // reflectors that answer
	asked   map[zone.HostKey]string // with the NQN that was named
	pending map[zone.HostKey]struct{}
	dirty   map[zone.HostKey]struct{} // to be told to the reflectors by the next Flush
	due     time.Time                 // of those that are pending
}

func newAsking() asking {
	return asking{
		able: map[netip.Addr]struct{}{}, asked: map[zone.HostKey]string{},
		pending: map[zone.HostKey]struct{}{}, dirty: map[zone.HostKey]struct{}{},
	}
}

// SetAnswers says whether a reflector answers questions about hosts (CapStandings in
// its Open). It is to be called before Resume.
func (c *Client) SetAnswers(reflector netip.Addr, on bool) {
	if on {
		c.learned.ask.able[reflector] = struct{}{}
	} else {
		delete(c.learned.ask.able, reflector)
	}
}

// silent tells whether the zones of a reflector, which does not say a host, may have it
// elsewhere: it can be asked, and no other member of its cluster speaks for it (overruled
// tells when that one may not).
func (l *learned) silent(j int, c *claim) bool {
	if _, able := l.ask.able[l.sources[j].id]; !able || l.everything || c.said[j] != 0 && !l.lags(j, c) {
		return false // who knows all zones need not ask
	}
	for k := range l.sources {
		if k != j && c.said[k] != 0 && l.voice(j, k) {
			return false
		}
	}
	return true
}

// lags tells whether the word of a reflector is of a former session, and its present or
// last one has not confirmed it. Before the first sync is complete there is no doubt of it:
// a host of which local ones were told before this start would leave the default zone.
func (l *learned) lags(j int, c *claim) bool {
	return l.live && c.said[j] != 0 && c.said[j] < l.sources[j].valid
}

// wants tells whether somebody has to be asked about a host.
func (l *learned) wants(c *claim) bool {
	if c.void || !l.autoJoins() {
		return false
	}
	for j := range l.sources {
		if s := &l.sources[j]; (s.up || s.heard) && l.silent(j, c) {
			return true
		}
	}
	return false
}

// stood tells whether s is what is known of a reflector with a session that is silent
// about a host.
func (l *learned) stood(c *claim, s Standing) bool {
	for j := range l.sources {
		if l.sources[j].up && c.stands[j] == s && l.silent(j, c) {
			return true
		}
	}
	return false
}

// unsure tells whether a reflector with a session may have a host in a zone that does not
// concern this device. What is presumed counts for known once hosts were told things that a
// wrong guess could end.
func (l *learned) unsure(c *claim) bool {
	return l.stood(c, 0) || !l.live && l.stood(c, standingPresumed)
}

// owed tells whether a reflector with a session has yet to confirm what is presumed of a host.
func (l *learned) owed(c *claim) bool { return l.stood(c, standingPresumed) && l.wants(c) }

// Owed tells whether a reflector has yet to answer about a host that is presumed to be in
// no zone: one that is kept out of the default zone stays so.
func (c *Client) Owed(k zone.HostKey) bool {
	e := c.learned.hosts[k]
	return e != nil && c.learned.owed(&e.claim)
}

// questioning tells whether the first sync has to wait for an answer.
func (l *learned) questioning() bool {
	waits := func(k zone.HostKey) bool {
		e := l.hosts[k]
		return e != nil && !e.void && l.unsure(&e.claim)
	}
	for k := range l.ask.pending {
		if waits(k) {
			return true
		}
	}
	for k := range l.ask.asked {
		if waits(k) {
			return true
		}
	}
	return false
}

// presume is for the begin of a session: of hosts about which the reflector has no word
// the others decided until now, and do so until it has been asked. Its words of before
// stand, but do not bring a host into the default zone.
func (l *learned) presume(i int) {
	for _, e := range l.hosts {
		if e.stands[i] == 0 || e.said[i] != 0 {
			e.stands[i] = standingPresumed
		}
	}
}

// infer is for the end of a full sync of reflector i, which left out hosts that it has not
// answered for. Where it says others of the same device, as of that state or a later one,
// it knows the host too, and has it in a zone elsewhere.
func (l *learned) infer(i int, a *Applied) {
	s := &l.sources[i]
	if len(l.sources) < 2 || !l.autoJoins() {
		return
	}
	said := map[netip.Addr]struct{}{}
	for k, e := range l.hosts {
		if e.said[i] == s.gen {
			said[k.Device] = struct{}{}
		}
	}
	for k, e := range l.hosts {
		_, there := said[k.Device]
		at := s.states[k.Device]
		if !there || !at.Known() || !e.stamp.Known() || at.Before(e.stamp) || e.stands[i] != standingPresumed || !l.silent(i, &e.claim) {
			continue
		}
		e.stands[i] = StandingZoned
		if !e.void && l.denials(&e.claim) {
			a.Denied = append(a.Denied, k)
		}
	}
	slices.SortFunc(a.Denied, compareKeys)
}

// autoJoins tells whether auto-join is in force.
func (l *learned) autoJoins() bool { return l.settings != nil && l.settings.AutoJoin }

// joined follows a change of auto-join. When it comes into force nobody is in the default
// zone yet, so that who has no word need not have the others' decision stand.
func (l *learned) joined(was bool, a *Applied, now time.Time) {
	joins := l.autoJoins()
	if joins == was {
		return
	}
	for k, e := range l.hosts {
		for j := range e.stands {
			if e.stands[j] == standingPresumed {
				e.stands[j] = 0
			}
		}
		if joins && !e.void && l.unsure(&e.claim) {
			a.Doubted = append(a.Doubted, k)
		}
	}
	slices.SortFunc(a.Doubted, compareKeys)
	l.reaskAll(now, -1)
}

// reask follows a change of who says a host.
func (l *learned) reask(k zone.HostKey, now time.Time) {
	q := &l.ask
	if len(l.sources) < 2 && len(q.asked) == 0 {
		return
	}
	e := l.hosts[k]
	nqn, asked := q.asked[k]
	switch {
	case e == nil || !l.wants(&e.claim):
		delete(q.pending, k)
		if asked {
			delete(q.asked, k)
			q.dirty[k] = struct{}{}
		}
		if e != nil {
			e.unasked()
		}
	case !asked || nqn != e.rec.NQN:
		if len(q.pending) == 0 {
			q.due = now.Add(askDelay)
		}
		q.pending[k] = struct{}{}
	}
}

// unasked ends a question: an answer that is not kept up to date any more is presumed.
func (c *claim) unasked() {
	c.asked = false
	for j := range c.stands {
		if c.stands[j] == StandingFree {
			c.stands[j] = standingPresumed
		}
	}
}

// reaskAll is reask for all hosts but those that reflector begins, if any, is about to
// repeat; what has to be asked leaves with the next Flush.
func (l *learned) reaskAll(now time.Time, begins int) {
	if len(l.sources) < 2 {
		return
	}
	for k, e := range l.hosts {
		if begins < 0 || !l.lags(begins, &e.claim) {
			l.reask(k, now)
		}
	}
	l.ask.due = now
}

// askAt is when what is pending is to be asked; zero: nothing is. A reflector in the midst of
// its full sync may be about to say the host.
func (l *learned) askAt() time.Time {
	if len(l.ask.pending) == 0 {
		return time.Time{}
	}
	at := l.ask.due
	for i := range l.sources {
		if s := &l.sources[i]; s.up && !s.synced && at.Before(s.bulk.Add(bulkQuiet)) {
			at = s.bulk.Add(bulkQuiet)
		}
	}
	return at
}

// put asks what is pending.
func (l *learned) put() {
	q := &l.ask
	for k := range q.pending {
		if e := l.hosts[k]; e != nil && l.wants(&e.claim) {
			e.asked = true
			q.asked[k] = e.rec.NQN
			q.dirty[k] = struct{}{}
		}
	}
	clear(q.pending)
}

// questions empties what is to be told into records.
func (q *asking) questions() []StandingRecord {
	var out []StandingRecord
	for k := range q.dirty {
		out = append(out, q.question(k))
	}
	clear(q.dirty)
	return out
}

// question is the present state of one.
func (q *asking) question(k zone.HostKey) StandingRecord {
	if nqn, asked := q.asked[k]; asked {
		return StandingRecord{Op: Put, Host: k, NQN: nqn}
	}
	return StandingRecord{Op: Withdraw, Host: k}
}

// askBefore has a reflector whose session begins, and that had a word before, asked
// with our own sync, so that its End-of-Sync comes behind the answers. The others get
// the questions as a change. One that is heard for the first time may say the hosts.
func (c *Client) askBefore(reflector netip.Addr, now time.Time) []Delivery {
	l := &c.learned
	i, _ := l.index(reflector)
	l.presume(i)
	l.sources[i].bulk = now
	l.reaskAll(now, i)
	if !l.sources[i].heard {
		return nil
	}
	l.put()
	b := batch{Standings: l.ask.questions()}
	if b.empty() {
		return nil
	}
	b.sort()
	others := slices.DeleteFunc(l.up(), func(id netip.Addr) bool { return id == reflector })
	return c.deliver(&b, others, time.Time{}, now, true)
}

// standing takes an answer of reflector i.
func (l *learned) standing(i int, r *StandingRecord, a *Applied) {
	e := l.hosts[r.Host]
	if e == nil || r.Op != Put || r.State != StandingFree && r.State != StandingZoned {
		return
	}
	e.stands[i] = r.State
	l.doubted(i, r.Host)
	switch {
	case e.void:
	case l.denials(&e.claim):
		a.Denied = append(a.Denied, r.Host)
	default:
		a.Placed = append(a.Placed, r.Host)
	}
}

// unasked is for when a reflector has gone: of hosts about which it is silent the others
// decide now, but for what it has answered.
func (l *learned) unasked(reflector netip.Addr, a *Applied) {
	i, _ := l.index(reflector)
	for k, e := range l.hosts {
		if !e.void && i >= 0 && l.silent(i, &e.claim) {
			a.Placed = append(a.Placed, k)
		}
	}
	slices.SortFunc(a.Placed, compareKeys)
}
