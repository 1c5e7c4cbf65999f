// Package cluster keeps the zones of several reflectors in one replicated log (Raft:
// Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm", 2014;
// the implementation is hashicorp/raft).
//
// It stands before inof.Reflector: what operators change at any member is an Entry;
// once a majority has it on disk, every member's Machine applies it, and the reflector
// of each member tells its clients. Hosts and faults never pass through here: they
// need no consensus.
//
// Entry, Machine, the snapshot format, the handshake and the codec of the messages
// between members are pure. Node is the edge: it owns the disk, the connections and
// the goroutines.
//
// A member is known to the others by its device id and its incarnation, a random
// number that is made with its state on disk. A member that has lost its disk has
// another incarnation, so it cannot vote or acknowledge in the name of what it has
// forgotten; an operator replaces it.
package cluster
