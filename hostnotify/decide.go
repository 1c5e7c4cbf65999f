package hostnotify

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// verdict is what a host was told, or should be told, of a subject. The zero value is
// nothing at all.
type verdict struct {
	said   bool
	state  snsd.State
	reason snsd.Reason
}

var active = verdict{said: true, state: snsd.Active}

func inactive(r snsd.Reason) verdict { return verdict{said: true, state: snsd.Inactive, reason: r} }

func (v verdict) none() bool     { return !v.said }
func (v verdict) isActive() bool { return v.said && v.state == snsd.Active }

// keepAlive tells whether the host agent answers this reason by keep-alive commands
// only, leaving the controller in place.
func keepAlive(r snsd.Reason) bool { return !r.Disconnects() }

// escalates tells whether a host that was told inactive for the reason was must be
// told is as well (see the package comment).
func escalates(was, is snsd.Reason) bool {
	return keepAlive(was) && (is == snsd.ReasonZoneChanged || is == snsd.ReasonIPChanged)
}

// subject is an address of which some local host was told, or is about to be.
type subject struct {
	addr    netip.Addr
	service *snsd.Service // the last known one; what it points at does not change
	why     snsd.Reason   // of its withdrawal, while it is not known
	moves   uint32        // as the Directory counted last
	holder  uint32        // number of the holder that has the address, as far as is known here
	pairs   []*pair
	// row: there is one of it among the rows; unkept: it has changed since.
	row, unkept bool
}

// pair is one local host and one subject.
type pair struct {
	sub  *subscriber
	subj *subject
	atS  int32 // index in subj.pairs
	atL  int32 // index in sub.list

	told    verdict       // last put on the wire
	service *snsd.Service // that the host was told of when it was last told active
	holder  uint32        // the subject's then
	seq     uint32        // of that notice
	acked   bool
	// inFlight: told, not acked, and still true, so it is retried.
	inFlight bool
	ended    bool // nothing more to tell of this pair once the host acked that it is inactive
	kept     bool // ended, but the host keeps trying: in Notifier.gone
	again    bool // to be told although it was told before (a zone query)
	row      bool // there is one of it among the rows
	unkept   bool // it has changed since

	want       verdict // what it waits to be told
	class      class   // the list it waits in
	prev, next *pair
	cause      *cause // of want; nil: no event
	decided    stamp  // of want
	life       uint32 // the subscriber's, then; another one if it could not be told then

	// Of the notice told: what caused it, life then, and when its first frame left;
	// never where that is not known.
	toldBy   *cause
	toldLife uint32
	sent     stamp

	with   *agent    // whose account it went on last; nil: none in this life of the process
	flight *pairList // of that agent's, where it waits for its ack; nil: in none
	last   stamp     // when it left last
	frame  uint32    // agent.frames then
	tries  int32     // retries so far
	via    *port     // the port it went through last
	// doubt is what its ack came after if it answers the first try, which is not known
	// unless another ack follows.
	doubt stamp
	rec   uint64
	mark  uint32
}

// view is what the Directory says about a subject.
type view struct {
	addr   netip.Addr
	known  bool
	state  snsd.State
	reason snsd.Reason
	mac    fabric.MAC
	svc    snsd.Service
	moves  uint32
}

func (n *Notifier) look(addr netip.Addr) view {
	h, ok := n.dir.Host(addr)
	if !ok {
		return view{addr: addr}
	}
	v := view{addr: addr, known: true, mac: h.MAC, svc: h.Service, moves: n.dir.Moves(addr)}
	v.state, v.reason = n.dir.State(addr)
	return v
}

// refresh takes over what is known about a subject itself.
func (n *Notifier) refresh(s *subject, v *view) {
	if !v.known {
		return
	}
	s.why = snsd.ReasonNone
	if v.moves > s.moves { // it begins anew with an address that was not known for a while
		s.holder++
	}
	s.moves = v.moves
	if *s.service == v.svc {
		return
	}
	s.know(v.svc)
	n.keepSubject(s)
	for _, p := range s.pairs {
		n.keepPair(p) // what it was told is another service now
	}
}

