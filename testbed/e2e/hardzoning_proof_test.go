package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// proof captures all IP frames at all hosts while they send to each other, and knows of each moment
// who must reach whom and who must not.
type proof struct {
	*apart
	rnd *rand.Rand

	// Below apart.mu.
	must     map[way]bool // each frame has to arrive
	pending  map[way]map[uint64]time.Time
	heard    map[string]time.Time // by host: all that came before it is captured
	act      string               // what is being done, and since when
	lost     []string
	required map[way]uint64 // frames that had to arrive, and did
	denied   map[way]uint64 // that were sent and had not to arrive
	seen     map[way]uint64 // captured frames of any kind
	answers  map[way]uint64 // to NVMe/TCP-like commands, and to pings
	pongs    map[way]uint64
	breaks   map[way]int // of connections
	missed   uint32      // frames that a capture had no room for
}

func newProof(t *testing.T, name string, routed bool) *proof {
	p := &proof{apart: newApart(t, name, routed), must: map[way]bool{}, pending: map[way]map[uint64]time.Time{}, heard: map[string]time.Time{}, required: map[way]uint64{}, denied: map[way]uint64{},
		seen: map[way]uint64{}, answers: map[way]uint64{}, pongs: map[way]uint64{}, breaks: map[way]int{}}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	p.rnd = rand.New(rand.NewPCG(seed, 1))
	for _, x := range p.hosts {
		for _, y := range p.hosts {
			p.pending[way{x, y}] = map[uint64]time.Time{}
		}
	}
	return p
}

// until runs fn again and again until the test ends.
func (p *proof) until(every time.Duration, fn func()) {
	p.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				fn()
			}
		}
	})
}

// listen captures at a host, with the kernel's time of each frame.
func (p *proof) listen(at string) {
	var fd int
	p.in(at, func() error {
		ifi, err := net.InterfaceByName("eth1")
		if err != nil {
			return err
		}
		proto := binary.NativeEndian.Uint16([]byte{unix.ETH_P_IP >> 8, unix.ETH_P_IP & 0xff})
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(proto)); err != nil {
			return err
		}
		return errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: ifi.Index}))
	})
	p.done.Go(func() {
		defer unix.Close(fd)
		names := map[netip.Addr]string{}
		for h, a := range p.addr {
			names[a] = h
		}
		b, oob := make([]byte, 2048), make([]byte, 128)
		for {
			begun := time.Now()
			n, oobn, _, _, err := unix.Recvmsg(fd, b, oob, 0)
			select {
			case <-p.stop:
				st, _ := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
				p.mu.Lock()
				p.missed += st.Drops
				p.mu.Unlock()
				return
			default:
			}
			if err != nil { // there was none
				p.mu.Lock()
				p.heard[at] = begun
				p.mu.Unlock()
			} else if n >= 34 {
				p.captured(at, b[:n], stampOf(oob[:oobn]), names)
			}
		}
	})
}

