// Package gnmi is the server of gNMI 0.10: Capabilities, Get, Set of what may be set, and
// Subscribe, all on the table of package telemetry.
//
// One hub reads the device once a beat (and shortly after an event) for all streams, however many
// there are, and hands each what changed of what it asked for; a client that is slow gets the
// newest value of a path. Nothing here is on the way from a fault to a notice: the hub asks for
// snapshots as any operator does.
package gnmi
