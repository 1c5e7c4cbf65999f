// Package presence finds out whether the host that has an address is still there, when
// another one claims the address too: it asks the host, out of the port behind which it is
// known, for the address, and whoever answers there keeps it.
//
// An IPv4 address is asked for by an ARP probe (RFC 5227 section 2.1.1: a request without
// an address of the sender), an IPv6 address by a Neighbor Solicitation from the unspecified
// address (RFC 4862 section 5.4.2), as neither needs an address of the switch. Addresses
// behind a VLAN tag cannot be asked so; there the ack of a notice is the answer.
//
// The package decides only. Its place in the chain: the zone room says that an address is
// claimed twice, this room whether its holder answers, and the device withdraws a holder
// that does not.
package presence
