package sim

import (
	"errors"
	"net/netip"
	"time"

	core "github.com/openinof/inof/device"
	"github.com/openinof/inof/inof/wire"
)

// A clone is a switch with the id and the password of another one, as from a copied disk. It has
// no hosts, so that its sync would take away those of the other. While the other one answers, the
// clone has no session, and is told why; nobody else notices. That the reflector raises an alarm is
// tried on real sessions, since the alarm is the listener's.

// clone has a clone of a switch dial a reflector with which that one has a session, again and
// again, for a while.
func (w *world) clone() {
	type place struct{ of, at *device }
	var places []place
	for _, d := range w.devices {
		for _, r := range w.reflectors {
			if c := d.connOf(r.id); r != d && r.running && c != nil && !c.cut && c.dials.Up && c.takes.Up {
				places = append(places, place{d, r})
			}
		}
	}
	if len(places) == 0 {
		return
	}
	p := pick(w, places)
	w.tracef("a clone of %s dials %s", p.of.name, p.at.name)
	d := &device{w: w, name: "the clone of " + p.of.name, id: p.of.id, clone: true, running: true, life: 1, epoch: uint64(w.now)<<16 | 1}
	d.dialed, d.accepted = map[netip.Addr]*end{}, map[netip.Addr]*end{}
	d.draining, d.held = map[netip.Addr]bool{}, map[netip.Addr]int{}
	c, err := core.New(core.Config{Self: d.id, Access: true, Epoch: d.epoch}, d, w.time())
	if err != nil {
		w.failf("%s does not start: %v", d.name, err)
		return
	}
	d.core = c
	d.dial(p.at, 0)
	w.after(w.short(30*time.Second), func() {
		d.running = false
		for _, e := range d.dialed {
			e.c.sever(false)
		}
	})
}

// prove goes on with a session whose dialer has proved the password. When a clone comes while
// the session of the other stands, or the other way round, the one that stands is asked, and
// stays if it answers within a second. The system of a device that has restarted answers for it.
func (e *end) prove() {
	old := e.dev.accepted[e.peer.dev.id]
	if old == nil || old.peer.dev == e.peer.dev {
		e.take()
		return
	}
	if e.asks {
		return
	}
	e.asks = true
	w := e.dev.w
	old.answered = append(old.answered, func() {
		if !e.alive() || !e.asks {
			return
		}
		e.asks = false
		w.tracef("%s is refused: another one stands", e.name())
		err := &wire.ProtocolError{Code: wire.CodeDuplicate, Where: "Open.device", Detail: "two devices have this id"}
		e.send(e.Session.Notify(nil, err))
		e.close(err, false)
	})
	old.say(&wire.Keepalive{Demand: 1})
	w.after(time.Second, func() {
		if e.alive() && e.asks {
			e.asks = false
			if !old.Closed && !old.c.cut && old.peer.alive() && max(old.last, old.peer.last) <= w.now {
				w.failf("%s pushes out %s, which is there", e.name(), old.name())
			}
			e.take()
		}
	})
}

// take lets the dialer have its session.
func (e *end) take() {
	e.send(e.Session.Answer(nil, e.dev.w.time()))
	e.established()
}

// say sends one message.
func (e *end) say(m wire.Message) {
	enc, err := wire.Encode(m)
	if err != nil {
		e.dev.w.failf("%s: %v", e.name(), err)
		return
	}
	e.send(e.Session.Seal(nil, enc, e.dev.w.time()))
}

// asked takes a question whether this end is there, or the answer to one.
func (e *end) asked(k *wire.Keepalive) {
	if k.Demand != 0 {
		e.say(&wire.Keepalive{Answer: k.Demand})
	}
	if k.Answer == 0 {
		return
	}
	all := e.answered
	e.answered = nil
	for _, f := range all {
		f()
	}
}

// leaves ends the session of a clone that came while the other one was not there.
func (e *end) leaves() { e.close(errors.New("the clone leaves"), true) }
