package presence

import (
	"encoding/binary"
	"net/netip"

	"github.com/openinof/inof/fabric"
)

// Reply gives the frame by which a host with the MAC address mac answers a question, as the
// kernel of a host does; nil when the frame is no question for an address that it has. Hosts
// that are not real use it.
func Reply(frame []byte, mac fabric.MAC, has func(netip.Addr) bool) []byte {
	if len(frame) < fabric.EthernetHeaderLen {
		return nil
	}
	asker, p := fabric.MAC(frame[6:12]), frame[fabric.EthernetHeaderLen:]
	switch binary.BigEndian.Uint16(frame[12:]) {
	case fabric.EtherTypeARP:
		return arpReplyTo(p, mac, asker, has)
	case fabric.EtherTypeIPv6:
		return advertisement(p, mac, has)
	}
	return nil
}

func arpReplyTo(p []byte, mac, asker fabric.MAC, has func(netip.Addr) bool) []byte {
	if len(p) < arpLen || binary.BigEndian.Uint16(p[6:]) != arpRequest {
		return nil
	}
	addr := netip.AddrFrom4([4]byte(p[24:28]))
	if !has(addr) {
		return nil
	}
	b := fabric.AppendEthernet(nil, asker, mac, fabric.EtherTypeARP)
	b = append(b, 0, 1, 0x08, 0, 6, 4, 0, arpReply)
	b = append(append(b, mac[:]...), addr.AsSlice()...)
	b = append(append(b, asker[:]...), p[14:18]...)
	return append(b, make([]byte, 60-len(b))...)
}

// advertisement answers all nodes, as who asks has no address (RFC 4861 section 7.2.4).
func advertisement(p []byte, mac fabric.MAC, has func(netip.Addr) bool) []byte {
	if len(p) < ipv6HeaderLen+ndLen || p[6] != protoICMPv6 || p[ipv6HeaderLen] != ndSolicit {
		return nil
	}
	a := [16]byte(p[ipv6HeaderLen+8:])
	if !has(netip.AddrFrom16(a)) {
		return nil
	}
	const override, linkAddress = 0x20, 2
	b := fabric.AppendEthernet(nil, fabric.MACAllNodes, mac, fabric.EtherTypeIPv6)
	b = append(b, 0x60, 0, 0, 0, 0, ndLen+8, protoICMPv6, hopLimit)
	b = append(b, a[:]...)
	b = append(b, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	b = append(b, ndAdvertise, 0, 0, 0, override, 0, 0, 0)
	b = append(b, a[:]...)
	b = append(append(b, linkAddress, 1), mac[:]...)
	ip := b[fabric.EthernetHeaderLen:]
	binary.BigEndian.PutUint16(ip[ipv6HeaderLen+2:], checksum(ip))
	return b
}
