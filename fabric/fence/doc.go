// Package fence decides what an array's switch blocks when a host loses a path to the array, so
// that no copy of a write that is still in the host or in the network reaches the array after the
// host has sent the write again over another path (level "network").
//
// Only the switch of the array blocks: every copy passes its port. A block drops both ways, at
// ingress and at egress of the port; it is confirmed once the port's queue holds no frame from
// before it. A block ends by time (3 x the keep-alive time of NVMe + 2 s, fence.hold), never by a
// guess about a queue.
//
// Pure code: no socket, goroutine or clock. A Dataplane enforces the blocks.
package fence
