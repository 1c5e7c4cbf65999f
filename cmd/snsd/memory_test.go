package main

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/netnstest"
)

// kib reads a line of /proc/self/status.
func kib(t *testing.T, name string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("no %s in %s", name, b)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

// The whole code of the program is in memory, and what it has only set aside is not.
func TestMemoryIsLockedAndNotWasted(t *testing.T) {
	netnstest.Require(t, "locked memory", lockMemory())
	defer func() { _ = unix.Munlockall() }()
	st, err := os.Stat("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if file := kib(t, "RssFile"); file < int(st.Size()/1024/2) { // the rest is symbols
		t.Errorf("%d KiB of a program of %d KiB are in memory", file, st.Size()/1024)
	}
	before := kib(t, "VmRSS")
	aside, err := unix.Mmap(-1, 0, 256<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(aside) }()
	if grown := kib(t, "VmRSS") - before; grown > 64<<10 {
		t.Errorf("256 MiB that nobody writes to take %d KiB", grown)
	}
}
