// Package nowait reads and writes sockets that do not block, without telling the Go scheduler that
// a system call is made: it may be told because a call may wait, which these cannot. What it does
// then costs more than the call where a process has just been woken: it wakes the thread that
// watches over system calls (sysmon), which takes 10 us on a virtual processor that rests, and
// again every 20 us as long as something goes on.
package nowait

import (
	"syscall"
	"unsafe"
)

// Read reads from a file descriptor that does not block what is there, at most len(b) bytes. EINTR
// is tried again. The error is a syscall.Errno, EAGAIN when nothing is there; n is 0 then.
func Read(fd uintptr, b []byte) (n int, err error) { return call(syscall.SYS_READ, fd, b) }

// Write writes to a file descriptor that does not block, as Read reads; n may be less than len(b).
func Write(fd uintptr, b []byte) (n int, err error) { return call(syscall.SYS_WRITE, fd, b) }

func call(what, fd uintptr, b []byte) (int, error) {
	for {
		n, _, err := syscall.RawSyscall(what, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch err {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, err
		}
	}
}
