package hostnotify

import (
	"math"
	"slices"
	"time"

	"github.com/openinof/inof/internal/timerheap"
	"github.com/openinof/inof/snsd"
)

// This file decides when a notice that was not acked is repeated. The host agent serves its
// notices one by one, in the order in which they came, and does not suppress repeated ones: each is
// a task like a new one, so that repeating what merely waits in its queue makes it slower still.
//
//   - A notice is lost when one that left later was acked: it is repeated at once.
//   - A host that acks nothing for Config.FirstRetry, and for twice its longest pause before an ack
//     since it was idle, has lost the oldest ones: at most repeatBurst of them are repeated. While
//     it acks nothing that time doubles, up to Config.MaxRetry. A burst is one frame's worth: a lost
//     frame is repaired at once, a stalled host gets little more.
//   - An active notice is repeated so once; from then on every Config.RepeatActive: the
//     agent connects a while (3 s) after the last one, so more would keep it from that.
//   - With each time-out a frame's worth of news may leave too, however much is under way: a
//     host whose acks are lost is told all the same, and what waits for a host that
//     hears nothing is not for its neighbours to fill.
//   - Of what a time-out lets out, repeated or new, each device's oldest goes first: one that has
//     much to say of its hosts keeps nobody waiting for what others say of theirs, see Unheard.
//
// TestRetriesAreNeverWorseThanAFixedTwoSeconds compares this with the plainest rule.
const (
	repeatBurst = 32
	// orderTries is how often that the old service of an address is gone is repeated before
	// its new one is told without an ack: after 0.62 s by the defaults.
	orderTries = 4
)

// agent is the account of one machine on one port: its addresses share one queue there.
type agent struct {
	timerheap.Place[agent] // among those with notices under way
	addrs                  int
	ext                    snsd.Extensions // that it has announced

	fresh   pairList // under way, in the order they left
	patient pairList // active ones that were repeated, in the same order
	acked   stamp    // when the last ack came
	expired stamp    // when nothing had come for a time-out
	pause   stamp    // the longest time without an ack that one ended, since nothing was under way
	shift   uint8    // time-outs since the last ack
	beyond  int      // more of them than the window, let out since then by time-outs
}

// Ahead implements timerheap.Entry: whose repetition goes first does not matter.
func (a *agent) Ahead(*agent) bool { return false }

// wait is how long the host may ack nothing.
func (n *Notifier) wait(a *agent) stamp {
	most := stamp(n.cfg.MaxRetry)
	return min(max(stamp(n.cfg.FirstRetry), 2*min(a.pause, most))<<a.shift, most)
}

// depart notes that a notice is in the frame that is being built.
func (n *Notifier) depart(p *pair) {
	p.flight.with, p.flight.left = p.sub.out.agent, n.now
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
		due = max(p.flight.left, a.acked, a.expired) + n.wait(a)
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
	wait, out := n.wait(a), false
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
			for c := newInactive; c <= newActive; c++ {
				list := n.inTurns(&s.waiting[c], math.MaxInt64)
				s.waiting[c] = pairList{}
				for _, p := range list {
					s.waiting[c].push(p)
				}
			}
		}
		n.room(p.sub)
	}
	if p := a.fresh.head; p != nil && max(p.flight.left, a.acked, a.expired)+wait <= n.now {
		a.expired = n.now
		a.shift = min(a.shift+1, 16)
		list := n.inTurns(&a.fresh, n.now-wait)
		for _, p := range list[:min(len(list), repeatBurst)] {
			repeat(p)
		}
	}
	for p := a.patient.head; p != nil && p.flight.left+stamp(n.cfg.RepeatActive) <= n.now; p = a.patient.head {
		repeat(p)
	}
	n.arm(a)
}

// inTurns lists what a list holds that left no later than a time, each device's oldest first.
func (n *Notifier) inTurns(l *pairList, left stamp) []*pair {
	var first, more []*pair
	clear(n.devices)
	for p := l.head; p != nil && p.flight.left <= left; p = p.next {
		if _, seen := n.devices[p.subj.device]; seen {
			more = append(more, p)
		} else {
			n.devices[p.subj.device] = struct{}{}
			first = append(first, p)
		}
	}
	return append(first, more...)
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
func (n *Notifier) heard(p *pair) {
	a := p.flight.with
	if a == nil { // told before a restart, and not repeated yet
		return
	}
	if p.flight.tries == 0 { // else it may be the first one that was acked
		for q := a.fresh.head; q != nil && q.flight.left < p.flight.left; q = a.fresh.head {
			n.again(q)
		}
	}
	a.pause = max(a.pause, n.now-max(p.told.at, a.acked))
	a.acked, a.shift, a.beyond = n.now, 0, 0
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
	if a := p.flight.with; a != nil {
		if a.fresh.head == nil && a.patient.head == nil {
			a.pause = 0
		}
		n.arm(a)
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
