// Package hostkernel is a storage host's kernel as the host agent sees it: which NVMe
// controllers there are (sysfs), how one is connected (/dev/nvme-fabrics) and deleted, how the
// TCP sockets of a dead path are destroyed so that multipath moves I/O at once
// (sock_diag), and whose controller it is (the registry that libnvme keeps).
//
// It acts and does not decide: package snsd says what is to be done. Everything below Root can
// be a tree of files, so that most of it is tested without a kernel that has NVMe.
//
// Silence is no answer: a file that cannot be read is an error with its path, and a
// controller that vanishes while it is read is left out.
package hostkernel
