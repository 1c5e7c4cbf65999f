package hostnotify

import "github.com/openinof/inof/snsd"

// step is what follows when what is true is compared with what a host was told.
type step uint8

const (
	stand step = iota // it knows, or will when the notice under way arrives; one that was told nothing is forgotten
	tell              // it is to be told
	hold              // nothing that waits may be told, or repeated, before the truth is known
)

// difference compares what is true with what the host was told, and gives what it is to be
// told where that is the step.
func (p *pair) difference(is truth) (step, verdict) {
	was := &p.told
	replaced := was.service.ReplacedBy(*p.subj.service) || was.holder != p.subj.holder
	switch {
	case is.open:
		return hold, verdict{}
	case !is.isActive() && was.none(): // the host never heard of it
		return stand, verdict{}
	case !is.isActive() && (was.isActive() || escalates(was.reason, is.reason)):
		return tell, is.verdict
	case !is.isActive() && p.rises(is):
		return tell, was.verdict
	case !is.isActive():
		return stand, verdict{}
	case was.none():
		return tell, active
	case removes(was.verdict) && !was.acked && p.flight.tries < orderTries && (replaced || was.reason == snsd.ReasonIPChanged):
		return stand, verdict{} // the old one first; its ack brings us back here, or that none comes
	case replaced && !removes(was.verdict):
		return tell, inactive(snsd.ReasonIPChanged)
	case was.isActive() && *was.service == *p.subj.service && !p.waits.again:
		return stand, verdict{}
	}
	return tell, active
}

// judge takes one pair from what is true to what is done. again: the host has asked.
func (n *Notifier) judge(p *pair, v *view, share bool, by *cause, again bool) {
	if p.sub.yields() {
		return // payBack compares everything
	}
	if again {
		n.owe(p)
	}
	n.unkeep(p)
	is := n.truth(p.sub, p.subj, v, share)
	if !is.open {
		p.ended = is.over
	}
	switch step, v := p.difference(is); step {
	case tell:
		n.tell(p, v, by)
	case hold:
		n.hold(p)
	default:
		n.stand(p)
	}
}

// owe notes that a host has asked (again) and is to be told once more of a subject
// that it was told is active, as soon as that is true. A notice under way is its own
// answer: it is repeated until the host acks it, and at once if it left a time-out ago or
// earlier, since whoever asks may have come after it. One that left since is the answer.
func (n *Notifier) owe(p *pair) {
	switch {
	case p.waits.again || !p.told.isActive() || p.told.at > p.sub.asked:
	case !p.flight.on:
		p.waits.again = true
		n.keepPair(p)
	case p.flight.in != nil && p.flight.left+n.wait(p.flight.with) <= n.now:
		n.again(p)
		n.arm(p.flight.with)
	}
}

// tell queues v. What is under way of an earlier verdict is not retried.
func (n *Notifier) tell(p *pair, v verdict, by *cause) {
	if p.waits.class.isNew() {
		if p.waits.verdict == v {
			return
		}
		n.counters.Cancelled++
	}
	n.supersede(p)
	n.unqueue(p)
	p.waits.verdict, p.waits.by, p.waits.since, p.waits.life = v, by, n.now, p.sub.life
	if p.sub.out == nil {
		p.waits.life--
	}
	n.counters.Decided++
	n.enqueue(p, newClass(v))
}

// stand takes back what is queued: what was told is repeated until it is acked, and
// then forgotten if there is nothing more to say.
func (n *Notifier) stand(p *pair) {
	n.cancel(p)
	n.resume(p)
	n.settle(p)
}

// hold is for what may not have been learned yet: only an active notice for which there
// is no ground now is held back, and one under way is not repeated before there is.
func (n *Notifier) hold(p *pair) {
	if p.waits.class.isNew() && p.waits.isActive() {
		owed := p.waits.again
		if n.cancel(p); p.told.none() {
			return // forgotten; it is told as something new
		}
		p.waits.again = owed
	}
	if p.told.isActive() {
		n.supersede(p)
	}
}

// cancel takes back what is queued. A pair of which nothing was told is forgotten.
func (n *Notifier) cancel(p *pair) {
	if p.waits.class.isNew() {
		n.unqueue(p)
		n.counters.Cancelled++
		n.resume(p)
	}
	if p.waits.again {
		p.waits.again = false
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
	case p.heard != nil: // observed: what the host has really heard is not at its end
	case !p.ended || !p.told.acked || p.waits.class != idle || p.told.none() || p.told.isActive():
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
