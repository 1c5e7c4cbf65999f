// Package inof is the protocol between a device and its reflectors: the messages
// of docs/protocol.md, the session that carries them, and the two machines that
// decide what is said, Client and Reflector.
//
// It stands between zone, which holds what a device knows, and the other devices
// of the fabric: a client tells its reflectors of its own hosts and port faults,
// a reflector tells every client the zones, hosts and faults that concern it.
//
// Session, Client and Reflector are pure: bytes or values and the time go in,
// what is to be sent or applied comes out. Sockets, goroutines and clocks live in
// transport.go, server.go, dialer.go and conn.go only.
package inof
