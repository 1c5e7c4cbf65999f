package hostkernel

import (
	"context"
	"net/netip"
	"time"

	"github.com/openinof/inof/nvmetcp"
)

// Kernel is what the agent needs of a host's kernel. Linux is the running one, Fake one that
// behaves alike; the same table of cases is held against both (package kerneltest). Methods are
// safe for concurrent use. Those that can block say so: they belong into goroutines of their own.
type Kernel interface {
	// Controllers lists those over fabrics, by instance. What can be read is given also with
	// an error.
	Controllers() ([]Controller, error)
	// Controller reads one. The error wraps fs.ErrNotExist if there is none.
	Controller(instance int) (Controller, error)
	// Connect makes one and gives its instance. Blocks: seconds, or minutes.
	Connect(c *Connect) (instance int, err error)
	// Delete removes one. Blocks for minutes if its path is dead, it is live and has I/O in flight.
	Delete(c *Controller) error
	// Reset tears one down, so that its I/O fails over at once, and has it connected again.
	// Blocks for a minute if the path is dead; ctx ends the waiting, not the reset.
	Reset(ctx context.Context, c *Controller) error
	// KeepAlive asks a live one for an answer within a time, which the kernel rounds up to seconds.
	// Blocks for as long.
	KeepAlive(c *Controller, within time.Duration) error
	// DiscoveryLog reads what a discovery controller knows. Blocks for as long as the path is slow.
	DiscoveryLog(c *Controller) (*nvmetcp.Log, error)
	// Destroy ends the TCP sockets of a path, so that I/O fails over at once.
	Destroy(s Sockets) (n int, err error)
	// Unqueue drops what waits for a neighbour that does not answer on the interface of an address.
	// A packet that waits there keeps its connection from being torn down, for as long as the
	// kernel waits for it to leave (nvme_tcp_wait_queue: 100 ms by its count, half a second by the
	// clock).
	Unqueue(source netip.Addr) error
	// HurryReconnect has a controller that lost its connection try anew each second, and gives
	// what undoes it, to be called when it is live.
	HurryReconnect(c *Controller) (undo func() error, err error)
	// Owner, Claim and Release keep the registry; Tidy drops entries of ours whose controllers are
	// gone.
	Owner(instance int) string
	Claim(instance int, owner string) error
	Release(instance int) error
	Tidy() error
	// Options lists the connect options that are known, empty if the kernel does not say.
	Options() ([]string, error)
	// KeepAliveTimeout is the KATO of a controller, 0 if it has no keep-alive.
	KeepAliveTimeout(c *Controller) (time.Duration, error)
	// InFlight is how many commands of a controller are under way.
	InFlight(c *Controller) (int, error)
	// IOPolicy is how multipath chooses among the paths of a controller's subsystem: numa,
	// round-robin, queue-depth.
	IOPolicy(c *Controller) (string, error)
	// Exclusions are what the operator wants nobody to connect to.
	Exclusions() (Exclusions, error)
}

// Linux is the running kernel.
type Linux struct {
	Tree
	Writer *Writer // of writes that may block; nil: this process does them
}

var _ Kernel = Linux{}

// Destroy implements Kernel.
func (Linux) Destroy(s Sockets) (int, error) { return DestroySockets(s) }

// Unqueue implements Kernel.
func (Linux) Unqueue(source netip.Addr) error { return unqueue(source) }

// On reports whether a controller lies on a path: what goes from source to target. A controller
// whose source is not known lies on all paths to its target.
func (c *Controller) On(source, target netip.Addr) bool {
	return c.Target.Addr() == target && (!c.Source.IsValid() || c.Source == source)
}
