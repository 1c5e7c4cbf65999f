package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// write is the process that writes: A to block 0, and B as soon as A is acknowledged. It is no part of
// what acts on the fault. Each line that it prints is a step and its time in nanoseconds.
func write(device, a, b string) error {
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", device, err)
	}
	step := func(what string) { fmt.Fprintf(os.Stdout, "%s %d\n", what, time.Now().UnixNano()) }
	for _, w := range []struct{ name, tag string }{{"A", a}, {"B", b}} {
		buf, err := aligned()
		if err != nil {
			return err
		}
		copy(buf, w.tag)
		step("sent" + w.name)
		if _, err := unix.Pwrite(fd, buf, 0); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		step("acked" + w.name)
	}
	return nil
}

// aligned returns a block of memory of its own, as O_DIRECT wants it. The kernel sends from where the
// data lies: a copy that waits would change with memory that is used again.
func aligned() ([]byte, error) {
	return unix.Mmap(-1, 0, block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}
