package link

import (
	"math/rand/v2"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// A session that stands may be asked whether its peer is there: with the demand of a Keepalive.

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
