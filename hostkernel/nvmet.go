package hostkernel

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
)

// nvmetPorts is where the kernel's own target is configured.
const nvmetPorts = "sys/kernel/config/nvmet/ports"

// Served is one port of the kernel's own target (nvmet) that serves something.
type Served struct {
	Transport  string // tcp or rdma
	Addr       netip.Addr
	Port       uint16
	Subsystems []string // in order
}

// Served lists what this kernel serves as a target over IP. Ports without subsystems do not listen,
// and are left out. None at all is no error.
func (t Tree) Served() ([]Served, error) {
	entries, err := os.ReadDir(t.path(nvmetPorts))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Served
	var errs []error
	for _, e := range entries {
		s, err := t.servedPort(e.Name())
		switch {
		case gone(err):
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", t.path(nvmetPorts, e.Name()), err))
		case len(s.Subsystems) > 0 && (s.Transport == "tcp" || s.Transport == "rdma") && s.Addr.IsValid() && !s.Addr.IsUnspecified():
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b Served) int { return cmp.Or(a.Addr.Compare(b.Addr), int(a.Port)-int(b.Port)) })
	return list, errors.Join(errs...)
}

func (t Tree) servedPort(name string) (s Served, err error) {
	if s.Transport, err = t.read(nvmetPorts, name, "addr_trtype"); err != nil || s.Transport != "tcp" && s.Transport != "rdma" {
		return s, err
	}
	text, err := t.read(nvmetPorts, name, "addr_traddr")
	if err != nil {
		return s, err
	}
	if s.Addr, err = netip.ParseAddr(text); err != nil {
		return s, err
	}
	s.Addr = s.Addr.Unmap()
	if text, err = t.read(nvmetPorts, name, "addr_trsvcid"); err != nil {
		return s, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return s, err
	}
	s.Port = uint16(n)
	links, err := os.ReadDir(t.path(nvmetPorts, name, "subsystems"))
	for _, l := range links {
		if l.Name() != "nqn.2014-08.org.nvmexpress.discovery" {
			s.Subsystems = append(s.Subsystems, l.Name())
		}
	}
	return s, err
}
