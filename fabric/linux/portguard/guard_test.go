package portguard

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/fabric/linux/bpfpins"
	"github.com/openinof/inof/internal/netnstest"
)

// in runs fn in a namespace.
func in(t testing.TB, s *netnstest.Space, fn func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := netns.Set(s.Handle)
		defer func() { done <- err }() // also when fn ends the test
		if err == nil {
			fn()
		}
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a guard in a namespace; the test is left out where the kernel does not let us.
func open(t testing.TB, s *netnstest.Space, cfg Config) (g *Guard) {
	t.Helper()
	var err error
	in(t, s, func() { g, err = Open(cfg) })
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, ebpf.ErrNotSupported) {
		netnstest.Require(t, "eBPF", err)
	}
	must(t, err)
	t.Cleanup(func() { in(t, s, func() { g.Close() }) })
	return g
}

// pins is a bpf file system of the test's own.
func pins(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bpf")
	if err := bpfpins.Make(dir); err != nil {
		netnstest.Require(t, "a bpf file system", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// place guards ports of a namespace.
func place(t testing.TB, s *netnstest.Space, g *Guard, names ...string) {
	t.Helper()
	ports := []fabric.GuardedPort{}
	for _, name := range names {
		ports = append(ports, fabric.GuardedPort{Name: name, Index: s.Link(name).Attrs().Index})
	}
	in(t, s, func() {
		for _, st := range g.SetPorts(ports) {
			if st.Err != nil {
				t.Error(st.Err)
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
}

// ways are those that this kernel has.
func ways(t testing.TB) []Way {
	s := netnstest.New(t)
	s.Veth("w1", netnstest.New(t), "w2")
	list := []Way{}
	for _, way := range []Way{WayTCX, WayClsact} {
		g := open(t, s, Config{Way: way})
		in(t, s, func() {
			if st := g.SetPorts([]fabric.GuardedPort{{Name: "w1", Index: s.Link("w1").Attrs().Index}})[0]; st.Err == nil {
				list = append(list, way)
			} else if way == WayTCX && errors.Is(st.Err, ebpf.ErrNotSupported) {
				t.Logf("before Linux 6.6 clsact alone: %v", st.Err)
			} else {
				t.Error(st.Err)
			}
			g.SetPorts(nil)
		})
	}
	if len(list) == 0 {
		t.Fatal("no way to guard a port")
	}
	return list
}

// A tap is a packet socket for all protocols at an interface.
type tap struct {
	t     testing.TB
	fd    int
	index int
	mac   net.HardwareAddr
}

func newTap(t testing.TB, s *netnstest.Space, name string) *tap {
	t.Helper()
	l := s.Link(name)
	c := &tap{t: t, index: l.Attrs().Index, mac: l.Attrs().HardwareAddr}
	in(t, s, func() {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: unix.ETH_P_ALL << 8, Ifindex: c.index})
		}
		if err == nil { // tags that were taken off are reported beside the frame
			err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1)
		}
		must(t, err)
		c.fd = fd
	})
	t.Cleanup(func() { unix.Close(c.fd) })
	return c
}

func (c *tap) send(frame []byte) {
	c.t.Helper()
	err := unix.Sendto(c.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: c.index})
	if err != nil && !errors.Is(err, unix.ENOBUFS) { // the sender of a frame that egress drops sees that
		c.t.Fatal(err)
	}
}

// received returns what came in until a frame that ends with mark, or fails the test.
func (c *tap) received(mark string) (frames [][]byte) {
	c.t.Helper()
	buf := make([]byte, 2048)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		n, from, err := unix.Recvfrom(c.fd, buf, 0)
		if err != nil {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, 100)
			continue
		}
		if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		frame := append([]byte(nil), buf[:n]...)
		if len(frame) >= len(mark) && string(frame[n-len(mark):]) == mark {
			return frames
		}
		frames = append(frames, frame)
	}
	c.t.Fatalf("the frame that ends with %q did not arrive", mark)
	return nil
}

// frame builds an Ethernet frame; tags are TPID and TCI.
func frame(dst, src net.HardwareAddr, tags [][2]uint16, etherType uint16, payload []byte) []byte {
	f := append(append([]byte{}, dst...), src...)
	for _, tag := range tags {
		f = append(f, byte(tag[0]>>8), byte(tag[0]), byte(tag[1]>>8), byte(tag[1]))
	}
	f = append(f, byte(etherType>>8), byte(etherType))
	return append(f, payload...)
}

// marked is a frame that passes everywhere, and by which a receiver knows that all before it came.
func marked(dst, src net.HardwareAddr, mark string) []byte {
	return frame(dst, src, nil, 0x88b5, append(make([]byte, 50), mark...))
}

// ip builds an IP packet between two addresses.
func ip(src, dst netip.Addr, payload string) []byte {
	if src.Is4() {
		h := []byte{0x45, 0, 0, byte(20 + len(payload)), 0, 0, 0, 0, 64, 17, 0, 0}
		h = append(append(h, src.AsSlice()...), dst.AsSlice()...)
		sum := uint32(0) // a bridge with netfilter looks at it
		for i := 0; i < len(h); i += 2 {
			sum += uint32(h[i])<<8 | uint32(h[i+1])
		}
		sum = sum&0xffff + sum>>16
		sum = ^(sum&0xffff + sum>>16)
		h[10], h[11] = byte(sum>>8), byte(sum)
		return append(h, payload...)
	}
	h := []byte{0x60, 0, 0, 0, 0, byte(len(payload)), 17, 64}
	h = append(append(h, src.AsSlice()...), dst.AsSlice()...)
	return append(h, payload...)
}

// bridge joins ports of a namespace.
func bridge(t testing.TB, s *netnstest.Space, ports ...string) {
	t.Helper()
	br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
	must(t, s.NL.LinkAdd(br))
	for _, p := range ports {
		must(t, s.NL.LinkSetMaster(s.Link(p), s.Link("br0")))
	}
	s.SetUp("br0", true)
}

func key(port, array, host string) fence.Key {
	return fence.Key{Port: port, Array: netip.MustParseAddr(array), Host: netip.MustParseAddr(host)}
}
