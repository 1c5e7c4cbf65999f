package deepstack

import (
	"testing"
	"unsafe"
)

// deep needs about as much stack as a message does.
//
//go:noinline
func deep(n int) int {
	var b [512]byte
	touch(&b)
	if n == 0 {
		return 0
	}
	return 1 + deep(n-1)
}

// moved reports whether the stack of a new goroutine is another one after a message.
func moved(first func()) bool {
	is := make(chan bool)
	go func() {
		first()
		var here byte
		at := uintptr(unsafe.Pointer(&here))
		deep(20)
		is <- at != uintptr(unsafe.Pointer(&here))
	}()
	return <-is
}

// Grown once, a stack is enough for a message; without that it grows while it is used.
func TestAStackGrowsAtOnce(t *testing.T) {
	if moved(Grow) {
		t.Error("a stack that was grown has grown again")
	}
	if !moved(func() {}) {
		t.Error("a stack that was not grown did not grow: the test finds nothing")
	}
}
