package linux

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
)

// Config says which ports belong to the dataplane and how they are watched. The
// zero value of every field but Access is a good choice.
type Config struct {
	// Access names the ports, exactly or as globs (fabric.Names). Ports of other
	// names are not touched, not even looked at. Only Ethernet interfaces count.
	Access []string

	// NetNS is the network namespace: a path, or a name below /run/netns. Empty is
	// the caller's own one. One process may hold dataplanes in many namespaces.
	NetNS string

	// CarrierPoll is how often the ports' carrier is looked at besides listening to
	// the kernel's notifications. Smaller finds a change sooner that the kernel
	// holds back, and costs more CPU. The interval grows by itself so as to stay
	// below one percent of a core (21 to 48 ms with 128 ports), and shrinks to a few
	// milliseconds for a second after any change. 0 means DefaultCarrierPoll, negative
	// never.
	CarrierPoll time.Duration

	// Carrier says how changes of carrier are heard besides netlink, which tells of a loss late.
	// Empty means fabric.CarrierAuto. Where all changes are heard (not by a tracepoint) nothing is
	// polled.
	Carrier fabric.CarrierSource

	// Resync is how often everything is dumped anew even if nothing seems lost.
	// 0 means DefaultResync, negative never.
	Resync time.Duration

	// Counters are names of driver counters beyond those of the table in drivers.go,
	// before which they are tried.
	Counters []fabric.CounterName

	// FrameRate is how many frames a second one port may hand to the owner, after a
	// burst of as many; what comes faster waits in the kernel, and is lost there when
	// it goes on. Raise it for hosts with far more than 64 addresses on a port.
	// 0 means DefaultFrameRate.
	FrameRate int

	// QueueFrames and QueueEvents are the lengths of the channels to the owner.
	// 0 means DefaultQueue.
	QueueFrames, QueueEvents int

	// QdiscBypass sends control frames straight to the driver, past the queueing
	// discipline. Useful where data traffic of this machine itself fills the queue.
	QdiscBypass bool

	// Log is told of ports that come and go and of what goes wrong; nil is silence.
	Log *slog.Logger
}

// Defaults of Config.
const (
	DefaultCarrierPoll = 10 * time.Millisecond
	DefaultResync      = 30 * time.Second
	DefaultFrameRate   = 2000
	DefaultQueue       = 1024
)

// minCarrierPoll keeps a mistyped interval from eating a core.
const minCarrierPoll = 100 * time.Microsecond

// complete fills in the defaults and checks the rest.
func (c Config) complete() (Config, fabric.Names, error) {
	names, err := fabric.ParseNames(c.Access)
	if err != nil {
		return c, names, fmt.Errorf("access ports: %w", err)
	}
	if len(c.Access) == 0 {
		return c, names, errors.New("access ports: none named, want at least one name or glob such as eth*")
	}
	setDefault(&c.CarrierPoll, DefaultCarrierPoll)
	setDefault(&c.Carrier, fabric.CarrierAuto)
	setDefault(&c.Resync, DefaultResync)
	setDefault(&c.FrameRate, DefaultFrameRate)
	setDefault(&c.QueueFrames, DefaultQueue)
	setDefault(&c.QueueEvents, DefaultQueue)
	if c.CarrierPoll > 0 && c.CarrierPoll < minCarrierPoll {
		return c, names, fmt.Errorf("carrier poll interval %v is below %v", c.CarrierPoll, minCarrierPoll)
	}
	if !slices.Contains(fabric.CarrierSources(), c.Carrier) {
		return c, names, fmt.Errorf("carrier source %q, want one of %v", c.Carrier, fabric.CarrierSources())
	}
	if c.FrameRate < 1 || c.QueueFrames < 1 || c.QueueEvents < 1 {
		return c, names, fmt.Errorf("frame rate %d and queue lengths %d, %d must be above 0",
			c.FrameRate, c.QueueFrames, c.QueueEvents)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, names, nil
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
