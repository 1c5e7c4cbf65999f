// Package fence decides what an array's switch blocks when a host loses a path to the array, so
// that no copy of a write that is still in the host or in the network reaches the array after the
// host has sent the write again over another path (level "network").
//
// Only the switch of the array blocks: every copy passes its port. A block drops both ways, at
// ingress and at egress of the port; it is confirmed once the port's queue holds no frame from
// before it. A block ends by time (3 x the keep-alive time of NVMe + 2 s, fence.hold), never by a
// guess about a queue. That time counts from when the queue was empty: what it sends last begins
// the array's keep-alive time-out anew, so a queue that took more than a second prolongs the block.
//
//	fault                                    answer                                        confirmed
//	port of an array passes nothing (lost    the port as a whole, if each of its pairs     when the block is in force:
//	carrier, or shut by error-down)          has another path; else the pairs that do      a lost carrier empties a queue
//	host unreachable: BFD to its device,     the pair, at each local port of the array     when the queue is empty
//	or its own port
//	left its zone, moved, aged out           none                                          -
//
// A lost carrier is not confirmed before the block is in force: the link might be back before.
// search_test.go searches all interleavings, and shows for each rule what is lost without it.
//
// Pure code: no socket, goroutine or clock. A Dataplane enforces the blocks.
package fence
