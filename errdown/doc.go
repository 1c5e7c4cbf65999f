// Package errdown decides when an access port has a fault and when it is well
// again. It stands between the dataplane, whose port events and counters it
// takes, and the daemon, which tells other switches and hosts what is unreachable
// and opens or shuts ports.
//
// The chain is the same for every cause:
//
//	event or counters -> Detector -> trip -> state per port and cause -> recovery
//
// A detector looks at one port for one cause and says trip, clear or nothing. The
// Monitor keeps the state: faulty since when, recovery by itself after a hold-up
// time (causes that are a level, like link-down), or by timer or by hand (causes
// that are latched, like link-flap). A port has any number of causes at once and
// reports the most serious; it is well when none is left. A further cause is one
// file with a Detector, and one line in the table in cause.go.
//
// When a cause shuts the port, the carrier loss that follows is the port's own
// doing: it is neither a link-down nor a flap. When the port is opened again it is
// a link-down until the carrier is there, so that there is no moment at which a
// port without carrier counts as well.
//
// Pure code: no socket, goroutine, clock or lock; every call takes the time.
package errdown
