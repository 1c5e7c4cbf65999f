package linux

import (
	"context"
	"errors"

	"github.com/openinof/inof/fabric"
)

// Dataplane is the dataplane of one network namespace. It implements
// fabric.Dataplane.
type Dataplane struct {
	cfg    Config
	names  fabric.Names
	ready  chan struct{}
	events chan fabric.Event
	frames chan fabric.Frame
}

var _ fabric.Dataplane = (*Dataplane)(nil)

// New checks the configuration and the namespace; it opens nothing yet.
func New(cfg Config) (*Dataplane, error) {
	cfg, names, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &Dataplane{cfg: cfg, names: names, ready: make(chan struct{}),
		events: make(chan fabric.Event, cfg.QueueEvents), frames: make(chan fabric.Frame, cfg.QueueFrames)}, nil
}

// Run implements fabric.Dataplane.
func (d *Dataplane) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Ready implements fabric.Dataplane.
func (d *Dataplane) Ready() <-chan struct{} { return d.ready }

// Events implements fabric.Dataplane.
func (d *Dataplane) Events() <-chan fabric.Event { return d.events }

// Frames implements fabric.Dataplane.
func (d *Dataplane) Frames() <-chan fabric.Frame { return d.frames }

// Send implements fabric.Dataplane.
func (d *Dataplane) Send(port string, frame []byte) error { return errors.ErrUnsupported }

// SetAdmin implements fabric.Dataplane.
func (d *Dataplane) SetAdmin(port string, up bool) error { return errors.ErrUnsupported }

// Counters implements fabric.Dataplane.
func (d *Dataplane) Counters(port string) (fabric.Counters, error) {
	return fabric.Counters{}, errors.ErrUnsupported
}

// String implements fabric.Dataplane.
func (d *Dataplane) String() string { return "linux dataplane " + d.names.String() }
