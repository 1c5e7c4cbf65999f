package testbed

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// giantSize is longer than the MTU of any lab link that does not name one.
	giantSize = 2000
	giantMTU  = 3000
	// giantEtherType is for local experiments (IEEE 802).
	giantEtherType = 0x88b5
)

// Damage has a node send n frames out of a port that the other end refuses: longer
// than its MTU. A veth pair has no cable that could damage a frame and no CRC; what
// it has is this check, and the kernel counts such frames as rx_dropped of the
// receiving port. A switch whose configuration names that counter as its CRC counter
// (ports.counters) sees what it would see of a bad cable. at was taken right before
// the first frame.
func (l *Lab) Damage(node, port string, n int) (at time.Time, err error) {
	h, err := l.handle(node)
	if err != nil {
		return time.Time{}, err
	}
	lk, err := h.LinkByName(port)
	if err == nil && lk.Attrs().MTU < giantMTU {
		err = h.LinkSetMTU(lk, giantMTU)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("damage %s:%s: %w", node, port, err)
	}
	err = l.Do(node, func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		frame := giant(lk)
		to := &unix.SockaddrLinklayer{Ifindex: lk.Attrs().Index}
		at = time.Now()
		for range n {
			// That the frame was dropped at the other end comes back as ENOBUFS.
			if err := unix.Sendto(fd, frame, 0, to); err != nil && !errors.Is(err, unix.ENOBUFS) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return at, fmt.Errorf("damage %s:%s: %w", node, port, err)
	}
	return at, nil
}

// giant is an Ethernet frame from a port to nobody in particular.
func giant(from netlink.Link) []byte {
	b := make([]byte, giantSize)
	copy(b, net.HardwareAddr{0x02, 0, 0, 0, 0, 0x01})
	copy(b[6:], from.Attrs().HardwareAddr)
	b[12], b[13] = giantEtherType>>8, giantEtherType&0xff
	return b
}
