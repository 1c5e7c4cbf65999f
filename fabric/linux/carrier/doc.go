// Package carrier hears of the loss of carrier in the kernel function that notices it
// (linkwatch_fire_event, bpf/carrier.c), before the kernel's work queue has told netlink: that
// takes some tenths of a millisecond, and for a physical interface up to a second when another
// one has changed shortly before.
//
// A word says what the kernel knew at that moment and is numbered by the count of changes of the
// interface, the one that netlink tells too. It is no more than early: words may be lost, and
// who hears them holds on to netlink beside it.
//
// The program is attached by fentry, else by a kprobe (amd64 and arm64). It needs BTF of the
// kernel, a ring buffer (Linux 5.8), and CAP_BPF with CAP_PERFMON, or root. One kernel takes
// about 38 programs at one function: where more daemons run (labs), the others hear netlink.
package carrier
