// Package api is the management interface of a device: the values an operator
// sees as JSON types, the HTTP handler that serves them from a Source, and the
// client that inofctl uses over the daemon's unix socket.
//
// The daemon implements Source with snapshots of its state; nothing here holds
// protocol state. EventLog is the ring of recent events that both the daemon
// writes to and the handler streams from.
package api
