package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// lockMemory keeps in memory what of this program is or comes there, and its whole code: no page of
// it is to be read from a disk while I/O stands still. What the runtime sets aside and never uses,
// 64 MiB at its start, is not filled.
func lockMemory() error {
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
		return fmt.Errorf("mlockall: %w", err)
	}
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close()
	var errs []error
	for in := bufio.NewScanner(maps); in.Scan(); {
		var from, to uintptr
		if _, err := fmt.Sscanf(in.Text(), "%x-%x ", &from, &to); err != nil || !strings.HasSuffix(in.Text(), " "+self) {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MLOCK, from, to-from, 0); errno != 0 {
			errs = append(errs, fmt.Errorf("mlock: %w", errno))
		}
	}
	return errors.Join(errs...)
}
