package control

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/model"
)

// end is one side of a session: the machine, and what is between it and the stream.
type end struct {
	d      *device
	life   uint64
	st     *stream
	dialer bool
	peer   model.NodeID
	sess   *link.Session
	in     []byte // of the stream, not yet a whole message
	up     bool   // told to the Core
	closed bool
	began  model.Time
	timer  model.Time             // when it is looked at next; 0: not planned
	ended  func(lived model.Time) // dials again
}

var aKeepalive, _ = wire.Encode(&wire.Keepalive{})

// auth is that of all sessions, so that messages have the sizes of production.
var auth = link.Auth{Mode: wire.AuthHMAC, Passwords: []link.Password{link.PasswordOfKey([32]byte{1})}}

// dialTimeout bounds one attempt, as inof.Dialer does.
const dialTimeout = 5 * model.Second

func (e *end) peerName() string { return e.d.p.sim.NodeName(e.peer) }

// dial opens a session with a reflector now; when it ends, or does not come about, it
// is dialed again with the dialer's back-off.
func (d *device) dial(r model.NodeID, attempt int) {
	p, life := d.p, d.life
	e := &end{d: d, life: life, dialer: true, peer: r, began: p.sim.Now()}
	e.ended = func(lived model.Time) {
		if d.dialed[deviceAddr(r)] == e {
			delete(d.dialed, deviceAddr(r))
		}
		if lived >= model.FromDuration(link.BackoffReset) {
			attempt = 0
		}
		p.after(model.FromDuration(link.Backoff(attempt, p.unit())), func() {
			if d.running && d.life == life {
				d.dial(r, attempt+1)
			}
		})
	}
	e.st = d.dialStream(r, portINOF)
	e.st.opened = func() { e.begin(wire.RoleClient) }
	e.attach()
	p.after(dialTimeout, func() {
		if !e.closed && e.sess == nil && e.alive() {
			e.close(errors.New("no answer"))
		}
	})
	d.dialed[deviceAddr(r)] = e
}

// accepted takes a connection of a client.
func (d *device) accepted(st *stream) {
	e := &end{d: d, life: d.life, peer: st.key.peer, st: st, began: d.p.sim.Now()}
	e.attach()
	e.begin(wire.RoleReflector)
}

func (e *end) attach() {
	e.st.taken = e.bytes
	e.st.ended = func(err error) {
		if e.alive() {
			e.lost(err)
		}
	}
}

// alive reports whether the process at this end still has it.
func (e *end) alive() bool { return !e.closed && e.d.running && e.d.life == e.life }

// begin makes the machine once the transport is there.
func (e *end) begin(role wire.Roles) {
	d, p := e.d, e.d.p
	sc := link.SessionConfig{Self: d.id, Dialer: e.dialer, Roles: role, Epoch: d.epoch, Auth: auth, Hold: p.cfg.Hold, Keepalive: p.cfg.Keepalive}
	if d.reflects && len(d.access) > 0 {
		sc.Roles = wire.RoleClient | wire.RoleReflector
	}
	if e.dialer {
		sc.Expect = deviceAddr(e.peer)
		sc.Resume = d.core.ResumePoint(deviceAddr(e.peer), false)
	} else {
		sc.ResumeFor = func(dev netip.Addr) *wire.Resume { return d.core.ResumePoint(dev, true) }
	}
	for i := range sc.Nonce {
		sc.Nonce[i] = byte(p.rng.Uint64())
	}
	s, err := link.NewSession(sc, p.time())
	if err != nil {
		p.failed(err)
		return
	}
	e.sess = s
	out, err := s.Start(nil, p.time())
	p.failed(err)
	e.send(out)
	e.watch()
}

func (e *end) send(b []byte) {
	if len(b) > 0 {
		e.st.write(b)
	}
}

