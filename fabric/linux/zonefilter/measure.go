package zonefilter

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/openinof/inof/hardzone"
)

// Cost runs the program of a port on a frame, as often as repeat says, and gives the time of
// one run and whether the frame passes (BPF_PROG_TEST_RUN). Attach empty: a program that
// lets everything pass, the cost of measuring.
func (f *Filter) Cost(port string, attach hardzone.Attach, frame []byte, repeat int) (time.Duration, bool, error) {
	n, err := f.number(port)
	if err != nil {
		return 0, false, err
	}
	var prog *ebpf.Program
	drop := uint32(xdpDrop)
	switch attach {
	case "":
		prog, err = pass()
	case hardzone.AttachTC:
		drop = tcDrop
		fallthrough
	default:
		prog, err = f.program(n, attach)
	}
	if err != nil {
		return 0, false, err
	}
	defer prog.Close()
	out, took, err := prog.Benchmark(frame, repeat, nil)
	if err != nil {
		return 0, false, fmt.Errorf("run the filter: %w", err)
	}
	return took, out != drop, nil
}

// The answers by which a frame is dropped (linux/bpf.h, linux/pkt_cls.h).
const (
	xdpDrop = 1
	tcDrop  = 2
)

// Bare puts a program that lets everything pass at an interface: what the place itself costs.
func Bare(index int, way hardzone.Attach) (remove func() error, err error) {
	prog, err := pass()
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	flags := link.XDPDriverMode
	if way == hardzone.AttachGeneric {
		flags = link.XDPGenericMode
	}
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: index, Flags: flags})
	if err != nil {
		return nil, err
	}
	return l.Close, nil
}

// pass is a program that lets everything pass.
func pass() (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{Name: "pass", Type: ebpf.XDP, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
}

// Memory is what the kernel says that the tables take, in bytes.
func (f *Filter) Memory() (sum uint64) {
	for _, m := range f.tables {
		if info, err := m.Info(); err == nil {
			n, _ := info.Memlock()
			sum += n
		}
	}
	return sum
}
