package hostkernel

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Interface is one interface that may have addresses, and the cables below it.
type Interface struct {
	Name  string
	Addrs []netip.Addr // in the kernel's order; link-local ones are left out
	Ports []string     // itself, or what a VLAN or bond lies on
}

// dumpTries is how often what the kernel lists is asked for while it changes meanwhile.
const dumpTries = 10

// Interfaces lists them. While interfaces change faster than they can be listed, the error wraps
// netlink.ErrDumpInterrupted.
func Interfaces() ([]Interface, error) {
	for tries := 1; ; tries++ {
		list, err := interfaces()
		if !errors.Is(err, netlink.ErrDumpInterrupted) || tries == dumpTries {
			return list, err
		}
	}
}

func interfaces() ([]Interface, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	of := make(map[int][]netip.Addr)
	for _, a := range addrs {
		addr, ok := netip.AddrFromSlice(a.IP)
		// One that is tentative cannot be used yet: it is told again when it can.
		if addr = addr.Unmap(); ok && addr.IsGlobalUnicast() && a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0 {
			of[a.LinkIndex] = append(of[a.LinkIndex], addr)
		}
	}
	byIndex := make(map[int]netlink.Link, len(links))
	slaves := make(map[int][]string)
	for _, l := range links {
		a := l.Attrs()
		byIndex[a.Index] = l
		if a.MasterIndex != 0 {
			slaves[a.MasterIndex] = append(slaves[a.MasterIndex], a.Name)
		}
	}
	var list []Interface
	for _, l := range links {
		list = append(list, Interface{Name: l.Attrs().Name, Addrs: of[l.Attrs().Index], Ports: cables(l, byIndex, slaves)})
	}
	return list, nil
}

// cables follows VLANs down to what they lie on, and gives the members of a bond.
func cables(l netlink.Link, byIndex map[int]netlink.Link, slaves map[int][]string) []string {
	for range 8 { // VLANs in VLANs
		a := l.Attrs()
		lower := byIndex[a.ParentIndex]
		if l.Type() != "vlan" || lower == nil {
			break
		}
		l = lower
	}
	if l.Type() == "bond" {
		list := slices.Clone(slaves[l.Attrs().Index])
		slices.Sort(list)
		return list
	}
	return []string{l.Attrs().Name}
}

// WatchInterfaces tells, until ctx ends, that Interfaces may give something else now. Many changes
// may be one word.
func WatchInterfaces(ctx context.Context) (<-chan struct{}, error) {
	out := make(chan struct{}, 1)
	tell := func() {
		select {
		case out <- struct{}{}:
		default:
		}
	}
	addrs, links := make(chan netlink.AddrUpdate, 64), make(chan netlink.LinkUpdate, 64)
	lost := func(error) { tell() } // something may have been missed
	if err := netlink.AddrSubscribeWithOptions(addrs, ctx.Done(), netlink.AddrSubscribeOptions{ErrorCallback: lost}); err != nil {
		return nil, err
	}
	if err := netlink.LinkSubscribeWithOptions(links, ctx.Done(), netlink.LinkSubscribeOptions{ErrorCallback: lost}); err != nil {
		return nil, err
	}
	go func() {
		for addrs != nil || links != nil {
			select {
			case _, ok := <-addrs:
				if !ok {
					addrs = nil
				}
			case _, ok := <-links:
				if !ok {
					links = nil
				}
			}
			tell()
		}
	}()
	return out, nil
}

// unqueue deletes the neighbours that are being looked for on the interface of an address.
func unqueue(source netip.Addr) error {
	family := netlink.FAMILY_V6
	if source.Is4() {
		family = netlink.FAMILY_V4
	}
	addrs, err := netlink.AddrList(nil, family)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(addrs, func(a netlink.Addr) bool {
		addr, _ := netip.AddrFromSlice(a.IP)
		return addr.Unmap() == source
	})
	if i < 0 {
		return nil
	}
	neighbours, err := netlink.NeighList(addrs[i].LinkIndex, family)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range neighbours {
		if n.State&netlink.NUD_INCOMPLETE == 0 {
			continue
		}
		if err := netlink.NeighDel(&n); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
