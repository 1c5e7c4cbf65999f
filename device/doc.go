// Package device is the control state of one device: lldp, errdown, bfd, zone, inof and
// hostnotify wired together as one pure machine.
//
// A Core takes events and the time, acts through the Actions interface, and owns no
// socket, goroutine or clock, so that a simulation runs thousands of them. On a switch
// internal/daemon owns one in a goroutine and hands readers what it shows.
//
// How a change travels (a cable is pulled): fabric.Event -> Core.Port -> errdown ->
// fault record -> inof.Client -> reflector -> Core.apply at the other device ->
// zone.Directory -> hostnotify -> frame. Nothing in that chain waits for a disk, a
// lock, a timer or a log line.
package device
