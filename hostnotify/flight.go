package hostnotify

import (
	"slices"
	"time"

	"github.com/openinof/inof/internal/timerheap"
)

// This file decides when a notice that was not acked is repeated. The host agent does
// not suppress repeated notices: each is a task like a new one, so that repeating what
// merely waits in its queue makes it slower still.
//
//   - While acks come, nothing is repeated but what is proven lost: a notice is when one
//     that left lostFrames frames later was acked.
//   - When no ack came for the host's time-out (rto), the oldest notices are repeated, at
//     most repeatBurst of them, and the next time-out is twice as long. A burst is one
//     frame's worth: a lost frame is repaired at once, a stalled host gets little more.
//   - An active notice is repeated so once; from then on every Config.RepeatActive: the
//     agent connects a while (3 s) after the last one, so more would keep it from that.
//   - With each time-out a frame's worth of news may leave too, however much is under way: a
//     host whose acks are lost is told all the same, and what waits for a host that
//     hears nothing is not for its neighbours to fill.
//   - Of what a time-out lets out, repeated or new, each device's oldest goes first: one that has
//     much to say of its hosts keeps nobody waiting for what others say of theirs, see Unheard.
//   - An ack of what was acked before shows that a repetition was needless, and one that is
//     proven lost that there were too many: either halves the window.
const (
	lostFrames  = 3
	repeatBurst = 32
	// orderTries is how often that the old service of an address is gone is repeated before
	// its new one is told without an ack: after 0.62 s by the defaults.
	orderTries = 4
	// minWindow is the smallest window: a host that acks within a few ms still is
	// told thousands a second.
	minWindow = 32
)

// agent is the account of one machine on one port: its addresses share one queue there.
type agent struct {
	timerheap.Place[agent] // among those with notices under way
	addrs                  int

	fresh   pairList // under way, in the order they left
	patient pairList // active ones that were repeated, in the same order
	rto     rto
	acked   stamp // when the last ack came
	expired stamp // when nothing had come for a time-out

	window int    // most notices under way
	beyond int    // more of them, let out since the last ack by time-outs
	credit int    // acks since it last grew
	frames uint32 // that held a notice for it
	inside uint64 // the last of them, by Notifier.frameNo
	shrunk uint32 // frames when the window was last halved
}

// Ahead implements timerheap.Entry: whose repetition goes first does not matter.
func (a *agent) Ahead(*agent) bool { return false }

func (n *Notifier) newAgent() *agent {
	return &agent{rto: newRTO(n.cfg), window: n.cfg.MaxInFlight, acked: never, expired: never}
}

// depart notes that a notice is in the frame that is being built.
func (n *Notifier) depart(p *pair) {
	a := p.sub.out.agent
	if a.inside != n.frameNo {
		a.inside = n.frameNo
		a.frames++
	}
	p.flight.with, p.flight.frame, p.flight.left = a, a.frames, n.now
	n.fly(p)
}

// fly puts a notice under way among those of its agent.
func (n *Notifier) fly(p *pair) {
	p.flight.in = &p.flight.with.fresh
	if p.told.isActive() && p.flight.tries > 0 {
		p.flight.in = &p.flight.with.patient
	}
	if p.flight.in.push(p); p.flight.in.head == p {
		n.arm(p.flight.with)
	}
}

// land takes a notice out of those under way, if it is among them. The timer of its agent
// is the caller's affair.
func (n *Notifier) land(p *pair) {
	if p.flight.in != nil {
		p.flight.in.remove(p)
		p.flight.in = nil
	}
}

// due is when something of the agent is to be repeated; never if nothing is.
func (n *Notifier) due(a *agent) stamp {
	due := never
	if p := a.fresh.head; p != nil {
		due = max(p.flight.left, a.acked, a.expired) + a.rto.timeout()
	}
	if p := a.patient.head; p != nil {
		if d := p.flight.left + stamp(n.cfg.RepeatActive); due == never || d < due {
			due = d
		}
	}
	return due
}

