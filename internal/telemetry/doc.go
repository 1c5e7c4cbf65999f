// Package telemetry is the one table of what can be known of a device: for each leaf its path,
// YANG type, unit, source, class and least period, where its value stands in a Snapshot, and
// the metric that Prometheus has of it. All outlets read this table; docs/telemetry.md
// follows from it.
//
// A value has the time when it was read, never that of a later question. What a platform does
// not tell is absent, never 0. The package reads nothing itself: a Snapshot is given to it.
package telemetry
