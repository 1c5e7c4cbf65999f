package testbed

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// firstIndex is the smallest ifindex given to the A end of a link. B ends get the
// kernel's own small numbers, so the two ends of a veth pair never have the same
// index: the kernel holds the carrier events of a device whose index equals that
// of its lower device back for up to a second (linkwatch), which no real cable does.
const firstIndex = 10000

// handle gives a netlink socket inside a node, kept until Close.
func (l *Lab) handle(node string) (*netlink.Handle, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.handles[node]; h != nil {
		return h, nil
	}
	if l.st.node(node) == nil {
		return nil, l.noNode(node)
	}
	ns, err := netns.GetFromPath(l.ns(node).net)
	if err != nil {
		return nil, fmt.Errorf("node %s: namespace: %w", node, err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("node %s: netlink: %w", node, err)
	}
	l.handles[node] = h
	return h, nil
}

// loopbackUp brings lo up, which is what gives a node its own addresses.
func (l *Lab) loopbackUp(node string) error {
	h, err := l.handle(node)
	if err != nil {
		return err
	}
	lo, err := h.LinkByName("lo")
	if err == nil {
		err = h.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("node %s: lo up: %w", node, err)
	}
	return nil
}

// createLink makes one veth pair with each end born in its node, and sets both up.
func (l *Lab) createLink(i int, k Link) (linkState, error) {
	st := linkState{A: k.A, B: k.B, MTU: k.MTU}
	h, err := l.handle(k.A.Node)
	if err != nil {
		return st, err
	}
	peerNS, err := os.Open(l.ns(k.B.Node).net)
	if err != nil {
		return st, err
	}
	defer peerNS.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Index = k.A.Port, k.MTU, firstIndex+i
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: k.B.Port, PeerNamespace: netlink.NsFd(peerNS.Fd())}
	if !k.A.MAC.IsZero() {
		veth.HardwareAddr = net.HardwareAddr(k.A.MAC[:])
	}
	if !k.B.MAC.IsZero() {
		veth.PeerHardwareAddr = net.HardwareAddr(k.B.MAC[:])
	}
	if err := h.LinkAdd(veth); err != nil {
		return st, fmt.Errorf("link %s: %w", k, err)
	}
	if st.AIndex, err = l.linkUp(k.A); err != nil {
		return st, err
	}
	if st.BIndex, err = l.linkUp(k.B); err != nil {
		return st, err
	}
	for here, there := range map[Endpoint]Endpoint{k.A: k.B, k.B: k.A} {
		if l.isVM(here.Node) {
			if err := l.ownChecksums(there); err != nil {
				return st, err
			}
		}
	}
	if st.AIndex == st.BIndex {
		return st, fmt.Errorf("link %s: both ends have ifindex %d, so carrier events would be delayed", k, st.AIndex)
	}
	return st, nil
}

func (l *Lab) linkUp(e Endpoint) (int, error) {
	h, err := l.handle(e.Node)
	if err != nil {
		return 0, err
	}
	lk, err := h.LinkByName(e.Port)
	if err == nil {
		err = h.LinkSetUp(lk)
	}
	if err != nil {
		return 0, fmt.Errorf("%s up: %w", e, err)
	}
	return lk.Attrs().Index, nil
}

// findLink finds the link that ends at a port, and the end that Fault switches.
//
// A veth has no carrier of its own to switch: an end loses it when the other end is
// administratively down. So that a switch sees what it would see of a pulled
// cable, carrier loss alone, the end to switch is the one that is not an
// inof-switch; between two nodes of a sort it is the one opposite to the named port.
func (l *Lab) findLink(node, port string) (end Endpoint, index int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.st.node(node) == nil {
		return Endpoint{}, 0, l.noNode(node)
	}
	want := Endpoint{Node: node, Port: port}
	for _, k := range l.st.Links {
		a, b := Endpoint{Node: k.A.Node, Port: k.A.Port}, Endpoint{Node: k.B.Node, Port: k.B.Port}
		if a != want && b != want {
			continue
		}
		aSwitch, bSwitch := l.st.node(a.Node).Kind == KindSwitch, l.st.node(b.Node).Kind == KindSwitch
		if aSwitch != bSwitch {
			if aSwitch {
				return b, k.BIndex, nil
			}
			return a, k.AIndex, nil
		}
		if a == want {
			return b, k.BIndex, nil
		}
		return a, k.AIndex, nil
	}
	return Endpoint{}, 0, fmt.Errorf("lab %s has no link at %s:%s", l.Name, node, port)
}

// Fault pulls (up false) or plugs (up true) the cable at a port: both ends of its
// link lose or get carrier. at was taken right before the system call.
func (l *Lab) Fault(node, port string, up bool) (at time.Time, err error) {
	end, index, err := l.findLink(node, port)
	if err != nil {
		return time.Time{}, err
	}
	h, err := l.handle(end.Node)
	if err != nil {
		return time.Time{}, err
	}
	lk := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: end.Port, Index: index}}
	at = time.Now()
	if up {
		err = h.LinkSetUp(lk)
	} else {
		err = h.LinkSetDown(lk)
	}
	if err != nil {
		return at, fmt.Errorf("fault %s:%s: %s: %w", node, port, end, err)
	}
	return at, nil
}

// Carrier reports whether frames can pass at a port.
func (l *Lab) Carrier(node, port string) (bool, error) {
	h, err := l.handle(node)
	if err != nil {
		return false, err
	}
	lk, err := h.LinkByName(port)
	if err != nil {
		return false, fmt.Errorf("%s:%s: %w", node, port, err)
	}
	return hasCarrier(lk.Attrs()), nil
}

// Shut reports whether a port is administratively down, as its switch makes one that is
// in error-down.
func (l *Lab) Shut(node, port string) (bool, error) {
	h, err := l.handle(node)
	if err != nil {
		return false, err
	}
	lk, err := h.LinkByName(port)
	if err != nil {
		return false, fmt.Errorf("%s:%s: %w", node, port, err)
	}
	return lk.Attrs().Flags&net.FlagUp == 0, nil
}

// hasCarrier reads IFF_LOWER_UP, which the kernel shows only while the device is up.
func hasCarrier(a *netlink.LinkAttrs) bool { return a.RawFlags&unix.IFF_LOWER_UP != 0 }
