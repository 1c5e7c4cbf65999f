//go:build clocksteps

package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A build for tests: the wall clock that the daemon reads is off by what the file
// $INOF_CLOCK_STEPS says, 8 bytes, a number of seconds that may change at any time. As when
// somebody sets the system's clock, monotonic readings go on as they were.
func init() {
	path := os.Getenv("INOF_CLOCK_STEPS")
	if path == "" {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		panic(fmt.Errorf("INOF_CLOCK_STEPS: %w", err))
	}
	defer f.Close()
	b, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(fmt.Errorf("INOF_CLOCK_STEPS: mmap %s: %w", path, err))
	}
	off := (*int64)(unsafe.Pointer(&b[0]))
	clock = func() time.Time {
		t := time.Now()
		// The first word of a Time with a monotonic reading holds the seconds above 30 bits of
		// nanoseconds.
		*(*uint64)(unsafe.Pointer(&t)) += uint64(atomic.LoadInt64(off)) << 30
		return t
	}
	if was, err := clockWorks(); err != nil {
		panic(fmt.Errorf("INOF_CLOCK_STEPS: %w (%v)", err, was))
	}
}

// clockWorks checks what is assumed about a time.Time.
func clockWorks() (time.Duration, error) {
	t := time.Now()
	u := t
	*(*uint64)(unsafe.Pointer(&u)) += 3600 << 30
	if d := u.Round(0).Sub(t.Round(0)); d != time.Hour || u.Sub(t) != 0 {
		return d, fmt.Errorf("this Go keeps time in another way")
	}
	return 0, nil
}
