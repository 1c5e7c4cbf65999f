// Package bfdd keeps BFD in a process of its own, so that the daemon can be stopped,
// killed and started again without a peer noticing anything. It stands between the
// daemon, which says which paths are to be watched, and package bfd, which watches
// them.
//
// The process, `inofd bfd`, is a Server: a bfd.Runner and a unix stream socket. The
// daemon is its owner through a Client. There is one owner; a newer one replaces it.
//
//	owner   -> hello, want (all sessions, always), ask, stop
//	process -> hello, paths (a snapshot, then changes), done, status, bye
//
// A message is one line of JSON, at most MaxLine bytes; what is longer is spread over
// several with "more" set. Anything unknown in a line is an error that ends the
// connection, but in the first line of either side: there the protocol's number and
// the build are compared. A process of another build that is older than the daemon is
// told to stop, which its peers see as AdminDown and not as a fault, and a new one is
// started.
//
// Moments travel as nanoseconds of CLOCK_MONOTONIC, which all processes of a machine
// share and nobody sets.
//
// An owner that reads slowly, or does not run, finds the latest state of each path,
// not every change on the way to it. A process without an owner for the grace time
// says AdminDown to its peers and ends: nobody would make use of what it finds out.
package bfdd
