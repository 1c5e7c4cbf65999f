package apart

import (
	"fmt"
	"math/bits"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// driver hands frames to the port as the driver of a network card does: in buffers of its own,
// many at once (BPF_F_TEST_XDP_LIVE_FRAMES, redirected into the cable). A socket's frames
// have to be copied before an XDP program in a cable can see them, a card's do not.
type driver struct {
	prog        *ebpf.Program
	addrs, next *ebpf.Map
	frame       []byte
}

// newDriver sends between these ends in turn.
func (w *wire) newDriver(pairs [][2]netip.Addr) (*driver, error) {
	pairs = pairs[:1<<(bits.Len(uint(len(pairs)))-1)] // a power of two
	d := &driver{frame: frame(pairs[0][0], pairs[0][1])}
	var err error
	if d.addrs, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: uint32(8 * len(pairs)), MaxEntries: 1}); err != nil {
		return nil, fmt.Errorf("table of addresses: %w", err)
	}
	if d.next, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		d.close()
		return nil, fmt.Errorf("table of the next frame: %w", err)
	}
	list := make([]byte, 0, 8*len(pairs))
	for _, p := range pairs {
		list = append(append(list, p[0].AsSlice()...), p[1].AsSlice()...)
	}
	if err := d.addrs.Put(uint32(0), list); err != nil {
		d.close()
		return nil, err
	}
	d.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "driver", Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R7, asm.R1, 0, asm.Word),
		asm.LoadMem(asm.R8, asm.R1, 4, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.Add.Imm(asm.R2, 34),
		asm.JGT.Reg(asm.R2, asm.R8, "drop"),
		asm.LoadMapValue(asm.R1, d.next.FD(), 0),
		asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord),
		asm.Mov.Reg(asm.R3, asm.R2),
		asm.Add.Imm(asm.R3, 1),
		asm.StoreMem(asm.R1, 0, asm.R3, asm.DWord),
		asm.And.Imm(asm.R2, int32(len(pairs)-1)),
		asm.LSh.Imm(asm.R2, 3),
		asm.LoadMapValue(asm.R4, d.addrs.FD(), 0),
		asm.Add.Reg(asm.R4, asm.R2),
		asm.LoadMem(asm.R5, asm.R4, 0, asm.Word),
		asm.StoreMem(asm.R7, 26, asm.R5, asm.Word),
		asm.LoadMem(asm.R5, asm.R4, 4, asm.Word),
		asm.StoreMem(asm.R7, 30, asm.R5, asm.Word),
		asm.Mov.Imm(asm.R1, int32(w.peer)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("drop"),
		asm.Return(),
	}})
	if err != nil {
		d.close()
		return nil, fmt.Errorf("a program that sends: %w", err)
	}
	return d, nil
}

func (d *driver) close() {
	if d.prog != nil {
		d.prog.Close()
	}
	for _, m := range []*ebpf.Map{d.addrs, d.next} {
		if m != nil {
			m.Close()
		}
	}
}

// send gives the processor's time of one frame, in ns: that of making it, and of what the
// kernel does with it at the other end, in this thread.
func (d *driver) send(w *wire, n int) (float64, error) {
	before, err := w.received()
	if err != nil {
		return 0, err
	}
	opt := &ebpf.RunOptions{Data: d.frame, Repeat: uint32(n), Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES, BatchSize: 64}
	began := cpuTime()
	if _, err := d.prog.Run(opt); err != nil {
		return 0, fmt.Errorf("send frames as a driver does: %w", err)
	}
	took := float64(cpuTime()-began) / float64(n)
	switch after, err := w.received(); {
	case err != nil:
		return 0, err
	case after-before < uint64(n):
		return 0, fmt.Errorf("the port took %d of %d frames off the cable", after-before, n)
	}
	return took, nil
}

// received is how many frames the port has taken off the cable.
func (w *wire) received() (uint64, error) {
	l, err := netlink.LinkByIndex(w.index)
	if err != nil {
		return 0, err
	}
	return l.Attrs().Statistics.RxPackets, nil
}

// buffered has the port take frames off the cable as a card does (NAPI), whichever filter it has.
func buffered(port string) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Change(port, map[string]bool{"rx-gro": true}); err != nil {
		return fmt.Errorf("switch on rx-gro of %s: %w", port, err)
	}
	return nil
}
