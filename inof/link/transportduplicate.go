package link

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// A device has one session with a reflector. A second one comes when the device has
// lost the first, which must be known at once, and when two devices have one id, which
// must not push each other out: the hosts of the one would be swept by the sync of the
// other, and back again with each reconnection. So the session that stands is asked, and
// stays if it answers.

// probeTime is how long a session that stands may take to answer. The system of a
// device that restarted refuses the question at once.
const probeTime = time.Second

// probe is a question on its way.
type probe struct {
	demand uint64
	answer chan struct{} // closed by the answer
}

// answers asks the peer of an established session whether it is there.
func (c *conn) answers(within time.Duration) bool {
	c.mu.Lock()
	if c.probe == nil {
		c.probe = &probe{demand: rand.Uint64() | 1, answer: make(chan struct{})}
	}
	p := c.probe
	c.mu.Unlock()
	e, err := wire.Encode(&wire.Keepalive{Demand: p.demand})
	if err != nil {
		return false
	}
	if c.out.send(e, nil, true) != nil && !c.out.ends() {
		return true // it has proved itself a moment ago and is not open yet
	}
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.answer:
		return true
	case <-c.done:
	case <-t.C:
	}
	return false
}

// asked handles a Keepalive that asks or answers.
func (c *conn) asked(k *wire.Keepalive) {
	if k.Demand != 0 {
		if e, err := wire.Encode(&wire.Keepalive{Answer: k.Demand}); err == nil {
			_ = c.out.send(e, nil, true) // an end of the session is told elsewhere
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.probe != nil && k.Answer == c.probe.demand {
		close(c.probe.answer)
		c.probe = nil
	}
}

// contest asks the session of a newcomer's device, an error: it answers. S.mu is held
// but while it waits; then there is none, or it is one that gave no answer.
func (s *Server) contest(c *conn) error {
	dev := c.device()
	var asked *conn
	for old := s.peers[dev]; old != nil && old != asked; old = s.peers[dev] {
		s.mu.Unlock()
		answers := old.answers(min(probeTime, s.cfg.HandshakeTimeout/2))
		s.mu.Lock()
		if answers {
			return s.duplicate(dev, old, c)
		}
		asked = old
	}
	return nil
}

// duplicate is what a newcomer is told whose device's session stands; the operator is
// told when its address is new among those refused. S.mu is held.
func (s *Server) duplicate(dev netip.Addr, old, c *conn) error {
	from := hostOf(c.view.Address)
	known := slices.ContainsFunc(s.refused, func(v PeerInfo) bool { return hostOf(v.Address) == from && v.LastCode == wire.CodeDuplicate })
	if !known {
		text := fmt.Sprintf("two devices have the id %s: one is connected from %s and answers, the other comes from %s and is refused; "+
			"give one of them another device.id", dev, old.view.Address, from)
		s.cfg.Log.Warn("duplicate device id", "error", text)
		s.cfg.Alarm(dev, text)
	}
	return &wire.ProtocolError{Code: wire.CodeDuplicate, Where: "Open.device", Detail: fmt.Sprintf(
		"%s is connected from %s, which answers: two devices have this id, or one runs twice", dev, old.view.Address)}
}
