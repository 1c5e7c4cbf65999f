// Package serve runs a scenario's fabric in real time for daemons of other processes:
// each switch is a dataplane behind a unix socket (model/remote), hosts run the
// agent's machine and storage load, and operators break things and look on.
//
// Daemons talk to each other as they always do, over TCP and UDP of the machine they
// run on: sessions and BFD do not pass the simulated links here. Where they must,
// run the control plane in virtual time (model/control).
package serve
