// Package virtual has what it takes to run devices in virtual time: what is planned, and the
// sessions between device.Cores. The simulation (testbed/sim) and the model (model/control) stand
// on it; how bytes get from one end of a session to the other is theirs.
package virtual