func stampOf(oob []byte) time.Time {
	list, _ := unix.ParseSocketControlMessage(oob)
	for _, m := range list {
		if m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	return time.Now()
}

func (p *proof) captured(at string, b []byte, when time.Time, names map[netip.Addr]string) {
	w := way{names[netip.AddrFrom4([4]byte(b[26:30]))], names[netip.AddrFrom4([4]byte(b[30:34]))]}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard[at] = when
	if w.from == "" || w.to == "" || w.from == w.to {
		return
	}
	p.seen[w]++
	if since := p.closed[w]; !since.IsZero() && when.After(since) {
		p.leaks = append(p.leaks, fmt.Sprintf("%s got a frame of protocol %d from %s to %s, %s after that was closed", at, b[23], w.from, w.to, when.Sub(since)))
	}
	switch {
	case w.to != at: // flooded
	case b[23] == unix.IPPROTO_ICMP && b[34] == 0:
		p.pongs[w]++
	case b[23] == unix.IPPROTO_UDP && len(b) >= 50 && binary.BigEndian.Uint16(b[36:]) == storagePort:
		p.got[w]++
		seq := binary.BigEndian.Uint64(b[42:])
		if _, ok := p.pending[w][seq]; ok {
			delete(p.pending[w], seq)
			p.required[w]++
		}
	}
}

// sends has a host send numbered frames and pings to all others.
func (p *proof) sends(from string) {
	var udp *net.UDPConn
	var icmp net.PacketConn
	p.in(from, func() (err error) {
		if udp, err = net.ListenUDP("udp4", &net.UDPAddr{Port: storagePort}); err != nil {
			return err
		}
		icmp, err = net.ListenPacket("ip4:icmp", p.addr[from].String())
		return err
	})
	p.done.Go(func() { <-p.stop; udp.Close(); icmp.Close() })
	p.done.Go(func() { _, _ = io.Copy(io.Discard, udp) })
	p.done.Go(func() { _, _, _ = icmp.ReadFrom(make([]byte, 1)) })
	seq := uint64(0)
	p.until(4*time.Millisecond, func() {
		seq++
		for _, to := range p.hosts {
			if to == from {
				continue
			}
			w, b := way{from, to}, binary.BigEndian.AppendUint64(nil, seq)
			p.mu.Lock()
			if p.must[w] {
				p.pending[w][seq] = time.Now()
			} else if !p.closed[w].IsZero() {
				p.denied[w]++
			}
			p.mu.Unlock()
			if _, err := udp.WriteToUDPAddrPort(b, netip.AddrPortFrom(p.addr[to], storagePort)); err != nil {
				p.mu.Lock()
				delete(p.pending[w], seq) // it was not sent
				p.mu.Unlock()
			}
		}
	})
	p.until(20*time.Millisecond, func() {
		b := []byte{8, 0, 0xf7, 0xfd, 0, 1, 0, 1}
		for _, to := range p.hosts {
			if to != from {
				_, _ = icmp.WriteTo(b, &net.IPAddr{IP: p.addr[to].AsSlice()})
			}
		}
	})
}

// serves answers what looks like NVMe/TCP: an ICReq by an ICResp, each command by data.
func (p *proof) serves(at string) {
	var l net.Listener
	p.in(at, func() (err error) {
		l, err = net.Listen("tcp4", fmt.Sprintf("%s:%d", p.addr[at], storagePort))
		return err
	})
	p.done.Go(func() { <-p.stop; l.Close() })
	p.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.done.Go(func() { <-p.stop; c.Close() })
			p.done.Go(func() {
				defer c.Close()
				b := make([]byte, 128)
				if _, err := io.ReadFull(c, b); err != nil {
					return
				}
				b[0] = 1 // ICResp
				if _, err := c.Write(b); err != nil {
					return
				}
				answer := make([]byte, 24+4096) // C2HData
				for {
					if _, err := io.ReadFull(c, b[:72]); err != nil {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			})
		}
	})
}

// connects has a host do I/O at another one, over a connection that lasts as long as it can.
func (p *proof) connects(w way) {
	p.done.Go(func() {
		for {
			select {
			case <-p.stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			var c net.Conn
			_ = p.lab.Do(w.from, func() (err error) {
				c, err = net.DialTimeout("tcp4", fmt.Sprintf("%s:%d", p.addr[w.to], storagePort), 500*time.Millisecond)
				return err
			})
			if c == nil {
				continue
			}
			began := time.Now()
			err := p.io(c, w)
			c.Close()
			select {
			case <-p.stop:
			default:
				p.mu.Lock()
				p.breaks[w]++
				if w.from == "i1" && w.to == "t1" {
					p.lost = append(p.lost, fmt.Sprintf("the connection of %v broke after %s: %v", w, time.Since(began), err))
				}
				p.mu.Unlock()
			}
		}
	})
}

func (p *proof) io(c net.Conn, w way) error {
	b := make([]byte, 128+4096)
	if _, err := c.Write(b[:128]); err != nil {
		return err
	}
	want := 128
	for {
		if err := fill(c, b[:want]); err != nil {
			return err
		}
		p.mu.Lock()
		p.answers[w]++
		p.mu.Unlock()
		select {
		case <-p.stop:
			return nil
		case <-time.After(10 * time.Millisecond):
		}
		if _, err := c.Write(b[:72]); err != nil {
			return err
		}
		want = 24 + 4096
	}
}

// fill reads until b is full. That this process was stopped is no silence of the peer.
func fill(c net.Conn, b []byte) error {
	for silent := 0; len(b) > 0; {
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		n, err := c.Read(b)
		switch b = b[n:]; {
		case n > 0:
			silent = 0
		case errors.Is(err, os.ErrDeadlineExceeded) && silent < 20:
			silent++
		default:
			return err
		}
	}
	return nil
}

// late counts what has not arrived.
func (p *proof) late() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w, frames := range p.pending {
		for seq, at := range frames {
			if p.heard[w.to].Sub(at) > lostAfter {
				delete(frames, seq)
				p.lost = append(p.lost, fmt.Sprintf("frame %d of %v, which may talk throughout, sent at %s, missed after %s", seq, w, at.Format("15:04:05.000"), p.act))
			}
		}
	}
}
