// Package daemon assembles the rooms into one device that runs.
//
// Nothing is decided here. Device is the goroutine that owns a device.Core on a real
// switch: it takes events in order, acts for the Core, and gives readers snapshots.
// Daemon builds everything a configuration asks for as tasks: dataplane, sessions,
// management API, what is kept.
package daemon
