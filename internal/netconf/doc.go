// Package netconf speaks NETCONF (RFC 6241) over SSH (RFC 6242): operators read what the device
// knows, change the zones by a candidate, and subscribe to its events (RFC 5277). It is a door to
// what the API does and decides nothing: package zone/tree has the edits, the Device has checks,
// commits and their return, packages telemetry and dist/yang what can be known.
//
//	message.go framing.go   bytes to messages (RFC 6242 section 4)
//	xml.go filter.go        messages to trees, and what of a tree is asked for (RFC 6241 section 6)
//	errors.go               what is refused, and how that is said (RFC 6241 appendix A)
//	session.go rpc.go       one session, and what each operation does
//	store.go                the candidate and the locks, which all sessions share
//	server.go hostkey.go    sockets, SSH and who may come in
package netconf
