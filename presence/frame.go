package presence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/openinof/inof/fabric"
)

// ARP for IPv4 over Ethernet (RFC 826).
const (
	arpLen     = 28
	arpRequest = 1
	arpReply   = 2
)

// IPv6 and Neighbor Discovery (RFC 8200 section 3, RFC 4861 sections 4.3 and 4.4).
const (
	ipv6HeaderLen = 40
	protoICMPv6   = 58
	hopLimit      = 255 // RFC 4861 section 7.1: a smaller one came through a router
	ndLen         = 24  // of a solicitation or advertisement without options
	ndSolicit     = 135
	ndAdvertise   = 136
)

// ErrNotAnswer is wrapped by ParseAnswer's error for a frame that says nothing about who
// has an address: requests of others, other protocols over IPv6.
var ErrNotAnswer = errors.New("no answer")

// FrameError says what is wrong with a frame.
type FrameError struct {
	Field string
	Value int
	Want  string
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("%s is %d, want %s", e.Field, e.Value, e.Want)
}

// Question gives the frame that asks who has an address, from a port with the address src.
func Question(src fabric.MAC, addr netip.Addr) []byte {
	if addr.Is4() {
		return arpProbe(src, addr)
	}
	return solicitation(src, addr)
}

func arpProbe(src fabric.MAC, addr netip.Addr) []byte {
	b := fabric.AppendEthernet(nil, fabric.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, src, fabric.EtherTypeARP)
	b = append(b, 0, 1, 0x08, 0, 6, 4, 0, arpRequest)
	b = append(b, src[:]...)
	b = append(b, make([]byte, 4+6)...) // no sender's address, no target's hardware address
	b = append(b, addr.AsSlice()...)
	return append(b, make([]byte, 60-len(b))...) // the shortest Ethernet frame without its FCS
}

func solicitation(src fabric.MAC, addr netip.Addr) []byte {
	a := addr.As16()
	group := netip.AddrFrom16([16]byte{0xff, 2, 11: 1, 12: 0xff, 13: a[13], 14: a[14], 15: a[15]}) // RFC 4291 section 2.7.1
	g := group.As16()
	b := fabric.AppendEthernet(nil, fabric.MAC{0x33, 0x33, g[12], g[13], g[14], g[15]}, src, fabric.EtherTypeIPv6)
	b = append(b, 0x60, 0, 0, 0, 0, ndLen, protoICMPv6, hopLimit)
	b = append(b, make([]byte, 16)...) // the unspecified address
	b = append(b, g[:]...)
	b = append(b, ndSolicit, 0, 0, 0, 0, 0, 0, 0)
	b = append(b, a[:]...)
	ip := b[fabric.EthernetHeaderLen:]
	binary.BigEndian.PutUint16(ip[ipv6HeaderLen+2:], checksum(ip))
	return b
}

// checksum is that of the ICMPv6 message in an IPv6 packet whose checksum field is 0, over
// the pseudo-header too (RFC 8200 section 8.1); over a packet with its checksum it is 0.
func checksum(ip []byte) uint16 {
	sum := uint32(len(ip)-ipv6HeaderLen) + protoICMPv6
	for i := 8; i < len(ip); i += 2 {
		w := uint32(ip[i]) << 8
		if i+1 < len(ip) {
			w |= uint32(ip[i+1])
		}
		sum += w
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// Answer is what a frame says: the machine with this MAC address has the address.
type Answer struct {
	Addr netip.Addr
	MAC  fabric.MAC
}

// ParseAnswer reads the payload of an Ethernet frame with the given EtherType. Errors wrap
// ErrNotAnswer, or are a *FrameError.
func ParseAnswer(etherType uint16, src fabric.MAC, p []byte) (Answer, error) {
	switch etherType {
	case fabric.EtherTypeARP:
		return parseARP(p)
	case fabric.EtherTypeIPv6:
		return parseAdvertisement(src, p)
	}
	return Answer{}, fmt.Errorf("%w: EtherType %#04x", ErrNotAnswer, etherType)
}

func parseARP(p []byte) (Answer, error) {
	switch {
	case len(p) < arpLen:
		return Answer{}, &FrameError{"length of the ARP packet", len(p), "28 bytes or more"}
	case binary.BigEndian.Uint16(p) != 1 || binary.BigEndian.Uint16(p[2:]) != 0x0800 || p[4] != 6 || p[5] != 4:
		return Answer{}, fmt.Errorf("%w: ARP for something else than IPv4 over Ethernet", ErrNotAnswer)
	}
	if op := binary.BigEndian.Uint16(p[6:]); op != arpReply {
		return Answer{}, fmt.Errorf("%w: ARP operation %d", ErrNotAnswer, op)
	}
	a := Answer{Addr: netip.AddrFrom4([4]byte(p[14:18])), MAC: fabric.MAC(p[8:14])}
	if a.Addr.IsUnspecified() || !a.MAC.IsHost() {
		return Answer{}, fmt.Errorf("%w: an ARP reply of no sender: %s at %s", ErrNotAnswer, a.Addr, a.MAC)
	}
	return a, nil
}

func parseAdvertisement(src fabric.MAC, p []byte) (Answer, error) {
	if len(p) < ipv6HeaderLen {
		return Answer{}, &FrameError{"length of the IPv6 packet", len(p), "40 bytes or more"}
	}
	if p[0]>>4 != 6 || p[6] != protoICMPv6 {
		return Answer{}, fmt.Errorf("%w: not ICMPv6", ErrNotAnswer)
	}
	n := int(binary.BigEndian.Uint16(p[4:]))
	if n > len(p)-ipv6HeaderLen {
		return Answer{}, &FrameError{"IPv6 payload length", n, fmt.Sprintf("at most %d", len(p)-ipv6HeaderLen)}
	}
	p = p[:ipv6HeaderLen+n] // what follows is padding
	icmp := p[ipv6HeaderLen:]
	switch {
	case n == 0 || icmp[0] != ndAdvertise:
		return Answer{}, fmt.Errorf("%w: not a Neighbor Advertisement", ErrNotAnswer)
	case n < ndLen:
		return Answer{}, &FrameError{"length of the Neighbor Advertisement", n, "24 bytes or more"}
	case p[7] != hopLimit:
		return Answer{}, &FrameError{"hop limit", int(p[7]), "255"}
	case icmp[1] != 0:
		return Answer{}, &FrameError{"ICMPv6 code", int(icmp[1]), "0"}
	case checksum(p) != 0:
		return Answer{}, &FrameError{"ICMPv6 checksum", int(binary.BigEndian.Uint16(icmp[2:])), "another one"}
	}
	a := netip.AddrFrom16([16]byte(icmp[8:24]))
	if a.IsMulticast() || a.IsUnspecified() || a.Is4In6() {
		return Answer{}, fmt.Errorf("%w: a Neighbor Advertisement for %v", ErrNotAnswer, a)
	}
	return Answer{Addr: a, MAC: src}, nil
}
