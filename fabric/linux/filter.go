package linux

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// maxFilterValues bounds EtherTypes and addresses of one filter, so that every
// jump stays far below the 255 instructions that a BPF jump can skip.
const maxFilterValues = 16

// filter builds the kernel filter of one socket. A frame passes when it came in for
// this machine (not one of our own going out), belongs to no VLAN, has one of the
// EtherTypes and is addressed to one of dst. A priority tag, VLAN 0, does no harm.
// The program is straight-line with jumps to the last two instructions.
//
// Where the socket is bound to one EtherType, the kernel has already taken a tag off
// without a trace and marked the frame as for another host if it had a VLAN.
func filter(etherTypes []uint16, dst []fabric.MAC) ([]bpf.RawInstruction, error) {
	if n := len(etherTypes); n == 0 || n > maxFilterValues {
		return nil, fmt.Errorf("filter has %d EtherTypes, want 1..%d", n, maxFilterValues)
	}
	if n := len(dst); n == 0 || n > maxFilterValues {
		return nil, fmt.Errorf("filter has %d destination addresses, want 1..%d", n, maxFilterValues)
	}
	// Two more instructions follow the addresses: drop, then accept.
	types, addrs := 6, 6+len(etherTypes)
	drop := addrs + 4*len(dst)
	to := func(from, target int) uint8 { return uint8(target - from - 1) }

	prog := make([]bpf.Instruction, 0, drop+2)
	add := func(ins bpf.Instruction) { prog = append(prog, ins) }
	add(bpf.LoadExtension{Num: bpf.ExtType})
	add(bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: unix.PACKET_MULTICAST, SkipTrue: to(1, drop)})
	add(bpf.LoadExtension{Num: bpf.ExtVLANTag})
	add(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0x0fff})
	add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: to(4, drop)})
	add(bpf.LoadAbsolute{Off: 12, Size: 2})
	for i, et := range etherTypes {
		at := types + i
		j := bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(et), SkipTrue: to(at, addrs)}
		if i == len(etherTypes)-1 {
			j.SkipFalse = to(at, drop)
		}
		add(j)
	}
	for i, m := range dst {
		at := addrs + 4*i
		next := at + 4 // the next address, or drop after the last one
		add(bpf.LoadAbsolute{Off: 2, Size: 4})
		add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(m[2:]), SkipTrue: to(at+1, next)})
		add(bpf.LoadAbsolute{Off: 0, Size: 2})
		add(bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(binary.BigEndian.Uint16(m[:2])), SkipTrue: to(at+3, drop+1)})
	}
	add(bpf.RetConstant{Val: 0})
	add(bpf.RetConstant{Val: 1 << 18}) // the whole frame
	return bpf.Assemble(prog)
}
