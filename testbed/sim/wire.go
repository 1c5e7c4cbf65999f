package sim

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/virtual"
)

// conn is one connection from a device to a reflector.
type conn struct {
	w     *world
	id    uint64
	dials *end
	takes *end
	cut   bool // nothing passes any more, and what is on its way is lost
}

// end is one side of a connection: a session machine, and what is between it and
// the Core of its device.
type end struct {
	virtual.End
	c        *conn
	dev      *device
	life     uint64 // of dev when the connection was made
	peer     *end
	told     bool // our End-of-Sync has been sent
	owes     int  // the zone version of which the peer has not been sent everything; 0: none
	heard    bool // the peer's End-of-Sync has been taken
	last     time.Duration
	began    time.Duration
	asks     bool                      // the session that stands was asked whether it is there
	answered []func()                  // it is
	ended    func(lived time.Duration) // dials again
}

const (
	hold      = 9 * time.Second
	keepalive = 3 * time.Second
)

func (e *end) name() string {
	if e.Dialer {
		return e.dev.name + ">" + e.peer.dev.name
	}
	return e.dev.name + "<" + e.peer.dev.name
}

// alive reports whether the process at this end still has it.
func (e *end) alive() bool { return !e.Closed && e.dev.running && e.dev.life == e.life }

// dial opens a connection now, or plans the next try.
func (d *device) dial(r *device, attempt int) {
	life := d.life
	again := func() {
		wait := link.Backoff(attempt, d.w.rng.Float64())
		d.w.after(wait, func() {
			if d.running && d.life == life {
				d.dial(r, attempt+1)
			}
		})
	}
	if !r.running || r.member != nil && !r.member.formed || d.w.now < d.blocked[r.id] {
		again()
		return
	}
	c := &conn{w: d.w, id: d.w.conns}
	d.w.conns++
	c.dials = &end{c: c, dev: d, life: d.life, began: d.w.now}
	c.takes = &end{c: c, dev: r, life: r.life, began: d.w.now}
	c.dials.peer, c.takes.peer = c.takes, c.dials
	c.dials.open(true)
	c.takes.open(false)
	d.dialed[r.id] = c.dials
	c.dials.ended = func(lived time.Duration) {
		if d.dialed[r.id] == c.dials {
			delete(d.dialed, r.id)
		}
		if lived >= link.BackoffReset {
			attempt = 0
		}
		if d.running && d.life == life {
			again()
		}
	}
	out, err := c.dials.Session.Start(nil, d.w.time())
	if err != nil {
		d.w.failf("%s: %v", c.dials.name(), err)
		return
	}
	c.dials.send(out)
	c.dials.Watch()
	c.takes.Watch()
}

func (e *end) open(dials bool) {
	w := e.dev.w
	e.End = virtual.End{World: w, Core: e.dev.core, Peer: e.peer.dev.id, Dialer: dials, Alive: e.alive, Send: e.send,
		Expired: func(err error) { e.close(err, true) }}
	err := e.Open(link.SessionConfig{Self: e.dev.id, Confirm: !dials, Epoch: e.dev.epoch, Auth: w.auth(), Hold: hold, Keepalive: keepalive},
		e.dev.reflects && e.dev.access(), func() byte { return byte(w.rng.Uint32()) })
	if err != nil {
		w.failf("session of %s: %v", e.dev.name, err)
	}
}

// auth is one for the whole run; the cheaper mode is the more frequent one.
func (w *world) auth() link.Auth {
	if w.cfg.Seed%4 == 0 && !w.cfg.Later {
		return link.Auth{Mode: wire.AuthHMAC, Passwords: []link.Password{link.PasswordOfKey([32]byte{1})}}
	}
	return link.Auth{Mode: wire.AuthNone}
}

// send puts messages on the way: in order, each with a delay of its own.
func (e *end) send(b []byte) {
	for len(b) > 0 {
		n := binary.BigEndian.Uint32(b)
		m := b[:n]
		if b = b[n:]; e.dev.later() {
			m = asLater(m)
		}
		e.post(func() { e.peer.receive(m) })
	}
}

