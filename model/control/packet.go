package control

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/model"
)

// Layout of routed frames: Ethernet, IPv4 without options, then UDP or TCP without
// options. Checksums are left 0: the model loses frames, it does not change them.
const (
	etherIPv4 = 0x0800
	protoTCP  = 6
	protoUDP  = 17
	ipAt      = fabric.EthernetHeaderLen
	l4At      = ipAt + 20
	tcpLen    = 20
	udpLen    = 8

	portINOF = 17999 // where reflectors listen; any port would do
	// Dynamic ports, for BFD (RFC 5881 section 4) and for the dialer's end.
	portFirst = 49152
)

// deviceAddr is the device id of a switch, from its node number.
func deviceAddr(n model.NodeID) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 255, byte(n >> 8), byte(n)})
}

// deviceNode is the inverse of deviceAddr.
func deviceNode(a netip.Addr) model.NodeID {
	b := a.As4()
	return model.NodeID(b[2])<<8 | model.NodeID(b[3])
}

// maxSwitchNode bounds the node numbers that deviceAddr knows.
const maxSwitchNode = 1<<16 - 1

// HostAddr is the address of a host port.
func HostAddr(e model.EndpointID) netip.Addr {
	k := int(e) + 1
	return netip.AddrFrom4([4]byte{10, byte(k >> 16), byte(k >> 8), byte(k)})
}

// HostEndpoint is the inverse of HostAddr; false for other addresses.
func HostEndpoint(a netip.Addr, ends int) (model.EndpointID, bool) {
	if !a.Is4() {
		return 0, false
	}
	b := a.As4()
	k := int(b[1])<<16 | int(b[2])<<8 | int(b[3])
	return model.EndpointID(k - 1), b[0] == 10 && k >= 1 && k <= ends
}

// portMAC is the locally administered address of a port of the fabric.
func portMAC(p model.PortID) fabric.MAC {
	m := fabric.MAC{0x02, 0x4d}
	binary.BigEndian.PutUint32(m[2:], uint32(p))
	return m
}

// TCP flags that the streams use.
const (
	flagFIN = 1
	flagSYN = 2
	flagRST = 4
	flagACK = 16
)

// segment is one TCP segment.
type segment struct {
	src, dst model.NodeID
	sport    uint16
	dport    uint16
	seq, ack uint32
	flags    uint8
	data     []byte
}

// ipv4 begins a routed frame with room for length bytes behind the IPv4 header.
func ipv4(src, dst model.NodeID, proto, tos uint8, length int) []byte {
	b := make([]byte, l4At+length)
	copy(b[0:], []byte{2, 0xff, 0, 0, byte(dst >> 8), byte(dst), 2, 0xff, 0, 0, byte(src >> 8), byte(src)})
	binary.BigEndian.PutUint16(b[12:], etherIPv4)
	ip := b[ipAt:]
	ip[0], ip[1] = 0x45, tos
	binary.BigEndian.PutUint16(ip[2:], uint16(20+length))
	ip[6] = 0x40 // don't fragment
	ip[8], ip[9] = 255, proto
	s, d := deviceAddr(src).As4(), deviceAddr(dst).As4()
	copy(ip[12:], s[:])
	copy(ip[16:], d[:])
	return b
}

func (g *segment) frame(tos uint8) []byte {
	b := ipv4(g.src, g.dst, protoTCP, tos, tcpLen+len(g.data))
	t := b[l4At:]
	binary.BigEndian.PutUint16(t[0:], g.sport)
	binary.BigEndian.PutUint16(t[2:], g.dport)
	binary.BigEndian.PutUint32(t[4:], g.seq)
	binary.BigEndian.PutUint32(t[8:], g.ack)
	t[12], t[13] = tcpLen/4<<4, g.flags
	binary.BigEndian.PutUint16(t[14:], 65535)
	copy(t[tcpLen:], g.data)
	return b
}

// datagram is one UDP datagram.
type datagram struct {
	src, dst     model.NodeID
	sport, dport uint16
	data         []byte
}

func (d *datagram) frame(tos uint8) []byte {
	b := ipv4(d.src, d.dst, protoUDP, tos, udpLen+len(d.data))
	u := b[l4At:]
	binary.BigEndian.PutUint16(u[0:], d.sport)
	binary.BigEndian.PutUint16(u[2:], d.dport)
	binary.BigEndian.PutUint16(u[4:], uint16(udpLen+len(d.data)))
	copy(u[udpLen:], d.data)
	return b
}

// parseRouted reads a routed frame: a segment or a datagram, the other is nil.
func parseRouted(b []byte) (*segment, *datagram, error) {
	if len(b) < l4At+udpLen || binary.BigEndian.Uint16(b[12:]) != etherIPv4 || b[ipAt] != 0x45 {
		return nil, nil, fmt.Errorf("%w: frame of %d bytes is not IPv4 of this fabric", ErrConfig, len(b))
	}
	ip := b[ipAt:]
	src, dst := deviceNode(netip.AddrFrom4([4]byte(ip[12:16]))), deviceNode(netip.AddrFrom4([4]byte(ip[16:20])))
	l4 := b[l4At:]
	sport, dport := binary.BigEndian.Uint16(l4[0:]), binary.BigEndian.Uint16(l4[2:])
	switch {
	case ip[9] == protoUDP:
		return nil, &datagram{src: src, dst: dst, sport: sport, dport: dport, data: l4[udpLen:]}, nil
	case ip[9] == protoTCP && len(l4) >= tcpLen:
		return &segment{src: src, dst: dst, sport: sport, dport: dport, seq: binary.BigEndian.Uint32(l4[4:]), ack: binary.BigEndian.Uint32(l4[8:]), flags: l4[13], data: l4[tcpLen:]}, nil, nil
	}
	return nil, nil, fmt.Errorf("%w: IP protocol %d in a frame of %d bytes", ErrConfig, ip[9], len(b))
}
