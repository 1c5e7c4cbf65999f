// Package vm runs the virtual machine of a lab's node: Debian's kernel in QEMU, without
// KVM, its network cards plugged into the node's end of the lab's links. It stands
// between a switch of the lab and a kernel that a namespace cannot have: that of a
// storage host with NVMe over Fabrics.
//
// One process per machine (Run, the whole of `inofctl lab vm`) passes frames between
// each link and the machine's card, and gives the card the carrier that the link has.
// The machine's first process is testbed/vm/init; scripts/vm (`make vm`) prepares the
// kernel and the file system. What is run in the machine goes through a socket of that
// process, see Do.
//
// Frames between two machines or a machine and a daemon of the lab are whole. What
// another node's kernel sends has its checksums filled in, because the lab takes that
// offload from the other end of the link (testbed). An interface that is shut inside the
// machine takes no carrier from the switch; a pulled cable does, at both ends.
package vm
