package linux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/fabric"
)

// port is one port of the dataplane. The link reader alone changes its state, under
// the dataplane's lock.
type port struct {
	name    string // as in state, but never changes
	index   int
	state   fabric.Port
	log     *slog.Logger
	changes uint64                 // the kernel's carrier change count when last heard
	master  int                    // of a bridge or bond; 0: none
	seen    uint64                 // number of the dump in which it was last heard of
	asked   atomic.Bool            // a question about it is open
	doubt   doubt                  // about what was heard early
	toldAt  time.Time              // of the last event
	layout  atomic.Pointer[layout] // of the driver's counters, once it was asked
	count   portCounters

	lldp, nts atomic.Pointer[Socket] // nil when they could not be opened
	asking    atomic.Pointer[Socket] // while something is asked; see asking.go
	openAsk   func() *Socket
	ending    sync.Mutex // of stop, against a socket that is opened meanwhile
	stop      chan struct{}
}

func newPort(state fabric.Port, log *slog.Logger) *port {
	return &port{name: state.Name, index: state.Index, state: state, log: log, stop: make(chan struct{})}
}

// sockets are those that are open.
func (p *port) sockets() []*Socket {
	var list []*Socket
	for _, s := range []*Socket{p.lldp.Load(), p.nts.Load(), p.asking.Load()} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

// receiveBuffer takes every frame of the right size and shows which are longer.
const receiveBuffer = fabric.EthernetHeaderLen + fabric.MaxControlPayload + 1

// openSockets opens both sockets or none.
func (p *port) openSockets(bypass bool) error {
	lldp, err := p.openSocket(fabric.EtherTypeLLDP, fabric.MACNearestBridge, bypass)
	if err != nil {
		return err
	}
	nts, err := p.openSocket(fabric.EtherTypeNTS, fabric.MACNTS, bypass)
	if err != nil {
		_ = lldp.Close()
		return err
	}
	if p.master != 0 {
		if err := nts.setWide(true); err != nil {
			_ = lldp.Close()
			_ = nts.Close()
			return err
		}
	}
	nts.stampSends()
	p.lldp.Store(lldp)
	p.nts.Store(nts)
	return nil
}

func (p *port) openSocket(etherType uint16, group fabric.MAC, bypass bool) (*Socket, error) {
	s, err := openSocket(p.name, p.index, p.state.MAC, []uint16{etherType}, []fabric.MAC{group})
	if err == nil && bypass {
		if err = s.setBypass(true); err != nil {
			_ = s.Close()
		}
	}
	return s, err
}

// start receives from both sockets until the port is stopped. Each goroutine closes
// its own socket: closing a packet socket waits for an RCU grace period.
func (p *port) start(frames chan<- fabric.Frame, rate int, wg *sync.WaitGroup) {
	for _, r := range []struct {
		s     *Socket
		count *atomic.Uint64
	}{{p.lldp.Load(), &p.count.lldp}, {p.nts.Load(), &p.count.nts}} {
		if r.s == nil {
			continue
		}
		wg.Go(func() {
			defer r.s.Close()
			p.receive(r.s, r.count, frames, newBucket(rate, time.Now()))
		})
	}
}

// halt ends the receivers without waiting for them.
func (p *port) halt() {
	p.ending.Lock()
	defer p.ending.Unlock()
	close(p.stop)
	for _, s := range p.sockets() {
		_ = s.SetDeadline(time.Unix(1, 0))
	}
}

// receive hands frames to the owner, at most so many a second. When the owner is
// busy it waits in line with the other ports, one frame each, which makes their
// shares equal; meanwhile frames wait in the socket's own buffer and, when that is
// full, are dropped by the kernel at little cost and counted.
func (p *port) receive(s *Socket, count *atomic.Uint64, frames chan<- fabric.Frame, b *bucket) {
	buf := make([]byte, receiveBuffer)
	for {
		if wait := b.take(time.Now()); wait > 0 {
			p.count.throttled.Add(1)
			if !p.sleep(wait) {
				return
			}
		}
		n, at, err := s.Recv(buf)
		switch {
		case errors.Is(err, ErrTruncated), err == nil && n == len(buf):
			p.overlong(buf)
			continue
		case errors.Is(err, net.ErrClosed), errors.Is(err, fabric.ErrNoPort), errors.Is(err, os.ErrDeadlineExceeded), p.stopped():
			return
		case errors.Is(err, fabric.ErrPortDown):
			continue
		case err != nil:
			p.count.errors.Add(1)
			if !p.sleep(10 * time.Millisecond) {
				return
			}
			continue
		}
		if n < fabric.EthernetHeaderLen {
			p.count.errors.Add(1)
			continue
		}
		f := fabric.Frame{Port: p.name, Dst: fabric.MAC(buf[0:6]), Src: fabric.MAC(buf[6:12]),
			EtherType: binary.BigEndian.Uint16(buf[12:]), At: at,
			Payload: append([]byte(nil), buf[fabric.EthernetHeaderLen:n]...)}
		select {
		case frames <- f:
			count.Add(1)
		case <-p.stop:
			return
		}
	}
}

// overlong counts a frame that is too long. It is told at the first one and then
// ever more rarely, so that a storm of them does not fill the log.
func (p *port) overlong(head []byte) {
	n := p.count.overlong.Add(1)
	if n&(n-1) != 0 {
		return
	}
	p.log.Warn(fmt.Sprintf("a control frame was dropped: its payload is longer than %d bytes", fabric.MaxControlPayload),
		"port", p.name, "from", fabric.MAC(head[6:12]), "ethertype", fmt.Sprintf("%#04x", binary.BigEndian.Uint16(head[12:])), "so_far", n)
}

func (p *port) stopped() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

func (p *port) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.stop:
		return false
	}
}

