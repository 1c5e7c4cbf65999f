// Package failover measures what counts in the end: how long I/O stands still when a path fails.
//
// A virtual machine with Debian's kernel is the storage host, with NVMe multipath over
// two planes, and, in a network namespace of its own, the array (nvmet). Between them stand
// real daemons: on each plane an access switch at the host, a router and an access switch at the
// array; a reflector beside them. Faults strike the links outside; each is tried with nothing
// done about it, with the method of the existing host agent, and with ours.
//
// Over TCP the array and the host share one machine, so that one processor is emulated, not two.
// Their packets still cross every switch. Over RDMA the array is a machine of its own: soft RoCE is
// to be had in a machine's first namespace only. The host's clock times all I/O and all notices.
package failover
