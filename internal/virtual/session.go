package virtual

import (
	"net/netip"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
)

var keepalive, _ = wire.Encode(&wire.Keepalive{})

// End is one side of a session: its machine, and the Core that it is told to.
type End struct {
	*link.Session
	World  World
	Core   *device.Core
	Peer   netip.Addr // device at the other end
	Dialer bool
	Up     bool // told to the Core
	Closed bool
	// Alive reports whether the process at this end still has it; Send gives bytes to the other
	// one; Expired ends it, since the other one was silent for too long.
	Alive   func() bool
	Send    func([]byte)
	Expired func(error)

	look Look
}

// Open makes the machine. Both: the device is client and reflector. Random gives its nonce.
func (e *End) Open(sc link.SessionConfig, both bool, random func() byte) (err error) {
	switch sc.Dialer = e.Dialer; {
	case e.Dialer:
		sc.Roles, sc.Resume = wire.RoleClient, e.Core.ResumePoint(e.Peer, false)
	default:
		sc.Roles = wire.RoleReflector
		sc.ResumeFor = func(dev netip.Addr) *wire.Resume { return e.Core.ResumePoint(dev, true) }
	}
	if both {
		sc.Roles = wire.RoleClient | wire.RoleReflector
	}
	for i := range sc.Nonce {
		sc.Nonce[i] = random()
	}
	e.Session, err = link.NewSession(sc, e.World.Time())
	return err
}

// Established tells the Core that the session is.
func (e *End) Established() {
	e.Up = true
	if e.Dialer {
		e.Core.ReflectorResumes(e.Peer, e.Session.Peer().Resume, e.World.Time())
	} else {
		e.Core.ClientResumes(e.Peer, e.Session.Peer().Resume, e.Offered(), e.World.Time())
	}
}

// Message gives the Core a message of the other end.
func (e *End) Message(m wire.Message) {
	if e.Dialer {
		e.Core.ReflectorMessage(e.Peer, m, e.World.Time())
	} else {
		e.Core.ClientMessage(e.Peer, m, e.World.Time())
	}
}

// Down tells the Core why the session that it was told of has ended.
func (e *End) Down(err error) {
	if e.Dialer {
		e.Core.ReflectorDown(e.Peer, err, e.World.Time())
	} else {
		e.Core.ClientDown(e.Peer, err, e.World.Time())
	}
}

// Watch plans the next look at the session's timers, which is due after each message.
func (e *End) Watch() {
	next := e.Deadline()
	if k := e.KeepaliveAt(); !k.IsZero() && k.Before(next) {
		next = k
	}
	e.look.Plan(e.World, next, e.Alive, e.timers)
}

func (e *End) timers() {
	now := e.World.Time()
	if err := e.Session.Expired(now); err != nil {
		e.Expired(err)
		return
	}
	if k := e.KeepaliveAt(); !k.IsZero() && !k.After(now) {
		e.Send(e.Seal(nil, keepalive, now))
	}
	e.Watch()
}

// Deliver gives each message of a Core to those it is for and that are there; a Notification is
// not encoded.
func Deliver[E any](ds []wire.Delivery, to map[netip.Addr]E, give func(E, wire.Message, *wire.Encoded)) error {
	for _, d := range ds {
		var enc *wire.Encoded
		if _, note := d.Msg.(*wire.Notification); !note {
			var err error
			if enc, err = wire.Encode(d.Msg); err != nil {
				return err
			}
		}
		for _, id := range d.To {
			if e, ok := to[id]; ok {
				give(e, d.Msg, enc)
			}
		}
	}
	return nil
}
