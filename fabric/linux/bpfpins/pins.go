package bpfpins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// bpfMagic is the type of a bpf file system (linux/magic.h).
const bpfMagic = 0xcafe4a11

// Make makes the directory of the pins. What is above it is mounted as a bpf file system
// where there is none: systemd does that at /sys/fs/bpf, a bare machine does not.
func Make(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	switch {
	case err == nil && onBPF(dir):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this user may not use the directory of the pins (hard-zoning.pins), nor make it: %w", err)
	}
	at := dir
	if parent := filepath.Dir(dir); parent == "/sys/fs/bpf" {
		at = parent
	}
	if !sharedMounts() {
		return fmt.Errorf("%s is no bpf file system, and one that this process mounts would end with it: mount one before (mount -t bpf bpf %s)", dir, at)
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		return fmt.Errorf("directory of the pins: %w", err)
	}
	if err := unix.Mount("bpf", at, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
		return fmt.Errorf("mount a bpf file system at %s: %w", at, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("directory of the pins: %w", err)
	}
	return nil
}

// sharedMounts reports whether what this process mounts is there for the next one too: it is in
// the mount namespace of the machine.
func sharedMounts() bool {
	own, err := os.Readlink("/proc/self/ns/mnt")
	first, err1 := os.Readlink("/proc/1/ns/mnt")
	return err != nil || err1 != nil || own == first
}

func onBPF(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == bpfMagic
}

// Remove ends the enforcement of a process that is gone: without their pins the kernel takes
// programs and maps away, and everything passes. Directories below dir stay: they are of another
// part of the daemon.
func Remove(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !onBPF(dir) {
		return fmt.Errorf("%s is no bpf file system: nothing was removed", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() || strings.Contains(e.Name(), ".") { // of the kernel: no pin has a dot
			continue
		}
		errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
	}
	_ = os.Remove(dir) // a mount point stays, and so does what is not empty
	return errors.Join(errs...)
}
