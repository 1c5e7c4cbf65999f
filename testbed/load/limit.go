package load

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// spareFiles is what a process needs beside its sessions.
const spareFiles = 64

// raiseFiles makes sure that a process may have so many sockets open.
func raiseFiles(sockets int) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	need := uint64(sockets + spareFiles)
	if l.Cur < l.Max {
		l.Cur = l.Max
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
			return fmt.Errorf("limit of open files cannot be raised to %d: %w", l.Max, err)
		}
	}
	if l.Cur < need {
		return fmt.Errorf("%d open files are needed, the hard limit is %d: raise it (ulimit -Hn, LimitNOFILE=) or ask for fewer clients", need, l.Cur)
	}
	return nil
}
