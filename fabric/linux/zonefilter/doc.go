// Package zonefilter enforces the rows of package hardzone in the Linux kernel: eBPF programs
// at the access ports drop what two hosts send that may not talk. It implements
// hardzone.Dataplane.
//
// The program (bpf/filter.c) stands in the driver (XDP), in traffic control (TCX), or behind the
// driver (generic XDP), whichever a port has. Tables and links are pinned in a bpf file system:
// they outlive the process, and the next one takes them over as they are, with a newer program
// in place of the old one without a moment in between.
//
// It needs Linux 5.18 (XDP of frames in fragments), traffic control 6.6; the oldest kernel that it
// is tested on is 6.12. It needs no BTF of the kernel, and the rights of
// CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, or of root.
package zonefilter
