package bfd

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// maxFilter is how many instructions the kernel takes (BPF_MAXINSNS).
const maxFilter = 4096

// Ignore has the kernel drop what comes in by these interfaces, before it takes room in
// a socket's queue: hosts have no business here.
func (c *sockets) Ignore(interfaces []int) error {
	c.ignored = slices.Clone(interfaces)
	var errs []error
	for i := range c.in {
		errs = append(errs, ignore(c.in[i].fd, c.ignored))
	}
	return errors.Join(errs...)
}

func ignore(fd int, interfaces []int) error {
	if len(interfaces) == 0 {
		// There may be none to take away.
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); err != nil && err != unix.ENOENT {
			return fmt.Errorf("filter of a BFD socket: %w", err)
		}
		return nil
	}
	raw, err := bpf.Assemble(ignoreProgram(interfaces))
	if err != nil {
		return fmt.Errorf("filter of a BFD socket: %w", err)
	}
	if len(raw) > maxFilter {
		return fmt.Errorf("filter of a BFD socket: %d interfaces, in more ranges than the kernel compares", len(interfaces))
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}); err != nil {
		return fmt.Errorf("filter of a BFD socket: %w", err)
	}
	return nil
}

// ignoreProgram compares the index of the interface with ranges: those of a switch's
// ports mostly follow each other.
func ignoreProgram(interfaces []int) []bpf.Instruction {
	sorted := slices.Clone(interfaces)
	slices.Sort(sorted)
	program := []bpf.Instruction{bpf.LoadExtension{Num: bpf.ExtInterfaceIndex}}
	for i := 0; i < len(sorted); {
		first, last := sorted[i], sorted[i]
		for i++; i < len(sorted) && sorted[i] <= last+1; i++ {
			last = sorted[i]
		}
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(first), SkipFalse: 2},
			bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: uint32(last), SkipTrue: 1},
			bpf.RetConstant{Val: 0})
	}
	return append(program, bpf.RetConstant{Val: 1 << 16})
}
