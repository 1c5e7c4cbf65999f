package bfd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// port is a socket to send from. Nothing is ever read from it.
type port struct {
	fd     int
	number uint16
	users  int
}

// sender is what the packets of one session need: a source port of its own (RFC 5881
// section 4) and the destination.
type sender struct {
	*port
	local netip.Addr
	peer  netip.Addr
	dev   string
	hops  bool                  // multihop
	to    unix.RawSockaddrInet6 // holds the one of IPv4 as well
	toLen uint32
}

// fits reports whether the socket is right for a packet; a session may get another
// local address.
func (o *sender) fits(s *Send) bool {
	return o.local == s.Local && o.peer == s.Peer && o.dev == s.Interface && o.hops == s.Multihop
}

// sender opens the socket of a session. When there are no more descriptors, or no
// more ports, the session shares the socket of another one.
func (c *sockets) sender(s *Send) (*sender, error) {
	c.Release(s.Discr) // one for another address
	o := &sender{local: s.Local, peer: s.Peer, dev: s.Interface, hops: s.Multihop}
	index, err := c.address(o)
	if err != nil {
		return nil, err
	}
	fd, number, err := c.openSender(o, index)
	switch {
	case err == nil:
		o.port = &port{fd: fd, number: number, users: 1}
		c.ports[number] = true
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.EADDRINUSE):
		if o.port = c.shared(o); o.port == nil {
			return nil, fmt.Errorf("socket to send from: %w", err)
		}
		o.users++
		c.tally.SharedPorts++
	default:
		return nil, err
	}
	c.out[s.Discr] = o
	return o, nil
}

// shared finds a socket of the same family, address and interface (RFC 5881 section 4
// allows it when ports run out).
func (c *sockets) shared(o *sender) *port {
	for _, other := range c.out {
		if other.local == o.local && other.dev == o.dev && other.peer.Is4() == o.peer.Is4() {
			return other.port
		}
	}
	return nil
}

// address fills in the destination; index is the interface's for a link-local one.
func (c *sockets) address(o *sender) (index uint32, err error) {
	port := c.cfg.ControlPort
	if o.hops {
		port = c.cfg.MultihopPort
	}
	var net uint16 // in network byte order
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&net))[:], port)
	if o.peer.Is4() {
		a := (*unix.RawSockaddrInet4)(unsafe.Pointer(&o.to))
		a.Family, a.Port, a.Addr = unix.AF_INET, net, o.peer.As4()
		o.toLen = unix.SizeofSockaddrInet4
		return 0, nil
	}
	if o.dev != "" && o.peer.IsLinkLocalUnicast() {
		fd := c.event
		if len(c.in) > 0 {
			fd = c.in[0].fd
		}
		if index, err = indexOf(fd, o.dev); err != nil {
			return 0, fmt.Errorf("interface %s: %w", o.dev, err)
		}
	}
	o.to = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: net, Addr: o.peer.As16(), Scope_id: index}
	o.toLen = unix.SizeofSockaddrInet6
	return index, nil
}

// indexOf gives the index of an interface.
func indexOf(fd int, name string) (uint32, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr); err != nil {
		return 0, err
	}
	return ifr.Uint32(), nil
}

// openSender opens and binds a socket with TTL 255 (RFC 5881 section 5).
func (c *sockets) openSender(o *sender, index uint32) (fd int, port uint16, err error) {
	family, level, hops, class := unix.AF_INET, unix.IPPROTO_IP, unix.IP_TTL, unix.IP_TOS
	if o.peer.Is6() {
		family, level, hops, class = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, unix.IPV6_TCLASS
	}
	fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, err
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if err = unix.SetsockoptInt(fd, level, hops, gtsm); err != nil {
		return -1, 0, fmt.Errorf("TTL 255: %w", err)
	}
	_ = unix.SetsockoptInt(fd, level, class, trafficClass)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 0) // nobody reads: the least there is
	if o.dev != "" {
		if unix.BindToDevice(fd, o.dev) != nil {
			c.tally.BindErrors++
		}
	}
	port, err = c.bind(fd, o, index)
	return fd, port, err
}

// bind chooses a source port that no other session of ours has.
func (c *sockets) bind(fd int, o *sender, index uint32) (uint16, error) {
	local := o.local
	if !local.IsValid() {
		local = netip.IPv4Unspecified()
		if o.peer.Is6() {
			local = netip.IPv6Unspecified()
		}
	}
	if !local.IsLinkLocalUnicast() {
		index = 0
	}
	for range 256 {
		port := uint16(firstSourcePort + c.random.upTo(lastSourcePort-firstSourcePort))
		if c.ports[port] {
			continue
		}
		err := unix.Bind(fd, sockaddr(local, port, index))
		if err == nil {
			return port, nil
		}
		if err != unix.EADDRINUSE {
			return 0, fmt.Errorf("source address %v: %w", local, err)
		}
	}
	return 0, fmt.Errorf("source port: %w", unix.EADDRINUSE)
}

// Release implements Conn.
func (c *sockets) Release(discr uint32) {
	o := c.out[discr]
	if o == nil {
		return
	}
	delete(c.out, discr)
	if o.users--; o.users == 0 {
		unix.Close(o.fd)
		delete(c.ports, o.number)
	}
}

func sockaddr(a netip.Addr, port uint16, zone uint32) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Port: int(port), Addr: a.As4()}
	}
	return &unix.SockaddrInet6{Port: int(port), Addr: a.As16(), ZoneId: zone}
}