// arm sets the agent's timer.
func (n *Notifier) arm(a *agent) {
	if due := n.due(a); due == never {
		n.retries.Remove(a)
	} else {
		n.retries.Put(a, int64(due))
	}
}

// collectRetries moves to the lists what was not acked in time.
func (n *Notifier) collectRetries() {
	for n.retries.Len() > 0 {
		a, due := n.retries.First()
		if stamp(due) > n.now {
			return
		}
		n.expire(a)
	}
}

func (n *Notifier) expire(a *agent) {
	wait, out := a.rto.timeout(), false
	repeat := func(p *pair) {
		n.again(p)
		if !p.sub.blocked() {
			return
		}
		if !out {
			out = true
			a.beyond += repeatBurst
		}
		if s := p.sub; s.inTurns != n.now {
			s.inTurns = n.now
			n.takeTurns(&s.waiting[newInactive])
			n.takeTurns(&s.waiting[newActive])
		}
		n.room(p.sub)
	}
	if p := a.fresh.head; p != nil && max(p.flight.left, a.acked, a.expired)+wait <= n.now {
		a.expired = n.now
		a.rto.expire()
		for _, p := range n.burst(a, n.now-wait) {
			repeat(p)
		}
	}
	for p := a.patient.head; p != nil && p.flight.left+stamp(n.cfg.RepeatActive) <= n.now; p = a.patient.head {
		repeat(p)
	}
	n.arm(a)
}

// burst gives what is repeated at a time-out of what left no later than that: of each device the
// oldest, and the oldest of all as far as there is room.
func (n *Notifier) burst(a *agent, left stamp) []*pair {
	first, more := make([]*pair, 0, repeatBurst), make([]*pair, 0, repeatBurst)
	clear(n.devices)
	for p := a.fresh.head; p != nil && p.flight.left <= left && len(first) < repeatBurst; p = p.next {
		switch {
		case n.isFirst(p):
			first = append(first, p)
		case len(more) < repeatBurst:
			more = append(more, p)
		}
	}
	return append(first, more[:min(len(more), repeatBurst-len(first))]...)
}

// takeTurns brings the oldest of each device to the front of what waits.
func (n *Notifier) takeTurns(l *pairList) {
	var last *pair // of those at the front
	clear(n.devices)
	for p := l.head; p != nil; {
		next := p.next
		if n.isFirst(p) {
			l.remove(p)
			l.insert(p, last)
			last = p
		}
		p = next
	}
}

// isFirst reports whether p is the first of its device since n.devices was cleared.
func (n *Notifier) isFirst(p *pair) bool {
	_, seen := n.devices[p.subj.device]
	n.devices[p.subj.device] = struct{}{}
	return !seen
}

// Unheard returns how long at most a machine that acks nothing waits for what changes with a host,
// when no more than 24 devices have something to say to it. That the old service of an address is
// gone is repeated orderTries times before its new one is told. If news wait for room, both do so for
// a time-out for each of the machine's addresses; with addrs 0 none do.
func (c Config) Unheard(addrs int) time.Duration {
	return time.Duration(2*addrs+orderTries+1) * c.withDefaults().MaxRetry
}

// again has a notice under way repeated, over another port of the host's if it has one.
func (n *Notifier) again(p *pair) {
	n.land(p)
	n.rotate(p.sub, p.flight.via)
	n.enqueue(p, retryClass(p.told.verdict))
	if removes(p.told.verdict) && !p.ended && p.flight.tries >= orderTries {
		n.overdue = append(n.overdue, p)
	}
}

// heard takes the first ack of what was told last, which is still among those under way. The
// caller takes it out, and sets the timer.
func (n *Notifier) heard(p *pair, at stamp) {
	a := p.flight.with
	if a == nil { // told before a restart, and not repeated yet
		return
	}
	a.rto.shift = 0
	if p.flight.tries > 0 { // of which of them? Karn's algorithm: RFC 6298, 3
		p.flight.doubt = max(0, at-max(p.told.at, a.acked))
	} else {
		a.rto.note(max(0, at-max(p.flight.left, a.acked)), n.now)
		if n.lost(a, p.flight.frame) {
			a.shrink(p.flight.frame)
		}
	}
	a.acked, a.beyond = max(a.acked, min(at, n.now)), 0
	a.grow(n.cfg.MaxInFlight)
}

