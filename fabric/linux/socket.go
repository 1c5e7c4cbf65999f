package linux

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/nowait"
)

const (
	// socketBuffer is the receive buffer of one socket in bytes as asked for (the
	// kernel doubles it): some 500 small frames, more than a host with 64 addresses
	// sends at a time, and little enough for two sockets on each of 512 ports.
	socketBuffer = 256 << 10
	// priorityControl is TC_PRIO_CONTROL of linux/pkt_sched.h: network control
	// traffic, before all others in queueing disciplines that know priorities.
	priorityControl = 7
	// maxStampAge is how far a kernel time stamp may be off the clock before it is
	// taken for the sign of a clock that was set meanwhile.
	maxStampAge = 30 * time.Second
)

// ErrTruncated is wrapped by Recv's error for a frame longer than the buffer.
var ErrTruncated = errors.New("frame is longer than the receive buffer")

// Socket sends and receives whole Ethernet frames on one interface. It receives
// frames of the given EtherTypes to the given group addresses or the interface's
// own address, outside of any VLAN, and none that this machine sends. One goroutine
// may receive while others send.
type Socket struct {
	name       string
	index      int
	conn       *packet.Conn
	raw        syscall.RawConn
	etherTypes []uint16
	groups     []fabric.MAC

	mac       atomic.Pointer[fabric.MAC]
	drops     atomic.Uint64 // frames that the kernel dropped for want of buffer
	closed    atomic.Bool
	closeOnce sync.Once
	closeErr  error
	oob       [128]byte // of the one receiver
	clock     clockSet  // of the one receiver
	stamps    stamps
}

// OpenSocket opens a socket on the interface ifname in the caller's network
// namespace. With one EtherType the kernel hands over frames of that type alone;
// with several it has to show all of the interface's traffic to the filter, so on
// a busy interface two sockets are cheaper than one with two types. The interface
// may be down: the socket works as soon as it is up.
//
// Errors wrap fabric.ErrNoPort when there is no such interface, and os.ErrPermission
// when CAP_NET_RAW is missing.
func OpenSocket(ifname string, etherTypes []uint16, groups []fabric.MAC) (*Socket, error) {
	ifi, err := net.InterfaceByName(ifname)
	if err != nil {
		return nil, fmt.Errorf("interface %q: %w (%w)", ifname, fabric.ErrNoPort, err)
	}
	if len(ifi.HardwareAddr) != 6 {
		return nil, fmt.Errorf("interface %q is no Ethernet interface: its address %q has %d bytes, want 6",
			ifname, ifi.HardwareAddr, len(ifi.HardwareAddr))
	}
	return openSocket(ifname, ifi.Index, fabric.MAC(ifi.HardwareAddr), etherTypes, groups)
}

func openSocket(name string, index int, mac fabric.MAC, etherTypes []uint16, groups []fabric.MAC) (*Socket, error) {
	prog, err := filter(etherTypes, append([]fabric.MAC{mac}, groups...))
	if err != nil {
		return nil, fmt.Errorf("interface %q: %w", name, err)
	}
	proto := unix.ETH_P_ALL
	if len(etherTypes) == 1 {
		proto = int(etherTypes[0])
	}
	ifi := &net.Interface{Index: index, Name: name, HardwareAddr: mac[:]}
	conn, err := packet.Listen(ifi, packet.Raw, proto, &packet.Config{Filter: prog})
	if err != nil {
		return nil, fmt.Errorf("interface %q: packet socket: %w", name, portError(err))
	}
	s := &Socket{name: name, index: index, conn: conn,
		etherTypes: append([]uint16(nil), etherTypes...), groups: append([]fabric.MAC(nil), groups...)}
	s.clock.look(time.Now())
	s.mac.Store(&mac)
	if s.raw, err = conn.SyscallConn(); err == nil {
		err = s.setOptions()
	}
	for _, g := range groups {
		if err == nil {
			err = conn.JoinGroup(g[:])
		}
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("interface %q: packet socket: %w", name, portError(err))
	}
	return s, nil
}

