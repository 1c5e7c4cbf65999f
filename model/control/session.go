package control

import (
	"encoding/binary"
	"errors"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/virtual"
	"github.com/openinof/inof/model"
)

// end is one side of a session: the machine, and what is between it and the stream.
type end struct {
	virtual.End
	d     *device
	life  uint64
	st    *stream
	peer  model.NodeID
	in    []byte // of the stream, not yet a whole message
	began model.Time
	ended func(lived model.Time) // dials again
}

// auth is that of all sessions, so that messages have the sizes of production.
var auth = link.Auth{Mode: wire.AuthHMAC, Passwords: []link.Password{link.PasswordOfKey([32]byte{1})}}

// dialTimeout bounds one attempt, as inof.Dialer does.
const dialTimeout = 5 * model.Second

func (e *end) peerName() string { return e.d.p.sim.NodeName(e.peer) }

// newEnd is one without a connection yet.
func (d *device) newEnd(peer model.NodeID, dials bool) *end {
	e := &end{d: d, life: d.life, peer: peer, began: d.p.sim.Now()}
	e.End = virtual.End{World: d.p, Core: d.core, Peer: deviceAddr(peer), Dialer: dials, Alive: e.alive, Send: e.send, Expired: e.refuse}
	return e
}

// refuse ends the session for a reason that the peer is told.
func (e *end) refuse(err error) {
	e.send(e.Notify(nil, err))
	e.close(err)
}

// dial opens a session with a reflector now; when it ends, or does not come about, it
// is dialed again with the dialer's back-off.
func (d *device) dial(r model.NodeID, attempt int) {
	p, life := d.p, d.life
	e := d.newEnd(r, true)
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
	e.st.opened = e.begin
	e.attach()
	p.after(dialTimeout, func() {
		if !e.Closed && e.Session == nil && e.alive() {
			e.close(errors.New("no answer"))
		}
	})
	d.dialed[deviceAddr(r)] = e
}

// accepted takes a connection of a client.
func (d *device) accepted(st *stream) {
	e := d.newEnd(st.key.peer, false)
	e.st = st
	e.attach()
	e.begin()
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
func (e *end) alive() bool { return !e.Closed && e.d.running && e.d.life == e.life }

// begin makes the machine once the transport is there.
func (e *end) begin() {
	d, p := e.d, e.d.p
	sc := link.SessionConfig{Self: d.id, Epoch: d.epoch, Auth: auth, Hold: p.cfg.Hold, Keepalive: p.cfg.Keepalive}
	if e.Dialer {
		sc.Expect = e.Peer
	}
	if err := e.Open(sc, d.reflects && len(d.access) > 0, func() byte { return byte(p.rng.Uint64()) }); err != nil {
		p.failed(err)
		return
	}
	out, err := e.Start(nil, p.time())
	p.failed(err)
	e.send(out)
	if !e.Closed {
		e.Watch()
	}
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
	m, out, err := e.Session.Receive(b, nil, p.time())
	e.send(out)
	if err != nil {
		e.refuse(err)
		return
	}
	if st, _ := e.Session.State(); st == link.StateEstablished && !e.Up {
		e.established()
	}
	if m != nil {
		if what := faults(m); what != "" {
			p.Note(Step{At: p.sim.Now(), Step: StepReceived, Node: d.name, From: e.peerName(), What: what + " from " + e.peerName()})
		}
		e.Message(m)
	}
	if !e.Closed {
		e.Watch()
	}
}

// established tells the Core; of two sessions of a device the newer one counts.
func (e *end) established() {
	d, p := e.d, e.d.p
	dev := deviceAddr(e.peer)
	if !e.Dialer {
		if old := d.taken[dev]; old != nil {
			old.close(errors.New("replaced by a newer session"))
		}
		d.taken[dev] = e
	}
	p.note(StepSession, d.name, "", "session with %s is up", e.peerName())
	e.Established()
}

// deliver sends a message of the Core.
func (e *end) deliver(m wire.Message, enc *wire.Encoded) {
	if n, ok := m.(*wire.Notification); ok {
		e.send(e.Session.Notify(nil, &wire.ProtocolError{Code: n.Code, Detail: n.Text}))
		e.close(errors.New(n.Text))
		return
	}
	e.send(e.Session.Seal(nil, enc, e.d.p.time()))
}

// close ends this side; the peer learns of it by the end of the stream.
func (e *end) close(err error) {
	if e.Closed {
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
	if e.Closed {
		return
	}
	e.Closed = true
	d, p := e.d, e.d.p
	dev := deviceAddr(e.peer)
	if !e.Dialer && d.taken[dev] == e {
		delete(d.taken, dev)
	}
	if e.Up {
		p.note(StepSession, d.name, "", "session with %s is down: %v", e.peerName(), err)
		e.Down(err)
	}
	if e.ended != nil {
		e.ended(p.sim.Now() - e.began)
	}
	d.settle()
}
