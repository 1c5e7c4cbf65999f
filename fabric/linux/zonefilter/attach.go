package zonefilter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"

	"github.com/openinof/inof/hardzone"
)

// portFilter is the program at one port.
type portFilter struct {
	port   hardzone.Port
	attach hardzone.Attach
	link   link.Link
}

func (p *portFilter) close() {
	if p.link != nil {
		p.link.Close() // without a pin it ends here
	}
}

// SetPorts implements hardzone.Dataplane. A port that came back has another interface, and gets
// a program of its own.
func (f *Filter) SetPorts(ports []hardzone.Port) []hardzone.PortState {
	wanted := make(map[string]bool)
	states := make([]hardzone.PortState, 0, len(ports))
	for _, port := range ports {
		wanted[port.Name] = true
		p := f.ports[port.Name]
		var err error
		if p == nil || p.port != port {
			p, err = f.take(port)
		}
		st := hardzone.PortState{Port: port.Name, Err: err}
		if p != nil {
			st.Attach = p.attach
		}
		states = append(states, st)
	}
	for name := range f.ports {
		if !wanted[name] {
			_ = f.detach(name)
		}
	}
	for n, name := range f.names { // pins of ports that the last process filtered, and we do not
		if name != "" && !wanted[name] && f.dir != "" {
			_ = os.Remove(f.linkPin(uint16(n)))
		}
	}
	return states
}

// take puts a program at a port: in place of the pinned one, or anew.
func (f *Filter) take(port hardzone.Port) (*portFilter, error) {
	n, err := f.number(port.Name)
	if err != nil {
		return nil, err
	}
	if err := f.namePort(uint32(n), port); err != nil {
		return nil, err
	}
	if old := f.ports[port.Name]; old != nil {
		old.close()
		delete(f.ports, port.Name)
	}
	p, err := f.renew(n, port)
	if p == nil {
		p, err = f.place(n, port)
	}
	if p != nil {
		f.ports[port.Name] = p
	}
	return p, err
}

// renew replaces the program of a link that is pinned, if it is of this interface.
func (f *Filter) renew(n uint16, port hardzone.Port) (*portFilter, error) {
	if f.dir == "" {
		return nil, nil
	}
	l, err := link.LoadPinnedLink(f.linkPin(n), nil)
	if err != nil {
		_ = os.Remove(f.linkPin(n))
		return nil, nil
	}
	p := &portFilter{port: port, link: l}
	if f.isAt(p) && (f.attach == hardzone.AttachAuto || f.attach == p.attach) {
		prog, err := f.program(n, p.attach)
		if err == nil {
			defer prog.Close()
			if err = l.Update(prog); err == nil {
				return p, nil
			}
		}
		return p, fmt.Errorf("port %s keeps the filter of the last daemon: %w", port.Name, err)
	}
	_ = l.Unpin()
	l.Close()
	return nil, nil
}

// isAt reports whether a link is at the interface of its port, and finds of which kind it is.
func (f *Filter) isAt(p *portFilter) bool {
	info, err := p.link.Info()
	if err != nil {
		return false
	}
	if x := info.XDP(); x != nil {
		p.attach = hardzone.AttachNative
		if generic(p.port.Index) {
			p.attach = hardzone.AttachGeneric
		}
		return int(x.Ifindex) == p.port.Index
	}
	if x := info.TCX(); x != nil {
		p.attach = hardzone.AttachTC
		return int(x.Ifindex) == p.port.Index
	}
	return false
}

// generic reports whether the XDP program of an interface stands behind the driver.
func generic(index int) bool {
	l, err := netlink.LinkByIndex(index)
	return err == nil && l.Attrs().Xdp != nil && l.Attrs().Xdp.AttachMode == nl.XDP_ATTACHED_SKB
}

