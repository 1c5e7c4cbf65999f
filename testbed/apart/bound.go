package apart

import (
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// lookup is what no filter by pairs can do without: native XDP that reads the two addresses of a
// frame and looks them up once, in one hash table of all pairs. It knows IPv4 without tags, and
// no port, zone, counter or rule beside them.
type lookup struct {
	prog  *ebpf.Program
	pairs *ebpf.Map
}

func newLookup(n int) (*lookup, error) {
	l := &lookup{}
	var err error
	if l.pairs, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8, ValueSize: 4, MaxEntries: uint32(n)}); err != nil {
		return nil, fmt.Errorf("table of pairs: %w", err)
	}
	for i := range n {
		if err := l.pairs.Put(pairKey(ends(i)), uint32(1)); err != nil {
			l.close()
			return nil, fmt.Errorf("table of pairs: %w", err)
		}
	}
	const addresses = 26 // of IPv4 after an Ethernet header: the sender's, then the receiver's
	l.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "lookup", Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word),
		asm.LoadMem(asm.R3, asm.R1, 4, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, addresses+8),
		asm.JGT.Reg(asm.R4, asm.R3, "drop"),
		asm.LoadMem(asm.R4, asm.R2, addresses, asm.Word),
		asm.StoreMem(asm.RFP, -8, asm.R4, asm.Word),
		asm.LoadMem(asm.R4, asm.R2, addresses+4, asm.Word),
		asm.StoreMem(asm.RFP, -4, asm.R4, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -8),
		asm.LoadMapPtr(asm.R1, l.pairs.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.Mov.Imm(asm.R0, xdpPass),
		asm.Return(),
		asm.Mov.Imm(asm.R0, xdpDrop).WithSymbol("drop"),
		asm.Return(),
	}})
	if err != nil {
		l.close()
		return nil, fmt.Errorf("a program of one lookup: %w", err)
	}
	return l, nil
}

// The answers of a program (linux/bpf.h).
const (
	xdpDrop = 1
	xdpPass = 2
)

func pairKey(here, there netip.Addr) []byte { return append(here.AsSlice(), there.AsSlice()...) }

// attach puts it at an interface.
func (l *lookup) attach(index int) (remove func() error, err error) {
	at, err := link.AttachXDP(link.XDPOptions{Program: l.prog, Interface: index, Flags: link.XDPDriverMode})
	if err != nil {
		return nil, err
	}
	return at.Close, nil
}

// cost is the time of one run in ns, of a pair that it knows.
func (l *lookup) cost(repeat int) (float64, error) {
	answer, took, err := l.prog.Benchmark(frame(ends(0)), repeat, nil)
	switch {
	case err != nil:
		return 0, fmt.Errorf("run the program of one lookup: %w", err)
	case answer != xdpPass:
		return 0, fmt.Errorf("the program of one lookup says %d to a pair of its table, want %d", answer, xdpPass)
	}
	return float64(took.Nanoseconds()), nil
}

func (l *lookup) close() {
	if l.prog != nil {
		l.prog.Close()
	}
	l.pairs.Close()
}
