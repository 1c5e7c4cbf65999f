package device

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
)

// ClientUp says that a client's session to this reflector is established.
func (c *Core) ClientUp(dev netip.Addr, now time.Time) { c.ClientResumes(dev, nil, nil, now) }

// ClientResumes is ClientUp for a client whose Open says what it has seen of us, and
// to which ours said what we have seen of it.
func (c *Core) ClientResumes(dev netip.Addr, seen, offered *wire.Resume, now time.Time) {
	if c.refl == nil {
		return
	}
	defer c.settle(now)
	c.keepClient(dev)
	c.fromReflector(c.refl.Resume(dev, seen, offered, now))
	c.peerEvent(dev, "client", "up", nil, now)
}

// ClientAsks says what a client that connects asks for: everything, or only what
// concerns it.
func (c *Core) ClientAsks(dev netip.Addr, everything bool) {
	if c.refl != nil {
		c.refl.SetInterest(dev, everything)
	}
}

// ClientDown says that a client's session ended; its records become stale.
func (c *Core) ClientDown(dev netip.Addr, why error, now time.Time) {
	if c.refl == nil {
		return
	}
	defer c.settle(now)
	delete(c.reports, dev)
	c.fromReflector(c.refl.Leave(dev, now))
	c.keepLeft(dev)
	c.peerEvent(dev, "client", "down", why, now)
}

// PullChanges tells clients what has changed since the last call: those for whom ready says that
// their session can take it. Without CoreConfig.Reflector.Paced nothing waits for it.
func (c *Core) PullChanges(ready func(dev netip.Addr) bool, now time.Time) {
	if c.Waiting() {
		defer c.settle(now)
		c.fromReflector(c.refl.Pull(c.orSelf(ready), now))
	}
}

// PullStep tells one of the clients that have more to be told than a message the next of it.
func (c *Core) PullStep(ready func(dev netip.Addr) bool, now time.Time) {
	if c.Owing() {
		defer c.settle(now)
		c.fromReflector(c.refl.Step(c.orSelf(ready), now))
	}
}

// orSelf is ready, and that this device itself always is.
func (c *Core) orSelf(ready func(dev netip.Addr) bool) func(netip.Addr) bool {
	if ready == nil {
		return nil
	}
	return func(dev netip.Addr) bool { return dev == c.self || ready(dev) }
}

// Waiting reports whether PullChanges has something to tell, Owing whether PullStep may have.
func (c *Core) Waiting() bool { return c.refl != nil && c.refl.Waiting() }
func (c *Core) Owing() bool   { return c.refl != nil && c.refl.Owing() }

// Owed appends the clients that have more to be told than they were given.
func (c *Core) Owed(dst []netip.Addr) []netip.Addr {
	if c.refl == nil {
		return dst
	}
	return c.refl.Owed(dst)
}

// Losses are those among what PullChanges has to tell.
func (c *Core) Losses() reflector.Losses {
	if c.refl == nil {
		return reflector.Losses{}
	}
	return c.refl.Losses()
}

// Work is how many records the reflector has looked at because of the last message of a client,
// beside those that it has.
func (c *Core) Work() int {
	if c.refl == nil {
		return 0
	}
	return c.refl.Work()
}

// ClientDrained says that the session of a client that was not ready is.
func (c *Core) ClientDrained() {
	if c.refl != nil {
		c.refl.Drained()
	}
}

// ClientMessage takes a message of a client.
func (c *Core) ClientMessage(dev netip.Addr, m wire.Message, now time.Time) {
	if c.refl == nil {
		return
	}
	defer c.settle(now)
	if report, ok := m.(*wire.Report); ok {
		c.reports[dev] = report
		return
	}
	if q, ok := m.(*wire.PathKeys); ok {
		c.answerPathKeys(dev, q)
		return
	}
	named := c.newNQNs(m)
	ds, err := c.refl.Receive(dev, m, now)
	c.measureReflected(m, len(ds) > 0 || c.refl.Waiting(), now)
	c.fromReflector(ds)
	c.judgeNQNs(named, now)
	c.protocolError(dev, err, now)
	if u, ok := m.(*wire.Update); ok && err == nil && c.client == nil { // else the client's side tells
		c.downEvents(u.Downs, now)
	}
}

// ReflectorUp says that the session to a reflector is established.
func (c *Core) ReflectorUp(dev netip.Addr, now time.Time) { c.ReflectorResumes(dev, nil, now) }

// ReflectorResumes is ReflectorUp for a reflector whose Open says what it has seen of us.
func (c *Core) ReflectorResumes(dev netip.Addr, seen *wire.Resume, now time.Time) {
	if c.client == nil {
		return
	}
	defer c.settle(now)
	c.reflector = dev
	before := c.client.Epoch()
	c.fromClient(c.client.Resume(dev, seen, now), now)
	if c.client.Epoch() != before {
		c.event(api.Event{Time: now, Kind: "error", Device: dev.String(), Fields: map[string]string{"room": "peer"},
			Text: fmt.Sprintf("reflector %s has seen a later start of this device: the clock was set back and the last epoch was lost; going on behind it", dev)})
	}
	c.pathSession(dev, true)
	c.peerEvent(dev, "reflector", "up", nil, now)
}

// ReflectorDown says that the session to a reflector ended. What is known stays in force.
func (c *Core) ReflectorDown(dev netip.Addr, why error, now time.Time) {
	if c.client == nil {
		return
	}
	defer c.settle(now)
	c.pathSession(dev, false)
	a := c.client.Down(dev, now)
	c.apply(&a, now)
	c.peerEvent(dev, "reflector", "down", why, now)
}

// ReflectorMessage takes a message of a reflector.
func (c *Core) ReflectorMessage(dev netip.Addr, m wire.Message, now time.Time) {
	if c.client == nil {
		return
	}
	defer c.settle(now)
	if k, ok := m.(*wire.PathKeys); ok {
		c.takePathKeys(dev, k)
		return
	}
	a, err := c.client.Receive(dev, m, now)
	if u, ok := m.(*wire.Update); ok {
		c.refusalEvent(dev, u.Refused, now)
		if u.Settings != nil { // at once: whatever else of the change is still to come
			c.hearHalt(dev, u.Settings.Halt, now)
		}
	}
	c.apply(&a, now)
	c.protocolError(dev, err, now)
}

func (c *Core) peerEvent(dev netip.Addr, role, state string, why error, now time.Time) {
	text := fmt.Sprintf("session with %s %s is %s", role, dev, state)
	fields := map[string]string{"role": role, "state": state}
	if why != nil {
		text += ": " + why.Error()
		fields["error"] = why.Error()
	}
	c.event(api.Event{Time: now, Kind: "peer", Text: text, Device: dev.String(), Fields: fields})
}
