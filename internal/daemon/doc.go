// Package daemon assembles the rooms into one device.
//
// Core is the device's control state: lldp, errdown, zone, inof and hostnotify wired
// together as one pure machine. It takes events and the time, acts through the
// Actions interface, and owns no socket, goroutine or clock, so that a simulation
// runs thousands of them. Device is the goroutine that owns a Core on a real
// switch; readers get snapshots through it. Run builds everything a configuration
// asks for as tasks: dataplane, sessions, management API, what is kept.
//
// How a change travels (a cable is pulled): fabric.Event -> Core.Port -> errdown ->
// fault record -> inof.Client -> reflector -> Core.apply at the other device ->
// zone.Directory -> hostnotify -> frame. Nothing in that chain waits for a disk, a
// lock, a timer or a log line.
package daemon
