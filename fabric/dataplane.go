package fabric

import (
	"context"
	"errors"
	"time"
)

// ErrNoPort is wrapped by every error about a port that does not exist (any more).
var ErrNoPort = errors.New("no such port")

// Dataplane is what a control plane needs of a switch. Methods are safe for
// concurrent use; Send and SetAdmin may be called from the control loop and never
// wait for the peer.
type Dataplane interface {
	// Run works until ctx ends. Events begins with one PortAdded for each port
	// there is; a port whose kernel state was lost track of is told again.
	Run(ctx context.Context) error
	// Ready is closed once the first dump of ports has been handed to Events.
	Ready() <-chan struct{}
	// Events and Frames are read by one goroutine, the device's owner; see EventHandler.
	Events() <-chan Event
	Frames() <-chan Frame
	// Send puts a whole Ethernet frame (header included, FCS not) on the wire.
	Send(port string, frame []byte) error
	// SetAdmin shuts (false) or opens (true) a port.
	SetAdmin(port string, up bool) error
	// Counters reads the port's totals now.
	Counters(port string) (Counters, error)
	String() string
}

// EventHandler is a Dataplane that can say what happens to whoever is to act on it, in place of
// Events.
type EventHandler interface {
	// HandleEvents has handle called with each event, one at a time and in their order, by the
	// goroutine that noticed it; nothing is noticed meanwhile. Handle may call Send. It is set
	// before Run.
	HandleEvents(handle func(Event))
}

// SendStamper is a Dataplane that knows when a frame left.
type SendStamper interface {
	// SendStamped is Send, and returns when the frame left by the kernel's own stamp; zero
	// where the driver gives none before Send returns.
	SendStamped(port string, frame []byte) (left time.Time, err error)
}
