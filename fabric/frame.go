package fabric

import "time"

// EtherType values of the control frames this project sends and receives.
const (
	EtherTypeLLDP uint16 = 0x88cc // IEEE 802.1AB
	EtherTypeNTS  uint16 = 0x88a7 // SNSD notices, acks and zone queries
	EtherTypeARP  uint16 = 0x0806 // RFC 826: who has an address that is claimed twice
	EtherTypeIPv6 uint16 = 0x86dd // Neighbor Discovery (RFC 4861), for the same
)

// Group addresses of the control frames; both are link-local (IEEE 802.1Q table
// 8-1), so a bridge never forwards them.
var (
	MACNearestBridge = MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e} // LLDP nearest bridge
	MACNTS           = MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0d} // NTS frames
	// MACAllNodes is the group of all IPv6 nodes of a link (RFC 2464 section 7), to which
	// they answer who asks without an address.
	MACAllNodes = MAC{0x33, 0x33, 0x00, 0x00, 0x00, 0x01}
)

const (
	// EthernetHeaderLen is the length of an untagged Ethernet II header in bytes.
	EthernetHeaderLen = 14
	// MaxControlPayload is the largest payload of a control frame in bytes.
	MaxControlPayload = 1500
)

// Frame is one control frame that a port received.
type Frame struct {
	Port      string
	Src, Dst  MAC
	EtherType uint16
	Payload   []byte    // after the Ethernet header, padding included; owned by the receiver
	At        time.Time // the kernel's receive time stamp where there is one
}

// AppendEthernet appends an untagged Ethernet II header to b.
func AppendEthernet(b []byte, dst, src MAC, etherType uint16) []byte {
	b = append(b, dst[:]...)
	b = append(b, src[:]...)
	return append(b, byte(etherType>>8), byte(etherType))
}