// marks has zone versions noted at the clients that have been sent all that follows from them.
func (d *device) marks() {
	owed := d.core.Owed(nil)
	for _, e := range d.ends() {
		if e.owes != 0 && !slices.Contains(owed, e.peer.dev.id) {
			e.mark(e.owes)
			e.owes = 0
		}
	}
}

// mark has the zone version v noted at the other end after all that was sent before.
func (e *end) mark(v int) {
	e.post(func() { e.peer.dev.holds(e.dev, v) })
}

// post delivers something to the other end in order, unless the connection is cut
// or the process there has gone.
func (e *end) post(arrive func()) {
	w := e.dev.w
	e.last = max(e.last, w.now+20*time.Microsecond+w.short(3*time.Millisecond)) + 1
	w.at(e.last, func() {
		if !e.c.cut && e.peer.alive() {
			arrive()
		}
	})
}

// deliver sends messages of the Core.
func (e *end) deliver(m wire.Message, enc *wire.Encoded) {
	w := e.dev.w
	if n, ok := m.(*wire.Notification); ok {
		e.close(errors.New(n.Text), true)
		return
	}
	if w.tracing() {
		w.tracef("%s %s", e.name(), describe(m))
	}
	e.send(e.Session.Seal(nil, enc, w.time()))
	if _, ok := m.(*wire.EndOfSync); ok {
		e.told = true
		if !e.Dialer {
			e.mark(e.dev.version)
		}
	}
}

// receive takes one message off the connection.
func (e *end) receive(b []byte) {
	w := e.dev.w
	m, out, err := e.Session.Receive(b, nil, w.time())
	e.send(out)
	if err != nil {
		var told *link.PeerError
		if !errors.As(err, &told) {
			w.failf("%s: message of %d bytes is refused: %v", e.name(), len(b), err)
		}
		e.close(err, true)
		return
	}
	if e.Session.Proved() {
		e.prove()
	}
	if st, _ := e.Session.State(); st == link.StateEstablished && !e.Up {
		e.established()
	}
	if k, ok := m.(*wire.Keepalive); ok {
		e.asked(k)
		m = nil
	}
	if m != nil && !e.Closed {
		e.Message(m)
		if _, ok := m.(*wire.EndOfSync); ok {
			e.heard = true
			w.tracef("%s sync is complete", e.name())
		}
	}
	e.dev.settle()
	e.Watch()
}

// established tells the Core; of two sessions of a device the newer one counts.
func (e *end) established() {
	w := e.dev.w
	if e.Dialer && e.dev.clone {
		e.leaves()
		return
	}
	if !e.Dialer {
		if old := e.dev.accepted[e.peer.dev.id]; old != nil {
			old.close(errors.New("replaced by a newer session"), true)
		}
		e.dev.accepted[e.peer.dev.id] = e
	}
	w.tracef("%s session is up", e.name())
	e.Established()
}

// close ends this side; tell: the other one notices, a little later.
func (e *end) close(err error, tell bool) {
	if e.Closed {
		return
	}
	e.Closed = true
	w := e.dev.w
	if tell && !e.c.cut {
		e.post(func() { e.peer.close(errors.New("closed by the peer"), false) })
	}
	if !e.dev.running || e.dev.life != e.life {
		return
	}
	if !e.Dialer && e.dev.accepted[e.peer.dev.id] == e {
		delete(e.dev.accepted, e.peer.dev.id)
	}
	if e.Up {
		w.tracef("%s session is down: %v", e.name(), err)
		e.Down(err)
	}
	if e.ended != nil {
		e.ended(w.now - e.began)
	}
	e.dev.settle()
}

// sever cuts the connection: what is on its way is lost. The ends notice at
// different times, or only by their hold time when silent is set.
func (c *conn) sever(silent bool) {
	c.cut = true
	if silent {
		return
	}
	for _, e := range []*end{c.dials, c.takes} {
		c.w.after(c.w.short(200*time.Millisecond), func() {
			if e.alive() {
				e.close(errors.New("connection reset"), false)
			}
		})
	}
}

// connOf gives the present connection of a device to a reflector, nil if there is none.
func (d *device) connOf(r netip.Addr) *conn {
	if e := d.dialed[r]; e != nil {
		return e.c
	}
	return nil
}
