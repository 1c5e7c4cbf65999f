// Package bfd watches the paths between devices: Bidirectional Forwarding
// Detection after RFC 5880, over one hop (RFC 5881) and over many (RFC 5883), on
// IPv4 and IPv6. It stands between the network and the daemon, which names the
// devices to watch and tells its hosts when the hosts of another device cannot be
// reached any more.
//
// The chain of a packet:
//
//	socket -> Arrival -> Manager.Receive -> session -> Events, Sends -> socket
//
// The Manager holds the sessions, finds the one a packet belongs to, and keeps
// their timers in a heap; it is pure code: no socket, goroutine, clock or lock, and
// every call takes the time. A Runner (transport.go) gives it a Conn and a clock:
// one goroutine on a thread of its own that reads what has come, then lets timers
// fire, then sends. Linux sockets and an in-memory network both are a Conn.
//
// What is told is not the protocol's state but what follows from it (RFC 5882): Down at once (a
// peer that was only started again gets a few seconds), Up again after a hold-up time that grows
// while a session flaps, and AdminDown as no fault at all, since it says nothing about the path.
//
// Timing: detection counts from the moment the kernel got a packet, not from when
// it was read. Everything received before a wake-up is handed in before detection
// timers fire, and after a pause of the process each session that may have
// suffered from it gets one detection time to be heard again.
//
// Left out: sending echo packets (those of a peer are returned), Demand mode of our
// own (that of a peer is honoured), the point-to-multipoint modes of RFC 8562, and
// authentication by simple password or MD5, which protect nothing.
package bfd