// bytes takes what the stream brought: whole messages are handled in turn.
func (e *end) bytes(b []byte) {
	e.in = append(e.in, b...)
	for len(e.in) >= 4 {
		n := int(binary.BigEndian.Uint32(e.in))
		if n < 4 || n > wire.MaxMessage {
			e.close(errors.New("a message of impossible length"))
			return
		}
		if len(e.in) < n {
			return
		}
		m := append([]byte(nil), e.in[:n]...)
		e.in = e.in[n:]
		e.d.work(func() {
			if e.alive() {
				e.message(m)
			}
		})
	}
}

// message takes one message.
func (e *end) message(b []byte) {
	d, p := e.d, e.d.p
	m, out, err := e.sess.Receive(b, nil, p.time())
	e.send(out)
	if err != nil {
		e.send(e.sess.Notify(nil, err))
		e.close(err)
		return
	}
	if st, _ := e.sess.State(); st == link.StateEstablished && !e.up {
		e.established()
	}
	if m != nil {
		if what := faults(m); what != "" {
			p.Note(Step{At: p.sim.Now(), Step: StepReceived, Node: d.name, From: e.peerName(), What: what + " from " + e.peerName()})
		}
		if e.dialer {
			d.core.ReflectorMessage(deviceAddr(e.peer), m, p.time())
		} else {
			d.core.ClientMessage(deviceAddr(e.peer), m, p.time())
		}
	}
	e.watch()
}

// established tells the Core; of two sessions of a device the newer one counts.
func (e *end) established() {
	d, p := e.d, e.d.p
	dev := deviceAddr(e.peer)
	if !e.dialer {
		if old := d.taken[dev]; old != nil {
			old.close(errors.New("replaced by a newer session"))
		}
		d.taken[dev] = e
	}
	e.up = true
	p.note(StepSession, d.name, "", "session with %s is up", e.peerName())
	if e.dialer {
		d.core.ReflectorResumes(dev, e.sess.Peer().Resume, p.time())
	} else {
		d.core.ClientResumes(dev, e.sess.Peer().Resume, e.sess.Offered(), p.time())
	}
}

// deliver sends a message of the Core.
func (e *end) deliver(m wire.Message, enc *wire.Encoded) {
	if n, ok := m.(*wire.Notification); ok {
		e.send(e.sess.Notify(nil, &wire.ProtocolError{Code: n.Code, Detail: n.Text}))
		e.close(errors.New(n.Text))
		return
	}
	e.send(e.sess.Seal(nil, enc, e.d.p.time()))
}

// close ends this side; the peer learns of it by the end of the stream.
func (e *end) close(err error) {
	if e.closed {
		return
	}
	e.st.close()
	if e.st.state != streamOpen {
		e.st.abort()
	}
	e.lost(err)
}

// lost is the end of the session.
func (e *end) lost(err error) {
	if e.closed {
		return
	}
	e.closed = true
	d, p := e.d, e.d.p
	dev := deviceAddr(e.peer)
	if !e.dialer && d.taken[dev] == e {
		delete(d.taken, dev)
	}
	if e.up {
		p.note(StepSession, d.name, "", "session with %s is down: %v", e.peerName(), err)
		if e.dialer {
			d.core.ReflectorDown(dev, err, p.time())
		} else {
			d.core.ClientDown(dev, err, p.time())
		}
	}
	if e.ended != nil {
		e.ended(p.sim.Now() - e.began)
	}
	d.settle()
}

// watch plans the next look at the timers of the session.
func (e *end) watch() {
	if e.closed {
		return
	}
	next := e.sess.Deadline()
	if k := e.sess.KeepaliveAt(); !k.IsZero() && k.Before(next) {
		next = k
	}
	at := max(stamp(next), e.d.p.sim.Now())
	if e.timer != 0 && e.timer <= at {
		return // looked at earlier, and planned anew then
	}
	e.timer = at
	e.d.p.at(at, func() {
		if e.timer != at || !e.alive() {
			return
		}
		e.timer = 0
		now := e.d.p.time()
		if err := e.sess.Expired(now); err != nil {
			e.send(e.sess.Notify(nil, err))
			e.close(err)
			return
		}
		if k := e.sess.KeepaliveAt(); !k.IsZero() && !k.After(now) {
			e.send(e.sess.Seal(nil, aKeepalive, now))
		}
		e.watch()
	})
}
