//go:build linux

package bfd

import (
	"encoding/binary"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// capture watches the control packets of an interface from outside of the daemons, by
// the kernel's time stamps: the same measure for every implementation.
type capture struct {
	mu      sync.Mutex
	lastIn  time.Time // last packet in
	stateIn State
	upSince time.Time // both ends have said Up since
	state   State     // last said by the watched end
	downAt  time.Time // when it first said Down because of its detection time
}

// watch starts a capture on an interface; it ends with the test.
func (s *space) watch(t testing.TB, ifname string) *capture {
	t.Helper()
	c := &capture{}
	opened := make(chan error)
	var fd int
	index := s.Link(ifname).Attrs().Index
	go func() {
		runtime.LockOSThread()
		err := enter(s.Path())
		if err == nil {
			fd, err = openCapture(index)
		}
		opened <- err
		if err == nil {
			c.run(fd)
		}
	}()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Shutdown(fd, unix.SHUT_RDWR); unix.Close(fd) })
	return c
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

func openCapture(index int) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_ALL)))
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return -1, err
	}
	tv := unix.Timeval{Usec: 100_000} // so that the end of the test is noticed
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return -1, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: index})
}

func (c *capture) run(fd int) {
	buf, oob := make([]byte, 2048), make([]byte, 256)
	for {
		n, on, _, from, err := unix.Recvmsg(fd, buf, oob, 0)
		if err == unix.EAGAIN || err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		at := time.Now()
		msgs, _ := unix.ParseSocketControlMessage(oob[:on])
		for _, m := range msgs {
			if m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
				at = time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
			}
		}
		ll, _ := from.(*unix.SockaddrLinklayer)
		b := buf[:n]
		if ll == nil || len(b) < 28 || b[0]>>4 != 4 || b[9] != unix.IPPROTO_UDP {
			continue
		}
		b = b[int(b[0]&15)*4:]
		if len(b) < 8 || binary.BigEndian.Uint16(b[2:]) != PortControl {
			continue
		}
		if p, err := Parse(b[8:]); err == nil {
			c.take(&p, ll.Pkttype == unix.PACKET_OUTGOING, at)
		}
	}
}

func (c *capture) take(p *Packet, out bool, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !out {
		c.lastIn, c.stateIn = at, p.State
	} else {
		if p.State == StateDown && c.state == StateUp && p.Diag == DiagDetectTime {
			c.downAt = at
		}
		c.state = p.State
	}
	if c.state != StateUp || c.stateIn != StateUp {
		c.upSince = time.Time{}
	} else if c.upSince.IsZero() {
		c.upSince = at
	}
}

// steady reports whether both ends have been Up for some time.
func (c *capture) steady(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.upSince.IsZero() && time.Since(c.upSince) > d
}

// down waits for the watched end to say Down, and gives when, and when it had
// received its last packet before.
func (c *capture) down() (lastIn, down time.Time, ok bool) {
	ok = eventually(func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.downAt.IsZero()
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	lastIn, down = c.lastIn, c.downAt
	c.downAt = time.Time{}
	return lastIn, down, ok
}
