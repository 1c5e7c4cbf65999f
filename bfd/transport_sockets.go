package bfd

import (
	"fmt"
	"net/netip"
)

// SocketConfig is what Linux sockets are made from. The zero value listens on all
// addresses of both families.
type SocketConfig struct {
	// Listen are the addresses to receive on; empty: all of IPv4 and of IPv6.
	Listen []netip.Addr
	// NetNS is the path of a network namespace; empty: the one of the process.
	NetNS string
	// MultihopOnly leaves ports 3784 and 3785 alone: another BFD daemon of the device
	// may have them.
	MultihopOnly bool
	// NoEcho leaves port 3785 alone.
	NoEcho bool
	// ReceiveBuffer is the size of a socket's queue in bytes; 0: 4 MiB, about 5,000
	// packets.
	ReceiveBuffer int
	// ControlPort, EchoPort and MultihopPort replace the standard ones in tests; 0:
	// 3784, 3785 and 4784.
	ControlPort, EchoPort, MultihopPort uint16
}

func (c SocketConfig) withDefaults() (SocketConfig, error) {
	if len(c.Listen) == 0 {
		c.Listen = []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
	for _, a := range c.Listen {
		if !a.IsValid() || a.IsMulticast() || a.Is4In6() {
			return c, &ConfigError{"address to receive BFD on", a.String(), "a unicast address or all"}
		}
	}
	if c.ReceiveBuffer == 0 {
		c.ReceiveBuffer = 4 << 20
	}
	if c.ReceiveBuffer < 4096 {
		return c, &ConfigError{"BFD receive buffer", fmt.Sprint(c.ReceiveBuffer), "4096 bytes or more"}
	}
	for _, p := range []struct {
		port *uint16
		std  uint16
	}{{&c.ControlPort, PortControl}, {&c.EchoPort, PortEcho}, {&c.MultihopPort, PortMultihop}} {
		if *p.port == 0 {
			*p.port = p.std
		}
	}
	return c, nil
}
