package hostnotify

import (
	"slices"

	"github.com/openinof/inof/snsd"
)

// class orders what waits to be sent on a port; lower goes first.
type class uint8

const (
	newInactive class = iota
	newActive
	retryInactive
	retryActive
	classes = iota
)

// idle marks a pair that waits in no list. It is the last value, so the zero pair is
// made idle by addPair.
const idle class = classes

func (c class) isNew() bool { return c <= newActive }

func newClass(v verdict) class {
	if v.state == snsd.Active {
		return newActive
	}
	return newInactive
}

func retryClass(v verdict) class { return newClass(v) + retryInactive }

// pairList is a first-in first-out list through the pairs themselves: a subject that
// flaps costs no memory, and taking one out of the middle no search.
type pairList struct{ head, tail *pair }

func (l *pairList) push(p *pair) {
	p.prev, p.next = l.tail, nil
	if l.tail == nil {
		l.head = p
	} else {
		l.tail.next = p
	}
	l.tail = p
}

func (l *pairList) remove(p *pair) {
	if p.prev == nil {
		l.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
}

// ring holds the hosts of a port that have something of one class to send; they take turns.
type ring []*subscriber

// leave takes the host out of the ring it is in, if any.
func (s *subscriber) leave(c class) {
	if s.turns[c] {
		s.turns[c] = false
		r := &s.out.port.rings[c]
		i := slices.Index(*r, s)
		*r = slices.Delete(*r, i, i+1)
	}
}

// enter gives s its turn in class c of its port, if it has something to send and room for it.
func (n *Notifier) enter(s *subscriber, c class) {
	if s.out == nil || s.turns[c] || s.waiting[c].head == nil {
		return
	}
	if c.isNew() && s.inFlight >= n.window(s, c) {
		return // room enters it again
	}
	s.turns[c] = true
	s.out.port.rings[c] = append(s.out.port.rings[c], s)
}

// window is how many notices may be under way to s for another one of class c to be
// sent. A quarter is kept for inactive ones.
func (n *Notifier) window(s *subscriber, c class) int {
	w := max(1, (n.cfg.MaxInFlight+s.out.agent.beyond)/max(1, s.out.agent.addrs))
	if c == newActive {
		w -= w / 4
	}
	return w
}

// room is called when fewer notices are under way to s. Only room for a quarter of the
// window counts: else each ack would let out a frame with one notice, until the pace of the
// port forbids more.
func (n *Notifier) room(s *subscriber) {
	for c := newInactive; c <= newActive && s.out != nil; c++ {
		if w := n.window(s, c); w-s.inFlight >= w/4 {
			n.enter(s, c)
		}
	}
}

// blocked reports whether news for the host waits for room.
func (s *subscriber) blocked() bool {
	for c := newInactive; c <= newActive; c++ {
		if s.waiting[c].head != nil && !s.turns[c] {
			return true
		}
	}
	return false
}

// enqueue puts the pair at the end of a list.
func (n *Notifier) enqueue(p *pair, c class) {
	s := p.sub
	p.waits.class = c
	s.waiting[c].push(p)
	if c.isNew() {
		n.waiting++
	}
	n.enter(s, c)
}

// unqueue takes the pair out of the list it waits in.
func (n *Notifier) unqueue(p *pair) {
	if p.waits.class == idle {
		return
	}
	s, c := p.sub, p.waits.class
	s.waiting[c].remove(p)
	p.waits.class = idle
	if c.isNew() {
		n.waiting--
	}
	if s.waiting[c].head == nil {
		s.leave(c)
	}
}

func (n *Notifier) setOut(s *subscriber, l *link) {
	for c := range s.turns {
		s.leave(class(c))
	}
	if s.out == nil {
		s.heard = n.now // it could not answer before
	}
	if s.out == nil || l == nil {
		s.life++
	}
	s.out = l
	for c := range s.turns {
		n.enter(s, class(c))
	}
}
