// Package control places the control plane on the simulated fabric: for each switch
// the very machine that inofd runs (device.Core with lldp, errdown, inof, zone and
// hostnotify inside) with its BFD sessions, for each host port the agent of cmd/snsd.
// All run in the virtual time of the model; nothing in here decides anything of its own.
//
// What they say to each other are frames on the model's links. LLDP and NTS frames
// are link-local. Sessions are inof.Session machines over a byte stream (stream.go, a
// plain TCP) and BFD packets go in UDP, both as IPv4 packets that the switches route
// as they route data. So all of it is serialised, waits in the queue of its class, is
// paused with it, and is lost with a cut link, on a black path, or in a dead switch.
//
// What is not the model's is a parameter (Config): how long hardware takes to report
// lost carrier, how long a daemon is busy with an event, what a host does about a
// notice and how long that takes it. Report tells the causal chain of each fault.
//
// All events are timers of the engine: one scenario and one seed give one run.
package control
