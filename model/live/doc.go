// Package live runs a simulated fabric in real time: every node becomes a
// fabric.Dataplane, so that the daemon and the host agent work on it as on real ports.
// Virtual time follows the clock; data traffic, PFC and faults go on below as in any
// scenario.
package live
