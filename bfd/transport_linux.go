package bfd

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	batchSize  = 32  // packets a system call brings
	packetRoom = 256 // a control packet is 255 bytes at most
	cmsgRoom   = 160

	// trafficClass is CS6, network control (RFC 4594 section 3.1).
	trafficClass = 0xc0

	nameLifetime = 5 * time.Second // of the name of an interface
)

// sockets are the Linux sockets of one device: for each address to listen on one per
// port, and one to send from for each session. No Go poller is involved: the
// Runner's thread waits for all of them in one system call.
type sockets struct {
	cfg    SocketConfig
	in     []listener
	poll   []unix.PollFd
	event  int // an eventfd, last in poll
	round  time.Time
	at     int // the listener that Read goes on with
	out    map[uint32]*sender
	ports  map[uint16]bool
	random random
	names  map[int]ifname
	tally  TransportCounters
	batch  batch
	// ignored are indexes of interfaces, for the sockets that are opened later.
	ignored []int
}

type ifname struct {
	name  string
	until time.Time
}

// NewSockets makes the Conn of a Linux device. Nothing is opened before Run but what
// wakes it.
func NewSockets(cfg SocketConfig) (Conn, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ev, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &sockets{cfg: cfg, event: ev, out: make(map[uint32]*sender), ports: make(map[uint16]bool),
		names: make(map[int]ifname), random: random{x: uint64(time.Now().UnixNano())}}, nil
}

// Start opens the sockets to receive on, in the namespace that was asked for. The
// calling thread stays there.
func (c *sockets) Start() error {
	if c.cfg.NetNS != "" {
		if err := enter(c.cfg.NetNS); err != nil {
			return err
		}
	}
	for _, a := range c.cfg.Listen {
		if err := c.listen(a); err != nil {
			// A kernel without IPv6 has nobody to talk to there.
			if a == netip.IPv6Unspecified() && (errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL)) {
				continue
			}
			return err
		}
	}
	for _, l := range c.in {
		c.poll = append(c.poll, unix.PollFd{Fd: int32(l.fd), Events: unix.POLLIN})
	}
	c.poll = append(c.poll, unix.PollFd{Fd: int32(c.event), Events: unix.POLLIN})
	c.batch.init()
	return nil
}

func enter(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", path, err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("network namespace %s: %w", path, err)
	}
	return nil
}

// listen opens the ports on one address.
func (c *sockets) listen(a netip.Addr) error {
	kinds := []listener{{port: c.cfg.MultihopPort, multihop: true}}
	if !c.cfg.MultihopOnly {
		kinds = append(kinds, listener{port: c.cfg.ControlPort})
	}
	if !c.cfg.NoEcho && !c.cfg.MultihopOnly {
		kinds = append(kinds, listener{port: c.cfg.EchoPort, echo: true})
	}
	for _, l := range kinds {
		at := netip.AddrPortFrom(a, l.port)
		if exact, who := taken(a, l.port); exact {
			return fmt.Errorf("listening on %v: %w: %s", at, unix.EADDRINUSE, who)
		}
		fd, err := openListener(a, l.port, c.cfg.ReceiveBuffer)
		if errors.Is(err, unix.EADDRINUSE) {
			_, who := taken(a, l.port)
			return fmt.Errorf("listening on %v: %w: %s does not share it (SO_REUSEADDR)", at, err, who)
		}
		if err != nil {
			return fmt.Errorf("listening on %v: %w", at, err)
		}
		l.fd, l.v6 = fd, a.Is6()
		c.in = append(c.in, l)
		if err := ignore(fd, c.ignored); err != nil {
			return err
		}
	}
	return nil
}

// Wait implements Conn. ppoll takes nanoseconds where epoll_wait takes milliseconds.
func (c *sockets) Wait(deadline time.Time) error {
	var timeout *unix.Timespec
	if !deadline.IsZero() {
		ts := unix.NsecToTimespec(int64(max(0, time.Until(deadline))))
		timeout = &ts
	}
	_, err := unix.Ppoll(c.poll, timeout, nil)
	if err != nil && err != unix.EINTR {
		return err
	}
	if c.poll[len(c.poll)-1].Revents != 0 {
		var b [8]byte
		_, _ = unix.Read(c.event, b[:])
	}
	return nil
}

// Wake implements Conn.
func (c *sockets) Wake() {
	one := uint64(1)
	_, _ = unix.Write(c.event, (*[8]byte)(unsafe.Pointer(&one))[:])
}

// Read implements Conn. Each queue is in order, so the first packet that came after
// until is the end of what was there; it is handed over all the same.
func (c *sockets) Read(until time.Time) ([]Received, error) {
	if until != c.round {
		c.round, c.at = until, 0
	}
	for c.at < len(c.in) {
		l := &c.in[c.at]
		before := time.Now()
		n, err := c.batch.read(c, l)
		switch {
		case err == unix.EAGAIN || err == nil && n == 0:
			l.emptied = before
			c.at++
		case err != nil:
			c.at++
			return nil, fmt.Errorf("receiving on port %d: %w", l.port, err)
		default:
			if n < batchSize {
				l.emptied = before
				c.at++
			} else if c.batch.got[n-1].At.After(until) {
				c.at++
			}
			return c.batch.got[:n], nil
		}
	}
	return nil, nil
}

// Send implements Conn.
func (c *sockets) Send(s *Send) error {
	o := c.out[s.Discr]
	if o == nil || !o.fits(s) {
		var err error
		if o, err = c.sender(s); err != nil {
			return err
		}
	}
	b := s.Data()
	// Neither of these calls waits, so the scheduler need not know.
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(o.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&o.to)), uintptr(o.toLen))
	runtime.KeepAlive(o)
	if errno != 0 {
		return errno
	}
	return nil
}

// ReturnEcho implements Conn: to where it came from, as it is, one hop older, so that
// two devices cannot play it back and forth.
func (c *sockets) ReturnEcho(r *Received) error {
	l := &c.in[r.reply]
	var to unix.Sockaddr
	if r.Src.Is4() {
		to = &unix.SockaddrInet4{Port: int(c.cfg.EchoPort), Addr: r.Src.As4()}
	} else {
		to = &unix.SockaddrInet6{Port: int(c.cfg.EchoPort), Addr: r.Src.As16(), ZoneId: c.zone(l.fd, r)}
	}
	return unix.Sendmsg(l.fd, r.Data, nil, to, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// zone gives the interface index for a link-local source.
func (c *sockets) zone(fd int, r *Received) uint32 {
	if !r.Src.IsLinkLocalUnicast() {
		return 0
	}
	index, _ := indexOf(fd, r.Interface)
	return index
}

// Close implements Conn.
func (c *sockets) Close() error {
	for discr := range c.out {
		c.Release(discr)
	}
	for _, l := range c.in {
		unix.Close(l.fd)
	}
	c.in, c.poll = nil, nil
	return nil // the eventfd stays: Wake may be called at any time
}

func (c *sockets) count(t *TransportCounters) {
	t.RxOverflow, t.SharedPorts, t.BindErrors = c.tally.RxOverflow, c.tally.SharedPorts, c.tally.BindErrors
	for i := range c.in {
		t.RxOverflow += uint64(c.in[i].overflow)
	}
}
