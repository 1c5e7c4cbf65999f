// Package errdown decides when an access port has a fault and when it is well
// again. It stands between the dataplane, whose port events and counters it
// takes, and the daemon, which tells other switches and hosts what is unreachable
// and opens or shuts ports.
//
// The chain is the same for every cause:
//
//	event or reading -> Detector -> trip -> state per port and cause -> recovery
//
// A detector looks at one port for one cause and says trip, clear or nothing. The
// Monitor keeps the state: faulty since when, recovery by itself after a hold-up
// time (causes that are a level, like link-down), or by timer or by hand (causes
// that are latched, like link-flap and every cause that shuts the port: what would
// tell that all is well again cannot be seen there). A port has any number of causes at once and
// reports the most serious; it is well when none is left. A further cause is one
// file with a Detector, and one line in the table in cause.go.
//
// When a cause shuts the port, the carrier loss that follows is the port's own
// doing: it is neither a link-down nor a flap. When the port is opened again it is
// a link-down until the carrier is there, so that there is no moment at which a
// port without carrier counts as well.
//
// What is measured is judged by totals that drivers reset, wrap and let leap. A total
// that went back begins anew; one that grew by more than can be believed counts only
// if it goes on like that; what is counted while a link comes and goes is normal; a
// reading is spread over the time since the one before, so that late readings are no
// bursts. All of these are counted as SampleJumps or SamplesStale. What no rule can
// tell from the truth is a small leap that no other reading contradicts.
//
// Pure code: no socket, goroutine, clock or lock; every call takes the time.
package errdown
