// Package linux is the dataplane of a real switch: ports are network interfaces
// of one network namespace.
//
// Links. One rtnetlink socket (man 7 rtnetlink) carries both the notifications of
// RTNLGRP_LINK and the answers to our own questions, so what is read from it is
// in the order in which the kernel said it and an old answer can never overwrite
// newer news. After any error or lost message (ENOBUFS) everything is dumped
// again. Events are made from differences of state, never from messages.
//
// Carrier. The kernel's linkwatch holds a carrier notification back for up to one
// second when another one, of any interface on the machine, went out shortly
// before. So the loss is heard in the kernel function that notices it (package carrier; early.go
// says how far that is believed). Where the kernel does not let us, or not of all changes, a poller
// reads the ports' carrier change counts in addition and asks for the state of a port whose
// count moved; see carrier.go.
//
// Frames. Each port has one AF_PACKET socket (man 7 packet) for each EtherType,
// with its own kernel filter and receive buffer: a storm on one port or in one
// protocol cannot displace what the others receive, and traffic of other
// EtherTypes never reaches the filter at all.
//
// Health. Frames, CRC errors and changes of carrier come from the link statistics
// (IFLA_STATS64). What drivers alone count, PFC frames and pause times by priority,
// CRC errors at the wire, broadcast frames, is read by ioctl ETHTOOL_GSTATS; drivers.go
// has their names, Config.Counters adds to them. The received power is read from the
// module by ETHTOOL_GMODULEEEPROM for SFP (SFF-8472, internally calibrated) and QSFP
// (SFF-8636, SFF-8436). A field that a driver or module does not have is not valid.
package linux
