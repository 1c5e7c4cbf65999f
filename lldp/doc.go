// Package lldp learns hosts and neighbours from LLDP (IEEE 802.1AB-2016): a codec
// for LLDPDUs, the neighbour table of a device with ageing, and the transmitter of
// the device's own LLDPDUs.
//
// It is the first room of the control plane behind the dataplane: frames come in
// from fabric, changes of neighbours go out to zone's Directory. Pure code: no
// socket, goroutine or clock; every call takes the time.
//
// # Who becomes a host
//
//   - An LLDPDU with a valid SNSD registration TLV makes its address a host. The
//     agents mark such an LLDPDU by the Port ID ("snsd_<ifname>_<NN>" or
//     "discovery_<ifname>_<NN>"); without that prefix the registration is honoured
//     all the same, because the TLV alone says what it is, and counted.
//   - An LLDPDU without it makes its usable management addresses hosts of unknown
//     role, unless its sender says that it forwards: a switch, bridge, router or
//     access point (any of these capabilities enabled, and not "station only")
//     announces the address of its own management, which is no storage host.
//   - A neighbour without a usable address is kept for display and yields no host.
//   - An LLDPDU whose SNSD TLV is broken yields no host either, and takes nothing
//     from what the same neighbour said before.
//
// Two neighbours on one port may announce one address (an agent that restarted
// under another number; a host that also runs lldpd). The table then hands out one
// host for that address, registrations first, and reports it gone when the last of
// them is gone. One address behind two ports is not decided here but in zone.
//
// The MAC address of a host says which machine it is: the chassis id, if that is one, else the source
// of its frames. A machine whose chassis id changes under the same source and port id keeps the one
// that it was known by, as long as it announces the address.
//
// # Why an own codec
//
// mdlayher/lldp and mdlayher/ethernet have been without a release since 2015 and
// 2022, are not served by the module proxy, and the former reads the padding of a
// short Ethernet frame as further TLVs.
package lldp