func (s *subject) know(svc snsd.Service) {
	if *s.service != svc {
		s.service = &svc
	}
}

// own tells whether the address belongs to the subscriber's own machine.
func (v *view) own(s *subscriber) bool {
	return v.addr == s.addr || (v.known && v.mac == s.mac && !v.mac.IsZero())
}

// changed recomputes all pairs of one address.
func (n *Notifier) changed(ch zone.Change, by *cause) {
	addr, why := ch.Addr.Unmap(), ch.Why
	v := n.look(addr)
	if subj := n.subjects[addr]; subj != nil {
		n.refresh(subj, &v)
		if !v.known && why != snsd.ReasonNone {
			subj.why = why
		}
		for i := len(subj.pairs) - 1; i >= 0; i-- { // backward: judge may remove the pair
			p := subj.pairs[i]
			n.judge(p, &v, v.known && n.dir.Share(p.sub.addr, addr), by, false)
		}
	}
	if v.known && v.state == snsd.Active {
		n.offer(&v, by)
	}
	// A fault of the host's own port alone changes nothing about its peers.
	fromFault := why != snsd.ReasonNone && keepAlive(why)
	if s := n.subs[addr]; s != nil && (ch.Peers || !fromFault) {
		n.meet(s)
		n.recomputeAll(s, by, false)
	}
}

// offer tells an active subject to the local hosts that share a zone with it and were
// not told of it. Of its peers and the local hosts it walks the smaller set.
func (n *Notifier) offer(v *view, by *cause) {
	left := len(n.order)
	for peer := range n.dir.Peers(v.addr) {
		if left--; left < 0 {
			break
		}
		if s := n.subs[peer]; s != nil {
			n.introduce(s, v, by)
		}
	}
	if left >= 0 {
		return
	}
	for _, s := range n.order {
		if s.pairs[v.addr] == nil && n.dir.Share(s.addr, v.addr) {
			n.introduce(s, v, by)
		}
	}
}

// introduce makes the pair of a host and an active subject that shares a zone with it.
func (n *Notifier) introduce(s *subscriber, v *view, by *cause) *pair {
	p := s.pairs[v.addr]
	switch {
	case p != nil || s.yields() || v.state != snsd.Active || v.own(s) || !n.concerns(s, v):
		return p
	case v.addr.Is4() != s.addr.Is4():
		n.counters.FamilyMismatch++
		return nil
	case n.pairs >= n.cfg.MaxPairs || snsd.CheckAddr(v.addr) != nil:
		n.counters.PairsRefused++
		return nil
	}
	p = n.addPair(s, v.addr)
	n.refresh(p.subj, v)
	n.judge(p, v, true, by, false)
	return p
}

// recomputeAll compares everything s was told with the truth, and introduces what is
// new. again asks for active peers to be told once more.
func (n *Notifier) recomputeAll(s *subscriber, by *cause, again bool) {
	n.visit++
	for peer := range n.dir.Peers(s.addr) {
		v := n.look(peer)
		if !v.known {
			continue
		}
		if p := s.pairs[peer]; p != nil {
			p.mark = n.visit
			n.refresh(p.subj, &v)
			n.judge(p, &v, true, by, again)
		} else if p = n.introduce(s, &v, by); p != nil {
			p.mark = n.visit
		}
	}
	for i := len(s.list) - 1; i >= 0; i-- {
		if p := s.list[i]; p.mark != n.visit {
			n.recompute(p, by, again)
		}
	}
}

// recomputeTold compares what s was told with the truth.
func (n *Notifier) recomputeTold(s *subscriber, by *cause) {
	for i := len(s.list) - 1; i >= 0; i-- {
		n.recompute(s.list[i], by, false)
	}
}

func (n *Notifier) recompute(p *pair, by *cause, again bool) {
	v := n.look(p.subj.addr)
	n.refresh(p.subj, &v)
	n.judge(p, &v, v.known && n.dir.Share(p.sub.addr, v.addr), by, again)
}

