package inof

import (
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// words is who said a record: for each reflector the session in which it last did,
// 0 if it does not say it.
type words [MaxReflectors]uint32

// claim is what is known of a host or fault record beside its content. Of two
// reflectors the newer word counts, by the stamp of the device whose record it is:
// an old word never takes the place of a newer one.
type claim struct {
	said  words
	stamp Stamp // of the newest word
	by    uint8 // who said it
	// stands is what is known of the zones of each reflector that does not say the host, 0:
	// nothing. One of which a reflector said that it is in no zone of this device, the
	// default zone included, is in a zone that this device does not know.
	stands [MaxReflectors]Standing
	asked  bool // the reflectors are asked: their answers keep stands up to date
	void   bool // nobody with a session says it, or it is an old word about what the device has withdrawn since
	quiet  bool // void, and in force again when a silent reflector comes back and still says it
}

// word is what one reflector says about a record now.
type word struct {
	from  int
	stamp Stamp     // of the record's device; zero: not known
	own   bool      // the device itself says so, the reflector only passes it on
	at    time.Time // for tombs
}

// older tells whether w was overtaken by what another reflector said before.
func (w word) older(c *claim) bool {
	return int(c.by) != w.from && w.stamp.Before(c.stamp)
}

// newer tells whether w comes after everything that was said before.
func (w word) newer(c *claim) bool { return w.own && c.stamp.Before(w.stamp) }

func (c *claim) hear(w word, gen uint32) {
	c.said[w.from] = gen
	if !c.asked {
		c.stands[w.from] = 0
	}
	if !w.older(c) {
		c.stamp, c.by = w.stamp, uint8(w.from)
	}
}

// tomb is a record that its device has withdrawn. A reflector that has not heard
// of it yet must not bring the record back.
type tomb struct {
	stamp Stamp
	by    int
	at    time.Time
}

// tombTime is how long a withdrawal is remembered: longer than any reflector that
// lost the device keeps its records, unless its grace time is extraordinary.
const tombTime = 10 * time.Minute

type tombs[K comparable] struct {
	m    map[K]tomb
	trim int // length at which old ones are dropped
}

func (ts *tombs[K]) put(k K, w word) {
	if ts.m == nil {
		ts.m = map[K]tomb{}
	}
	if ts.bars(k, w) {
		return // an earlier withdrawal, heard late from another reflector, changes nothing
	}
	ts.m[k] = tomb{w.stamp, w.from, w.at}
	if len(ts.m) < max(ts.trim, 1024) {
		return
	}
	for k, t := range ts.m {
		if w.at.Sub(t.at) > tombTime {
			delete(ts.m, k)
		}
	}
	ts.trim = 2 * len(ts.m)
}

// bars tells whether a word is older than the withdrawal of its record.
func (ts *tombs[K]) bars(k K, w word) bool {
	t, ok := ts.m[k]
	return ok && t.by != w.from && w.stamp.Before(t.stamp) && w.at.Sub(t.at) <= tombTime
}

// held tells whether a reflector that counts still says the record. A silent one
// does not: it would keep what another one knows to be gone.
func (l *learned) held(c *claim) bool {
	for j := range l.sources {
		s := &l.sources[j]
		if s.up && c.said[j] >= s.valid && c.said[j] != 0 {
			return true
		}
	}
	return false
}

// settled is what becomes of a record after a word.
type settled uint8

const (
	unchanged settled = iota
	current           // the word is to be taken
	removed           // the record is gone, and nobody says it any more
	voided            // it is gone, but a word about it stands
)

// putClaim takes a put: known tells whether the record is there, void or not.
func (l *learned) putClaim(c *claim, known, barred bool, w word) settled {
	gen := l.sources[w.from].gen
	if !known {
		*c = claim{stamp: w.stamp, by: uint8(w.from), void: barred}
		c.said[w.from] = gen
		if barred {
			return unchanged
		}
		return current
	}
	old := w.older(c)
	c.hear(w, gen)
	if c.void {
		c.void, c.quiet = barred, false
		if barred {
			return unchanged
		}
		return current
	}
	if old {
		return unchanged
	}
	return current
}

// withdrawClaim takes a withdrawal; zoned tells that only the zones have changed,
// so that the record may exist for others.
func (l *learned) withdrawClaim(c *claim, zoned bool, w word) settled {
	c.said[w.from] = 0
	switch s := &c.stands[w.from]; {
	case zoned && l.joins(w.from):
		*s = StandingZoned
	case c.asked:
	case zoned:
		*s = 0
	default: // it does not know the host any more: its word about the zones stands
		*s = standingPresumed
	}
	said := c.said != words{}
	switch {
	case c.void && said:
		if !zoned && w.newer(c) {
			c.stamp, c.by, c.quiet = w.stamp, uint8(w.from), false
		}
		return unchanged
	case c.void:
		return removed
	case !zoned && w.newer(c):
		c.stamp, c.by, c.void = w.stamp, uint8(w.from), said
		if said {
			return voided
		}
		return removed
	case l.held(c) || said && w.older(c):
		return unchanged
	case said:
		c.void, c.quiet = true, true
		return voided
	}
	return removed
}

// revive brings back what reflector i still says after its session has resumed, and
// what was withdrawn while it was silent because nobody else said it.
func (l *learned) revive(i int, a *Applied) {
	for k, e := range l.hosts {
		if e.said[i] == 0 {
			continue
		}
		if !e.asked {
			e.stands[i] = 0
		}
		if e.void && e.quiet {
			e.void, e.quiet = false, false
			a.Hosts = append(a.Hosts, HostRecord{Op: Put, Host: e.rec})
		}
		if !e.void {
			a.Placed = append(a.Placed, k)
		}
	}
	for _, e := range l.faults {
		if e.void && e.quiet && e.said[i] != 0 {
			e.void, e.quiet = false, false
			r := e.rec
			r.Op = Put
			a.Faults = append(a.Faults, r)
		}
	}
}

func (l *learned) host(w word, r *HostRecord, a *Applied) {
	k := r.Host.HostKey
	defer l.reask(k, w.at)
	e := l.hosts[k]
	if r.Op == Put {
		known := e != nil
		if !known {
			e = &learnedHost{}
			l.hosts[k] = e
		}
		void := known && e.void
		e.hearClaim(w.from, r.Host.Claim)
		if e.said[w.from] != l.sources[w.from].gen {
			a.Placed = append(a.Placed, k)
		}
		took := l.putClaim(&e.claim, known, l.goneHosts.bars(k, w), w) == current
		said := *r
		said.Host.Claim = e.rec.Claim
		if !known {
			said.Host.Claim = l.claims(e)
		}
		if took && (!known || void || !sameHost(&e.rec, &said.Host)) {
			said.Host.Claim = l.claims(e)
			a.Hosts = append(a.Hosts, said)
			e.rec = said.Host
		} else if !known {
			e.rec = said.Host
		}
		l.claim(e, a, w.at)
		if l.overruled(w.from, &e.claim) {
			l.doubted(w.from, k)
		}
		return
	}
	if w.own && r.Why != snsd.ReasonZoneChanged && len(l.sources) > 1 {
		l.goneHosts.put(k, w)
	}
	if e == nil {
		return
	}
	was := e.void
	switch l.withdrawClaim(&e.claim, r.Why == snsd.ReasonZoneChanged, w) {
	case removed:
		delete(l.hosts, k)
		delete(l.disputes, k)
	case voided:
	default:
		switch {
		case was:
		case l.denials(&e.claim):
			a.Denied = append(a.Denied, k)
		case l.owed(&e.claim) || l.unsure(&e.claim):
			a.Doubted = append(a.Doubted, k)
		}
		l.doubted(w.from, k)
		l.claim(e, a, w.at)
		return
	}
	if !was {
		a.Hosts = append(a.Hosts, HostRecord{Op: Withdraw, Host: zone.Host{HostKey: k}, Why: r.Why})
	}
}

func (l *learned) fault(w word, r *FaultRecord, a *Applied) {
	k := portKey{r.Device, r.Port}
	e := l.faults[k]
	if r.Op == Put {
		known := e != nil
		if !known {
			e = &learnedFault{}
			l.faults[k] = e
		}
		void := known && e.void
		barred := l.goneFaults.bars(k, w) || l.overtaken(w.from, w.stamp, e, r)
		if l.putClaim(&e.claim, known, barred, w) == current && (!known || void || !sameFault(&e.rec, r)) {
			a.Faults = append(a.Faults, *r)
			e.rec = *r
		} else if !known {
			e.rec = *r
		}
		return
	}
	if w.own && r.Why != snsd.ReasonZoneChanged && len(l.sources) > 1 {
		l.goneFaults.put(k, w)
	}
	if e == nil {
		return
	}
	was := e.void
	switch l.withdrawClaim(&e.claim, r.Why == snsd.ReasonZoneChanged, w) {
	case removed:
		delete(l.faults, k)
	case voided:
	default:
		return
	}
	if !was {
		a.Faults = append(a.Faults, FaultRecord{Op: Withdraw, Device: r.Device, Port: r.Port})
	}
}

// overtaken tells whether another reflector knows that a fault is over: it says the hosts of
// the fault as of a later state of their device, and not the fault. So a client that
// has just started, and heard of no withdrawal, does not take the words of a reflector
// that lags behind for news.
func (l *learned) overtaken(from int, stamp Stamp, e *learnedFault, r *FaultRecord) bool {
	for j := range l.sources {
		if j != from && e.said[j] == 0 && l.knowsOver(j, stamp, r) {
			return true
		}
	}
	return false
}

// knowsOver tells whether reflector j, which does not say a fault, says all its hosts
// as of a state later than the stamp.
func (l *learned) knowsOver(j int, stamp Stamp, r *FaultRecord) bool {
	s := &l.sources[j]
	if !s.up || !s.synced || !stamp.Before(s.states[r.Device]) {
		return false
	}
	for _, addr := range r.Addrs {
		h := l.hosts[zone.HostKey{Addr: addr, Device: r.Device, Port: r.Port}]
		if h == nil || h.said[j] == 0 || h.said[j] < s.valid {
			return false
		}
	}
	return true
}

// correct withdraws the faults of which reflector i, whose sync is complete, knows
// that they are over.
func (l *learned) correct(i int, a *Applied) {
	for _, e := range l.faults {
		if !e.void && e.said[i] == 0 && l.knowsOver(i, e.stamp, &e.rec) {
			e.void, e.quiet = true, false
			a.Faults = append(a.Faults, FaultRecord{Op: Withdraw, Device: e.rec.Device, Port: e.rec.Port})
		}
	}
}