// lost repeats what left so long before the acked frame that it must be lost.
func (n *Notifier) lost(a *agent, frame uint32) (any bool) {
	for p := a.fresh.head; p != nil && int32(frame-p.flight.frame) >= lostFrames; p = a.fresh.head {
		any = true
		n.again(p)
	}
	return any
}

// needless takes an ack of what was acked before: what the first one answered was the
// notice itself, and the host is slower than was thought.
func (n *Notifier) needless(p *pair) {
	if a := p.flight.with; a != nil && p.flight.tries > 0 {
		a.rto.sample(p.flight.doubt)
		p.flight.doubt = 0
		a.shrink(p.flight.frame)
		n.arm(a)
	}
}

// shrink halves the window, once for all that was under way at a time.
func (a *agent) shrink(frame uint32) {
	if int32(frame-a.shrunk) <= 0 {
		return
	}
	a.shrunk, a.credit = a.frames, 0
	a.window = min(a.window, max(minWindow, a.window/2))
}

// grow widens the window by one for each window of acks.
func (a *agent) grow(most int) {
	if a.credit++; a.credit >= a.window {
		a.credit = 0
		a.window = min(most, a.window+1)
	}
}

// stopRetry ends the retries of a notice under way, in whatever way it ended.
func (n *Notifier) stopRetry(p *pair) {
	if !p.flight.on {
		return
	}
	p.flight.on = false
	n.inFlight--
	p.sub.inFlight--
	n.land(p)
	if p.flight.with != nil {
		n.arm(p.flight.with)
	}
	if p.waits.class == retryInactive || p.waits.class == retryActive {
		n.unqueue(p)
	}
	n.room(p.sub)
}

// supersede ends the retries of a notice that is not true any more.
func (n *Notifier) supersede(p *pair) {
	if p.flight.on {
		n.counters.Superseded++
		n.history.drop(p.told.rec)
		n.stopRetry(p)
	}
}

// resume takes up the retries of a notice that turned out to be still true.
func (n *Notifier) resume(p *pair) {
	if p.told.none() || p.told.acked || p.flight.on || n.observing {
		return
	}
	n.counters.Superseded--
	n.history.undrop(p.told.rec)
	n.launch(p)
	if p.flight.with == nil {
		n.enqueue(p, retryClass(p.told.verdict))
	} else {
		n.fly(p)
	}
}

// launch counts the pair as under way.
func (n *Notifier) launch(p *pair) {
	if p.sub.inFlight == 0 {
		p.sub.heard = n.now
	}
	p.flight.on = true
	n.inFlight++
	p.sub.inFlight++
}

// remove forgets a pair, whatever is queued or under way.
func (n *Notifier) remove(p *pair) {
	if p.flight.on {
		n.counters.GivenUp++
		n.history.giveUp(p.told.rec)
	}
	n.stopRetry(p)
	n.unqueue(p)
	n.unkeep(p)
	n.keepPair(p)
	if n.unlink(p) {
		n.keepSubject(p.subj)
	}
}

// rotate moves s to its next usable link, after a notice sent on p stayed unanswered. What is
// repeated at one moment goes the way of the first: another one would turn it back to p.
func (n *Notifier) rotate(s *subscriber, p *port) {
	if len(s.links) < 2 || s.out == nil || s.rotated == n.now {
		return
	}
	s.rotated = n.now
	if s.out.port != p {
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

// unkeep takes a pair out of those that are kept although their subject is gone.
func (n *Notifier) unkeep(p *pair) {
	if p.kept {
		p.kept = false
		n.gone.remove(p)
		n.kept--
	}
}