// send uses the socket of the frame's EtherType, as the kernel marks what a socket
// sends with the socket's own.
func (p *port) send(frame []byte) (left time.Time, err error) {
	s := p.nts.Load()
	if len(frame) >= fabric.EthernetHeaderLen {
		switch et := binary.BigEndian.Uint16(frame[12:]); {
		case et == fabric.EtherTypeLLDP:
			s = p.lldp.Load()
		case et == fabric.EtherTypeARP, et == fabric.EtherTypeIPv6:
			s = p.askSocket()
		}
	}
	if s == nil {
		p.count.sendError.Add(1)
		return left, fmt.Errorf("port %q: %w: its packet socket could not be opened", p.name, fabric.ErrPortDown)
	}
	left, err = s.SendStamped(frame)
	switch {
	case err == nil:
		p.count.sent.Add(1)
	case errors.Is(err, fabric.ErrPortDown):
		p.count.sendDown.Add(1)
	case errors.Is(err, fabric.ErrPortBusy):
		p.count.sendBusy.Add(1)
	default:
		p.count.sendError.Add(1)
	}
	return left, err
}

func (p *port) stats() PortStats {
	st := PortStats{Port: p.name,
		LLDP: p.count.lldp.Load(), NTS: p.count.nts.Load(), Answers: p.count.answers.Load(), Overlong: p.count.overlong.Load(),
		Throttled: p.count.throttled.Load(), Errors: p.count.errors.Load(), Sent: p.count.sent.Load(),
		SendDown: p.count.sendDown.Load(), SendBusy: p.count.sendBusy.Load(), SendError: p.count.sendError.Load()}
	for _, s := range p.sockets() {
		st.Dropped += s.Drops()
	}
	return st
}

// bucket is a token bucket that holds one second's worth of frames.
type bucket struct {
	rate, tokens float64
	last         time.Time
}

func newBucket(rate int, now time.Time) *bucket {
	return &bucket{rate: float64(rate), tokens: float64(rate), last: now}
}

// take takes one token. When there is none it tells how long to wait; it then waits
// for a hundredth of a second's worth at once, so that a storm costs few wake-ups.
func (b *bucket) take(now time.Time) time.Duration {
	b.tokens = min(b.tokens+now.Sub(b.last).Seconds()*b.rate, b.rate)
	b.last = now
	b.tokens--
	if b.tokens >= 0 {
		return 0
	}
	batch := max(b.rate/100, 1)
	return time.Duration((batch - b.tokens) / b.rate * float64(time.Second))
}