// judge gives the verdict on one pair and queues, cancels or forgets accordingly.
func (n *Notifier) judge(p *pair, v *view, share bool, by *cause, again bool) {
	if p.sub.yields() {
		return // payBack compares everything
	}
	n.owe(p, again)
	n.unkeep(p)
	switch {
	case !share && p.sub.early:
		n.noNews(p)
	case !v.known && p.subj.why != snsd.ReasonNone:
		n.end(p, p.subj.why, by)
	case v.known && v.own(p.sub):
		n.end(p, snsd.ReasonIPChanged, by)
	case !share && (!n.synced || !n.dir.Known(p.sub.addr)):
		n.noNews(p) // a host that is itself not there is about to be unsubscribed
	case !v.known:
		n.end(p, snsd.ReasonAgedOut, by)
	case !share:
		n.end(p, snsd.ReasonZoneChanged, by)
	case !n.concerns(p.sub, v):
		n.end(p, snsd.ReasonIPChanged, by)
	case p.sub.leaving():
		p.ended = false
		n.wantInactive(p, snsd.ReasonAgedOut, by)
	case v.state == snsd.Active:
		n.wantActive(p, by)
	default:
		p.ended = false
		n.wantInactive(p, v.reason, by)
	}
}

// concerns reports whether a host is to be told of a subject that shares a zone with it:
// not of one of its own role, since neither connects to the other.
func (n *Notifier) concerns(s *subscriber, v *view) bool {
	return n.cfg.AllRoles || s.role.Meets(v.svc.Role)
}

func (n *Notifier) wantActive(p *pair, by *cause) {
	p.ended = false
	replaced := p.service.ReplacedBy(*p.subj.service) || p.holder != p.subj.holder
	switch {
	case p.told.none():
		n.want(p, active, by)
	case removes(p.told) && !p.acked && p.tries < orderTries && (replaced || p.told.reason == snsd.ReasonIPChanged):
		n.cancel(p)
		n.resume(p) // the old one first; its ack brings us back here, or that none comes
	case replaced && !removes(p.told):
		n.want(p, inactive(snsd.ReasonIPChanged), by)
	case p.told.isActive() && *p.service == *p.subj.service && !p.again:
		n.cancel(p)
		n.resume(p)
	default:
		n.want(p, active, by)
	}
}

// removes reports whether the host agent removes the controller for what it was told.
func removes(v verdict) bool { return v.said && v.state == snsd.Inactive && v.reason.Disconnects() }

// owe notes that a host has asked (again) and is to be told once more of a subject
// that it was told is active, as soon as that is true. A notice under way is its own
// answer: it is repeated until the host acks it, and at once if it left a time-out ago or
// earlier, since whoever asks may have come after it.
func (n *Notifier) owe(p *pair, again bool) {
	switch {
	case !again || p.again || !p.told.isActive():
	case !p.inFlight:
		p.again = true
		n.keepPair(p)
	case p.flight != nil && p.last+p.with.rto.timeout() <= n.now:
		n.again(p)
		n.arm(p.with)
	}
}

// noNews is the verdict on a subject that may not have been learned yet: what is
// decided stays, only an active notice for which there is no ground now is held
// back, and one under way is not repeated before there is.
func (n *Notifier) noNews(p *pair) {
	if p.class != idle && p.want.isActive() && p.class.isNew() {
		owed := p.again
		if n.cancel(p); p.told.none() {
			return // forgotten; it is told as something new
		}
		p.again = owed
	}
	if p.told.isActive() {
		n.supersede(p)
	}
}

// end is the verdict on a subject that is gone or shares no zone any more.
func (n *Notifier) end(p *pair, why snsd.Reason, by *cause) {
	p.ended = true
	n.wantInactive(p, why, by)
}

func (n *Notifier) wantInactive(p *pair, why snsd.Reason, by *cause) {
	switch {
	case p.told.none(): // the host never heard of it
		n.cancel(p)
	case p.told.isActive() || escalates(p.told.reason, why):
		n.want(p, inactive(why), by)
	default:
		n.cancel(p)
		n.resume(p)
		n.settle(p)
	}
}

// want queues v to be told. What is under way of an earlier verdict is not retried.
func (n *Notifier) want(p *pair, v verdict, by *cause) {
	if p.class.isNew() {
		if p.want == v {
			return
		}
		n.counters.Cancelled++
	}
	n.supersede(p)
	n.unqueue(p)
	p.want, p.cause, p.decided, p.life = v, by, n.now, p.sub.life
	if p.sub.out == nil {
		p.life--
	}
	n.counters.Decided++
	n.enqueue(p, newClass(v))
}

