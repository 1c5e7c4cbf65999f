//go:build !linux

package bfdd

import "time"

// monotonic is the wall clock where no other is shared by processes.
func monotonic() int64 { return time.Now().UnixNano() }
