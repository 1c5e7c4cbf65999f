// Package fabric is a switch's dataplane as the control plane sees it: ports
// with carrier, administrative state and counters, and the control frames (LLDP,
// NTS) that enter and leave through them.
//
// It is the first link of the chain: a dataplane (fabric/linux on real ports,
// model on simulated ones, Fake in tests) turns what happens on the wire
// into the Event and Frame values of this package; everything above decides on
// those values alone.
package fabric
