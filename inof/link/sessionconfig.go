package link

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// SessionConfig is what a session needs to know of its own side.
type SessionConfig struct {
	Self   netip.Addr
	Expect netip.Addr                   // device id that the peer must have; zero: any
	Allow  func(device netip.Addr) bool // nil: every device
	// Everything tells which devices may ask for all hosts; nil: every one.
	Everything func(device netip.Addr) bool
	// Identify reports whether the transport has proved that the peer is a device; it
	// must be set in mode tls and is called with the device id of its Open.
	Identify func(device netip.Addr) error
	Dialer   bool // this side opened the connection
	Roles    wire.Roles
	Epoch    uint64
	Caps     wire.Capabilities
	Resume   *wire.Resume
	// ResumeFor gives Resume once the listener knows the device; nil: Resume.
	ResumeFor func(device netip.Addr) *wire.Resume
	Auth      Auth
	Nonce     [wire.NonceLen]byte // random, new for each session
	// Zero: the defaults.
	Hold, Keepalive, HandshakeTimeout time.Duration

	// Confirm: a listener answers the dialer's proof when its owner calls Confirm, and
	// not of itself: the owner may refuse a peer that has proved who it is.
	Confirm bool

	taggers taggers // what it has in common with other sessions; nil: each half its own
}

// withDefaults fills in what is zero and checks the rest.
func (c SessionConfig) withDefaults() (SessionConfig, error) {
	if c.Hold == 0 {
		c.Hold = wire.DefaultHold
	}
	if c.Keepalive == 0 {
		c.Keepalive = min(wire.DefaultKeepalive, c.Hold/3)
	}
	if c.HandshakeTimeout == 0 {
		c.HandshakeTimeout = wire.HandshakeTimeout
	}
	if err := wire.CheckAddr("device id", c.Self); err != nil {
		return c, err
	}
	if err := checkTimers(c.Hold, c.Keepalive); err != nil {
		return c, err
	}
	return c, c.Auth.Validate()
}

func checkTimers(hold, keepalive time.Duration) error {
	switch {
	case hold < wire.MinHold || hold > wire.MaxHold:
		return &wire.ProtocolError{Code: wire.CodeTimers, Where: "Open.hold", Detail: fmt.Sprintf("%v, want %v..%v", hold, wire.MinHold, wire.MaxHold)}
	case keepalive < wire.MinKeepalive || keepalive > hold:
		return &wire.ProtocolError{Code: wire.CodeTimers, Where: "Open.keepalive", Detail: fmt.Sprintf("%v, want %v..%v (the hold time)", keepalive, wire.MinKeepalive, hold)}
	}
	return nil
}