// cancel takes back what is queued: the host knows the truth, or will when a notice
// under way arrives. A pair of which nothing was told is forgotten.
func (n *Notifier) cancel(p *pair) {
	if p.class.isNew() {
		n.unqueue(p)
		n.counters.Cancelled++
		n.resume(p)
	}
	if p.again {
		p.again = false
		n.keepPair(p)
	}
	if p.told.none() {
		n.remove(p)
	}
}

// settle forgets a pair about which there is nothing more to say. A host that was told
// to keep trying still does so: if the subject comes back in no zone of its, or as
// another machine, it must be told to stop, even if nothing was said of it meanwhile.
func (n *Notifier) settle(p *pair) {
	switch {
	case !p.ended || !p.acked || p.class != idle || p.told.none() || p.told.isActive():
	case keepAlive(p.told.reason):
		n.keepGone(p)
	default:
		n.remove(p)
	}
}

// keepGone keeps a pair whose subject is gone, and forgets the one that is kept for the
// longest time when there are too many.
func (n *Notifier) keepGone(p *pair) {
	p.kept = true
	n.gone.push(p)
	if n.kept++; n.kept > n.cfg.MaxGone {
		n.counters.GoneForgotten++
		n.remove(n.gone.head)
	}
}

func (n *Notifier) unkeep(p *pair) {
	if p.kept {
		p.kept = false
		n.gone.remove(p)
		n.kept--
	}
}

// acked takes the ack of what was told last.
func (n *Notifier) acked(p *pair, at time.Time) {
	if sent := n.time(p.sent); p.sent != never && at.Before(sent) {
		at = sent // the clock was set between the two stamps
	}
	p.acked = true
	p.sub.heard = n.now
	n.counters.Acked++
	n.keepPair(p)
	n.heard(p, n.stamp(at))
	n.stopRetry(p)
	n.history.ack(p.rec, at)
	by := p.toldBy
	n.measureAck(p, n.stamp(at))
	n.settle(p)
	if removes(p.told) && !p.ended {
		n.recompute(p, by, false) // an active notice may have waited for this, see wantActive
	}
}

// answer tells s all its active peers again.
func (n *Notifier) answer(s *subscriber) {
	s.answered, s.queryDue = n.now, never
	n.keepHost(s)
	n.recomputeAll(s, nil, true)
}

func (n *Notifier) addPair(s *subscriber, addr netip.Addr) *pair {
	subj := n.subjects[addr]
	if subj == nil {
		subj = &subject{addr: addr, service: new(snsd.Service)}
		n.subjects[addr] = subj
	}
	p := &pair{sub: s, subj: subj, service: subj.service, holder: subj.holder, atS: int32(len(subj.pairs)), atL: int32(len(s.list)), class: idle, rec: noRecord}
	subj.pairs = append(subj.pairs, p)
	s.list = append(s.list, p)
	s.pairs[addr] = p
	n.pairs++
	return p
}

// remove forgets a pair, whatever is queued or under way.
func (n *Notifier) remove(p *pair) {
	if p.inFlight {
		n.counters.GivenUp++
		n.history.giveUp(p.rec)
	}
	n.stopRetry(p)
	n.unqueue(p)
	n.unkeep(p)
	n.keepPair(p)
	s, subj := p.sub, p.subj
	last := subj.pairs[len(subj.pairs)-1]
	subj.pairs[p.atS], last.atS = last, p.atS
	subj.pairs[len(subj.pairs)-1] = nil
	if subj.pairs = subj.pairs[:len(subj.pairs)-1]; len(subj.pairs) == 0 {
		n.keepSubject(subj)
		delete(n.subjects, subj.addr)
	}
	last = s.list[len(s.list)-1]
	s.list[p.atL], last.atL = last, p.atL
	s.list[len(s.list)-1] = nil
	s.list = s.list[:len(s.list)-1]
	delete(s.pairs, subj.addr)
	n.pairs--
}
