package device

import (
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
)

// Actions is how a Core acts on the world. None of the methods may wait for a peer
// or a disk.
type Actions interface {
	// SendFrame puts a whole Ethernet frame on the wire of a port.
	SendFrame(port string, frame []byte)
	// ToReflectors and ToClients hand messages to the sessions this device dialed
	// and to those it accepted. Receivers without a session are passed over.
	ToReflectors([]wire.Delivery)
	ToClients([]wire.Delivery)
	// SetAdmin shuts or opens a port.
	SetAdmin(port string, up bool)
	// WatchPaths says which paths to other devices are to be watched: these and no
	// others. What is found out comes back through Core.Path. The list is the
	// receiver's.
	WatchPaths([]bfd.Peer)
	// Event makes known to operators what happened.
	Event(api.Event)
}

// Stopwatch is what Actions may be besides: it tells the time after what it was asked
// to do, which is later than the `now` of the input that led there. Without it that
// `now` counts, as in virtual time.
type Stopwatch interface {
	Now() time.Time
	// Left is when the last frame that was sent left: never later than its receiver had it.
	Left() time.Time
}

// later is the time after an action.
func (c *Core) later(now time.Time) time.Time {
	if c.stopwatch != nil {
		return c.stopwatch.Now()
	}
	return now
}

// event tells operators of something by the next Say.
func (c *Core) event(e api.Event) { c.say(func() api.Event { return e }) }

// say is event for what happens on the way of a fault: the line is made when it is told. It must
// hold what it is made of.
func (c *Core) say(line func() api.Event) { c.unsaid = append(c.unsaid, line) }

// Say makes known to operators what has happened. Nobody waits for that: it comes after the
// messages and frames of the same input, in Pump.
func (c *Core) Say() {
	for i, line := range c.unsaid {
		c.unsaid[i] = nil
		c.out.Event(line())
	}
	c.unsaid = c.unsaid[:0]
}
