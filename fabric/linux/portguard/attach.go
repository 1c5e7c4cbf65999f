package portguard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// attachment is the guard at one port.
type attachment struct {
	port  fabric.GuardedPort
	way   Way
	links []link.Link // TCX
}

func (a *attachment) close() {
	for _, l := range a.links {
		l.Close() // without a pin it ends here
	}
	a.links = nil
}

// The two hooks: egress first, for what leaves does the harm.
var hooks = []struct {
	name    string
	egress  bool
	tcx     ebpf.AttachType
	parent  uint32
	program string
}{
	{"out", true, ebpf.AttachTCXEgress, netlink.HANDLE_MIN_EGRESS, programOut},
	{"in", false, ebpf.AttachTCXIngress, netlink.HANDLE_MIN_INGRESS, programIn},
}

func (g *Guard) program(egress bool) *ebpf.Program {
	if egress {
		return g.out
	}
	return g.in
}

// SetPorts implements fabric.PortGuard. A port that came back has another interface: its blocks
// go on there.
func (g *Guard) SetPorts(ports []fabric.GuardedPort) []fabric.GuardState {
	g.mu.Lock()
	defer g.mu.Unlock()
	states := make([]fabric.GuardState, 0, len(ports))
	index := make(map[uint32]bool)
	for _, port := range ports {
		index[uint32(port.Index)] = true
		a := g.ports[port.Name]
		var err error
		if a == nil || a.port != port {
			if a != nil {
				a.close()
				delete(g.ports, port.Name)
			}
			if a, err = g.attach(port); err == nil {
				g.ports[port.Name] = a
			}
		}
		st := fabric.GuardState{Port: port.Name, Err: err}
		if err == nil {
			st.Way = string(a.way)
		}
		states = append(states, st)
	}
	for name, a := range g.ports {
		if !slices.Contains(ports, a.port) {
			_ = a.detach()
			a.close()
			delete(g.ports, name)
		}
	}
	for _, i := range keysOf[uint32, portRow](g.maps[mapPorts]) { // also those of the last process
		if !index[i] {
			g.forget(int(i))
		}
	}
	return states
}

// attach guards a port, in place of the last process's guard where there is one.
func (g *Guard) attach(port fabric.GuardedPort) (*attachment, error) {
	if _, err := nameRow(port.Name); err != nil {
		return nil, err
	}
	if l, err := netlink.LinkByIndex(port.Index); err != nil {
		return nil, fmt.Errorf("port %s: %w", port.Name, err)
	} else if l.Attrs().PhysSwitchID != 0 {
		return nil, fmt.Errorf("port %s cannot be guarded: it belongs to a switch in hardware (phys_switch_id), which forwards frames that the kernel does not see", port.Name)
	}
	if err := g.move(port); err != nil {
		return nil, fmt.Errorf("port %s: its blocks: %w", port.Name, err)
	}
	if err := g.maps[mapPorts].Update(uint32(port.Index), &portRow{}, ebpf.UpdateNoExist); err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return nil, fmt.Errorf("port %s: its counters: %w", port.Name, err)
	}
	ways := []Way{g.way}
	if g.way == "" {
		ways = []Way{WayTCX, WayClsact}
	}
	var errs []error
	for _, way := range ways {
		a := &attachment{port: port, way: way}
		err := g.attachAs(a)
		if err == nil {
			return a, nil
		}
		_ = a.detach() // not half of it
		a.close()
		errs = append(errs, fmt.Errorf("%s: %w", way, err))
	}
	return nil, fmt.Errorf("port %s cannot be guarded: %w", port.Name, errors.Join(errs...))
}

func (g *Guard) attachAs(a *attachment) error {
	if a.way == WayClsact {
		return g.attachClsact(a.port.Index)
	}
	for _, h := range hooks {
		l, err := g.attachTCX(a.port.Index, h.name, h.tcx, g.program(h.egress))
		if err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
		a.links = append(a.links, l)
	}
	return nil
}

func (g *Guard) attachTCX(index int, hook string, at ebpf.AttachType, prog *ebpf.Program) (link.Link, error) {
	pin := ""
	if g.dir != "" {
		pin = g.linkPin(index, hook)
		if l, err := link.LoadPinnedLink(pin, nil); err == nil {
			if indexOf(l) == index && l.Update(prog) == nil {
				return l, nil
			}
			l.Close()
		}
	}
	l, err := link.AttachTCX(link.TCXOptions{Program: prog, Interface: index, Attach: at, Anchor: link.Head()})
	if err != nil || pin == "" {
		return l, err
	}
	_ = os.Remove(pin) // of an interface that is gone
	if err := l.Pin(pin); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// attachClsact puts filters into the place of ours, if there are any.
func (g *Guard) attachClsact(index int) error {
	qdisc := &netlink.GenericQdisc{QdiscType: "clsact", QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index,
		Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
	if err := netlink.QdiscAdd(qdisc); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	for _, h := range hooks {
		f := filterAt(index, h.parent)
		f.Fd = g.program(h.egress).FD()
		if err := netlink.FilterReplace(f); err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
	}
	return nil
}

// filterHandle marks our filters among those of the first priority.
const filterHandle = 0x88a7

func filterAt(index int, parent uint32) *netlink.BpfFilter {
	return &netlink.BpfFilter{Name: "inof_guard", DirectAction: true, FilterAttrs: netlink.FilterAttrs{LinkIndex: index,
		Parent: parent, Handle: filterHandle, Protocol: unix.ETH_P_ALL, Priority: 1}}
}

// detach takes the guard of a port away, also where it is pinned.
func (a *attachment) detach() error {
	var errs []error
	for _, l := range a.links {
		if err := l.Unpin(); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if a.way == WayClsact {
		errs = append(errs, detachClsact(a.port.Index))
	}
	return errors.Join(errs...)
}

func detachClsact(index int) error {
	var errs []error
	for _, h := range hooks {
		err := netlink.FilterDel(filterAt(index, h.parent))
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EINVAL) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// forget removes what is kept of an interface that is guarded no longer.
func (g *Guard) forget(index int) {
	for _, pin := range g.pinsOf(index) {
		_ = os.Remove(pin)
	}
	_ = detachClsact(index)
	_ = g.maps[mapPorts].Delete(uint32(index))
}

func (g *Guard) linkPin(index int, hook string) string {
	return filepath.Join(g.dir, fmt.Sprintf("link-%d-%s", index, hook))
}

func (g *Guard) pinsOf(index int) (pins []string) {
	for _, h := range hooks {
		if _, err := os.Stat(g.linkPin(index, h.name)); g.dir != "" && err == nil {
			pins = append(pins, g.linkPin(index, h.name))
		}
	}
	return pins
}

// indexOf returns the interface of a TCX link; 0: it is gone.
func indexOf(l link.Link) int {
	info, err := l.Info()
	if err != nil || info.TCX() == nil {
		return 0
	}
	return int(info.TCX().Ifindex)
}
