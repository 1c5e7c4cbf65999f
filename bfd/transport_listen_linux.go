package bfd

import (
	"encoding/binary"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listener is a socket to receive on.
type listener struct {
	fd             int
	port           uint16
	multihop, echo bool
	v6             bool
	overflow       uint32    // packets the kernel dropped so far
	emptied        time.Time // when all that had come was read the last time
}

// openListener opens one port with everything that is needed to judge a packet: where
// it was sent to and came in, its TTL (RFC 5881 section 5), and when.
func openListener(a netip.Addr, port uint16, buffer int) (fd int, err error) {
	family := unix.AF_INET
	if a.Is6() {
		family = unix.AF_INET6
	}
	fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	type option struct{ level, name, value int }
	// Others may have the port on all addresses, as FRR's bfdd: see transport_holders_linux.go.
	opts := []option{{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1}, {unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1}, {unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1}}
	if a.Is6() {
		opts = append(opts, option{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1},
			option{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1}, option{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1},
			option{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, gtsm - 1}, option{unix.IPPROTO_IPV6, unix.IPV6_TCLASS, trafficClass})
	} else {
		opts = append(opts, option{unix.IPPROTO_IP, unix.IP_PKTINFO, 1}, option{unix.IPPROTO_IP, unix.IP_RECVTTL, 1},
			option{unix.IPPROTO_IP, unix.IP_TTL, gtsm - 1}, option{unix.IPPROTO_IP, unix.IP_TOS, trafficClass})
	}
	for _, o := range opts {
		if err = unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return -1, err
		}
	}
	// Beyond the limit of ordinary users where we may; else up to it.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
	}
	return fd, unix.Bind(fd, sockaddr(a, port, 0))
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

// batch is the memory of one recvmmsg call, used again and again.
type batch struct {
	msgs  [batchSize]mmsghdr
	iovs  [batchSize]unix.Iovec
	names [batchSize]unix.RawSockaddrInet6 // holds the one of IPv4 as well
	cmsgs [batchSize][cmsgRoom]byte
	bufs  [batchSize][packetRoom]byte
	got   [batchSize]Received
}

// init wires the parts; a batch must not be moved after that.
func (b *batch) init() {
	for i := range b.msgs {
		b.iovs[i] = unix.Iovec{Base: &b.bufs[i][0]}
		b.iovs[i].SetLen(packetRoom)
		h := &b.msgs[i].hdr
		h.Iov, h.Iovlen = &b.iovs[i], 1
		h.Name = (*byte)(unsafe.Pointer(&b.names[i]))
		h.Control = &b.cmsgs[i][0]
	}
}

// read gets what has come, at most batchSize packets.
func (b *batch) read(c *sockets, l *listener) (int, error) {
	for i := range b.msgs {
		h := &b.msgs[i].hdr
		h.Namelen = uint32(unsafe.Sizeof(b.names[i]))
		h.SetControllen(cmsgRoom)
		h.Flags = 0
	}
	r, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(l.fd), uintptr(unsafe.Pointer(&b.msgs[0])), batchSize, unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	now := time.Now()
	var wall unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &wall); err != nil {
		wall = unix.Timespec{}
	}
	n := 0
	for i := range int(r) {
		h := &b.msgs[i].hdr
		if h.Flags&unix.MSG_TRUNC != 0 && l.echo {
			continue // could not be returned as it came
		}
		p := &b.got[n]
		*p = Received{Echo: l.echo, reply: c.at, Data: b.bufs[i][:b.msgs[i].n]}
		p.Multihop = l.multihop
		p.Src = source(&b.names[i])
		stamp := c.control(l, p, b.cmsgs[i][:h.Controllen], now)
		p.At = l.arrival(stamp, wall, now)
		n++
	}
	return n, nil
}

// source is the address a packet came from.
func source(name *unix.RawSockaddrInet6) netip.Addr {
	if name.Family == unix.AF_INET {
		return netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(name)).Addr)
	}
	return netip.AddrFrom16(name.Addr)
}

// arrival converts the kernel's wall-clock stamp to our time. A clock that was set
// meanwhile cannot lead far astray: what is read now came after the queue was emptied
// the last time.
func (l *listener) arrival(stamp, wall unix.Timespec, now time.Time) time.Time {
	if stamp.Sec == 0 || wall.Sec == 0 {
		return now
	}
	age := time.Duration(wall.Nano() - stamp.Nano())
	if age < 0 {
		return now
	}
	at := now.Add(-age)
	if at.Before(l.emptied) {
		return l.emptied
	}
	return at
}

// control reads the ancillary data of a packet (cmsg(3)); it gives the time stamp.
func (c *sockets) control(l *listener, p *Received, b []byte, now time.Time) (stamp unix.Timespec) {
	const head = unix.SizeofCmsghdr
	for len(b) >= head {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		size := int(h.Len)
		if size < head || size > len(b) {
			return stamp
		}
		data := b[head:size]
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS && len(data) >= 16:
			stamp = unix.Timespec{Sec: int64(binary.NativeEndian.Uint64(data)), Nsec: int64(binary.NativeEndian.Uint64(data[8:]))}
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_RXQ_OVFL && len(data) >= 4:
			l.overflow = binary.NativeEndian.Uint32(data)
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TTL && len(data) >= 4,
			h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_HOPLIMIT && len(data) >= 4:
			p.TTL = uint8(binary.NativeEndian.Uint32(data))
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= 12:
			p.Dst = netip.AddrFrom4([4]byte(data[8:12]))
			p.Interface = c.interfaceName(l.fd, int(binary.NativeEndian.Uint32(data)), now)
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= 20:
			p.Dst = netip.AddrFrom16([16]byte(data[:16]))
			p.Interface = c.interfaceName(l.fd, int(binary.NativeEndian.Uint32(data[16:])), now)
		}
		next := (size + 7) &^ 7
		if next >= len(b) {
			return stamp
		}
		b = b[next:]
	}
	return stamp
}

// interfaceName gives the name for an index, from memory for a few seconds.
func (c *sockets) interfaceName(fd, index int, now time.Time) string {
	if e, ok := c.names[index]; ok && now.Before(e.until) {
		return e.name
	}
	ifr, err := unix.NewIfreq("")
	if err != nil {
		return ""
	}
	ifr.SetUint32(uint32(index))
	name := ""
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFNAME, ifr); err == nil {
		name = ifr.Name()
	}
	c.names[index] = ifname{name, now.Add(nameLifetime)}
	return name
}