// place puts a program at a port that has none of ours, in the first way that works.
func (f *Filter) place(n uint16, port hardzone.Port) (*portFilter, error) {
	ways := []hardzone.Attach{f.attach}
	if f.attach == hardzone.AttachAuto {
		ways = []hardzone.Attach{hardzone.AttachNative, hardzone.AttachTC, hardzone.AttachGeneric}
	}
	var errs []error
	for _, way := range ways {
		l, err := f.placeAs(n, port, way)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", way, err))
			continue
		}
		if f.dir != "" {
			if err := l.Pin(f.linkPin(n)); err != nil {
				return &portFilter{port: port, attach: way, link: l}, fmt.Errorf("port %s: %w: %w", port.Name, ErrNoPins, err)
			}
		}
		return &portFilter{port: port, attach: way, link: l}, nil
	}
	return nil, fmt.Errorf("port %s cannot be filtered: %w", port.Name, errors.Join(errs...))
}

func (f *Filter) placeAs(n uint16, port hardzone.Port, way hardzone.Attach) (link.Link, error) {
	prog, err := f.program(n, way)
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	switch way {
	case hardzone.AttachNative:
		return link.AttachXDP(link.XDPOptions{Program: prog, Interface: port.Index, Flags: link.XDPDriverMode})
	case hardzone.AttachGeneric:
		return link.AttachXDP(link.XDPOptions{Program: prog, Interface: port.Index, Flags: link.XDPGenericMode})
	default:
		return link.AttachTCX(link.TCXOptions{Program: prog, Interface: port.Index, Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
	}
}

// program loads the program of a port.
func (f *Filter) program(n uint16, way hardzone.Attach) (*ebpf.Program, error) {
	name, other := programXDP, programTC
	if way == hardzone.AttachTC {
		name, other = other, name
	}
	spec := f.spec.Copy()
	delete(spec.Programs, other)
	delete(spec.Maps, tablePorts)
	if err := spec.Variables[variablePort].Set(uint32(n)); err != nil {
		return nil, err
	}
	shared := make(map[string]*ebpf.Map)
	for table, m := range f.tables {
		if table != tablePorts {
			shared[table] = m
		}
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: shared})
	if err != nil {
		return nil, fmt.Errorf("load the filter: %w", err)
	}
	prog := c.DetachProgram(name)
	c.Close()
	return prog, nil
}

// detach takes the program of a port away.
func (f *Filter) detach(name string) error {
	p := f.ports[name]
	delete(f.ports, name)
	var err error
	if f.dir != "" {
		err = p.link.Unpin()
	}
	p.close()
	return err
}

func (f *Filter) linkPin(n uint16) string { return filepath.Join(f.dir, fmt.Sprintf("port%d", n)) }

// number is that of a port; a new one when it has none.
func (f *Filter) number(name string) (uint16, error) {
	free := 0
	for n := 1; n < len(f.names); n++ {
		if f.names[n] == name {
			return uint16(n), nil
		}
		if f.names[n] == "" && free == 0 {
			free = n
		}
	}
	if free == 0 {
		if len(f.names) > maxPorts {
			return 0, fmt.Errorf("port %s: the filter has no number left for it: %d ports", name, maxPorts)
		}
		free = len(f.names)
		f.names = append(f.names, "")
	}
	f.names[free] = name
	return uint16(free), f.namePort(uint32(free), hardzone.Port{Name: name})
}

// namePort keeps the number of a port for the next process.
func (f *Filter) namePort(n uint32, port hardzone.Port) error {
	v := portValue{Index: uint32(port.Index)}
	if len(port.Name) >= len(v.Name) {
		return fmt.Errorf("port %s: its name is longer than %d bytes", port.Name, len(v.Name)-1)
	}
	copy(v.Name[:], port.Name)
	return f.tables[tablePorts].Put(n, &v)
}

func (f *Filter) portNames(numbers []uint16) (names []string) {
	for _, n := range numbers {
		if n != 0 && int(n) < len(f.names) && f.names[n] != "" {
			names = append(names, f.names[n])
		}
	}
	return names
}