// setOptions asks for what makes the socket better; only the time stamp matters
// enough to fail, the rest is taken where the kernel and our rights allow it.
func (s *Socket) setOptions() error {
	var stamp error
	err := s.raw.Control(func(fd uintptr) {
		stamp = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
		// The forced form passes net.core.rmem_max and needs CAP_NET_ADMIN.
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer) != nil {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer)
		}
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, priorityControl)
		// The filter ignores outgoing frames too, this spares even running it.
		_ = unix.SetsockoptInt(int(fd), unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	})
	if err == nil && stamp != nil {
		err = os.NewSyscallError("setsockopt SO_TIMESTAMPNS", stamp)
	}
	return err
}

// setBypass makes frames go straight to the driver's ring instead of through the
// queueing discipline. Where the ring is full, or the interface has no carrier, the frame
// is lost with ErrPortBusy.
func (s *Socket) setBypass(on bool) error {
	v := 0
	if on {
		v = 1
	}
	var opt error
	err := s.raw.Control(func(fd uintptr) {
		opt = unix.SetsockoptInt(int(fd), unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, v)
	})
	if err == nil && opt != nil {
		err = os.NewSyscallError("setsockopt PACKET_QDISC_BYPASS", opt)
	}
	return err
}

// setWide has the kernel show the filter all of the interface's traffic, as with several
// EtherTypes, or frames of its one EtherType alone. An interface of a bridge needs it: the bridge
// takes what it receives before a socket for one EtherType is asked, but for the groups that no
// bridge forwards. What comes in while the kernel changes over, some milliseconds, is not heard.
func (s *Socket) setWide(on bool) error {
	proto := uint16(unix.ETH_P_ALL)
	if !on && len(s.etherTypes) == 1 {
		proto = s.etherTypes[0]
	}
	var err error
	ctlErr := s.raw.Control(func(fd uintptr) {
		err = unix.Bind(int(fd), &unix.SockaddrLinklayer{Protocol: proto<<8 | proto>>8, Ifindex: s.index})
	})
	if err = errors.Join(ctlErr, err); err != nil {
		return fmt.Errorf("interface %q: packet socket for EtherType %#04x: %w", s.name, proto, err)
	}
	return nil
}

// setMAC changes the own address that the filter lets through.
func (s *Socket) setMAC(mac fabric.MAC) error {
	prog, err := filter(s.etherTypes, append([]fabric.MAC{mac}, s.groups...))
	if err == nil {
		err = s.conn.SetBPF(prog)
	}
	if err == nil {
		s.mac.Store(&mac)
	}
	return err
}

// Name is the interface's name when the socket was opened.
func (s *Socket) Name() string { return s.name }

// Index is the interface's index.
func (s *Socket) Index() int { return s.index }

// MAC is the interface's own address as the filter knows it.
func (s *Socket) MAC() fabric.MAC { return *s.mac.Load() }

// Recv waits for a frame, puts it (Ethernet header included) into buf and tells
// its length and when the kernel took it from the wire. The time has a monotonic
// reading, so it may be compared with time.Now. Where the kernel gave no stamp (as
// in the first moments after the first socket was opened) or the clock was set since,
// it is the time of reading.
//
// Errors: ErrTruncated (n bytes are in buf, the rest is lost); fabric.ErrPortDown once
// each time the interface is shut, after which Recv may be called again;
// fabric.ErrNoPort when it is gone for good; os.ErrDeadlineExceeded; net.ErrClosed.
func (s *Socket) Recv(buf []byte) (n int, at time.Time, err error) {
	var oobn, flags int
	var rerr error
	err = s.raw.Read(func(fd uintptr) bool {
		for {
			n, oobn, flags, _, rerr = unix.Recvmsg(int(fd), buf, s.oob[:], 0)
			if rerr != unix.EINTR {
				return rerr != unix.EAGAIN
			}
		}
	})
	if err == nil {
		err = rerr
	}
	if err != nil {
		return 0, time.Time{}, s.recvError(err)
	}
	at = time.Now()
	s.clock.look(at)
	if k, ok := kernelStamp(s.oob[:oobn], at); ok && s.clock.trusts(at.Sub(k)) {
		at = k
	}
	if flags&unix.MSG_TRUNC != 0 {
		return n, at, fmt.Errorf("interface %q: %w of %d bytes", s.name, ErrTruncated, len(buf))
	}
	return n, at, nil
}

