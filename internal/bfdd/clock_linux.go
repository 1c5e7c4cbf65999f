package bfdd

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the time in nanoseconds on the clock that all processes of the machine
// share.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return time.Now().UnixNano()
	}
	return ts.Nano()
}
