// Package portguard is an eBPF program at ingress and egress of each access port. It has two tasks:
//
//   - No LLDP or SNSD frame passes from a host, or from the fabric, to another host: both are
//     messages of a link, and a host that could send them to another one could make it leave its
//     paths. Frames of this switch's own daemon pass.
//   - It is the fence.Dataplane of a switch that forwards in the kernel: it drops the frames of an
//     address pair, or of a port, until a time that stands in the map. A block therefore ends
//     although the daemon is dead, and stands although the daemon was killed.
//
// The agent of an array uses it with Config.AtArray at its own interfaces, for blocks alone.
//
// It needs Linux 6.1. The programs are attached by TCX (6.6), else by cls_bpf at clsact. What a NIC
// handles without the kernel (RDMA of the array's own NIC, an ASIC that forwards) does not pass it.
//
// # The queue behind the block
//
// The kernel runs the egress program before the port's queue (__dev_queue_xmit, net/core/dev.c), so
// frames that were queued before a block still leave. Drained reports true once three things were
// seen in this order: every processor has left the code between program and queue (a grace period of
// RCU, by membarrier), the queue was empty, and the ring of the driver was empty (byte queue limits
// count what it holds). It never concludes from time and line rate that a queue is empty: a port
// that is paused (PFC) holds its frames for as long as the pause lasts.
package portguard