// recvError makes a receive error typed; a socket whose interface vanished says
// ENETDOWN just once, like one that was shut, and is told apart by its binding.
func (s *Socket) recvError(err error) error {
	err = s.typed(err)
	if errors.Is(err, fabric.ErrPortDown) && !s.bound() {
		err = fabric.ErrNoPort
	}
	return fmt.Errorf("interface %q: receive: %w", s.name, err)
}

// bound reports whether the interface still exists: the kernel sets a socket's
// index to -1 when its interface is unregistered.
func (s *Socket) bound() bool {
	ok := false
	_ = s.raw.Control(func(fd uintptr) {
		sa, err := unix.Getsockname(int(fd))
		ll, is := sa.(*unix.SockaddrLinklayer)
		ok = err == nil && is && ll.Ifindex == s.index
	})
	return ok
}

// Send puts a whole Ethernet frame on the wire without ever waiting. Errors wrap
// fabric.ErrFrameSize, ErrPortDown, ErrPortBusy or ErrNoPort.
func (s *Socket) Send(frame []byte) error {
	_, err := s.SendStamped(frame)
	return err
}

// SendStamped is Send, and returns when the frame left; zero without stampSends, and where
// the driver gives no stamp while it is handed the frame.
func (s *Socket) SendStamped(frame []byte) (left time.Time, err error) {
	if len(frame) < fabric.EthernetHeaderLen {
		return left, fmt.Errorf("interface %q: send: %w: %d bytes, want at least %d",
			s.name, fabric.ErrFrameSize, len(frame), fabric.EthernetHeaderLen)
	}
	left, err = s.write(frame)
	if errors.Is(err, fabric.ErrPortDown) {
		// It may be the one-time report of an earlier shutdown that is already over.
		left, err = s.write(frame)
	}
	if errors.Is(err, fabric.ErrPortDown) && !s.bound() {
		err = fabric.ErrNoPort
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("interface %q: send %d bytes: %w", s.name, len(frame), err)
	}
	return left, nil
}

func (s *Socket) write(frame []byte) (left time.Time, err error) {
	var werr error
	err = s.raw.Write(func(fd uintptr) bool {
		before := time.Now()
		_, werr = nowait.Write(fd, frame) // EAGAIN is an answer, not a reason to wait
		if werr == nil && s.stamps.on {
			left = s.stamps.read(int(fd), before)
		}
		return true
	})
	if err == nil {
		err = werr
	}
	return left, s.typed(err)
}

// typed is portError, and knows a socket that was closed.
func (s *Socket) typed(err error) error {
	if err != nil && s.closed.Load() {
		return fmt.Errorf("%w (%w)", net.ErrClosed, err)
	}
	return portError(err)
}

// Drops is how many frames the kernel dropped because nobody read them in time.
func (s *Socket) Drops() uint64 {
	// Reading resets the kernel's own count.
	if st, err := s.conn.Stats(); err == nil {
		s.drops.Add(uint64(st.Drops))
	}
	return s.drops.Load()
}

// SetDeadline ends a Recv that still waits at t; the zero time removes it.
func (s *Socket) SetDeadline(t time.Time) error { return s.conn.SetDeadline(t) }

// Close ends a waiting Recv with net.ErrClosed. It may be called more than once.
func (s *Socket) Close() error {
	s.closeOnce.Do(func() {
		s.Drops() // the kernel forgets with the socket
		s.closed.Store(true)
		s.closeErr = s.conn.Close()
	})
	return s.closeErr
}

// portError translates what the kernel says about a port into this project's
// errors, keeping the cause.
func portError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENETDOWN):
		return fmt.Errorf("%w (%w)", fabric.ErrPortDown, err)
	case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("%w (%w)", fabric.ErrPortBusy, err)
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return fmt.Errorf("%w (%w)", fabric.ErrNoPort, err)
	case errors.Is(err, unix.EMSGSIZE):
		return fmt.Errorf("%w (%w)", fabric.ErrFrameSize, err)
	}
	return err
}
