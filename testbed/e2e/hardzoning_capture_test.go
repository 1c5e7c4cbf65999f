package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/testbed/labtest"
)

// envCapture names the variable that says how long the proof by capture goes on after each kind of
// change was made once: 1h.
const envCapture = "INOF_HARDZONING_CAPTURE"

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

const (
	// closeMargin is how long frames may be on their way that passed the filter before it closed.
	closeMargin = 200 * time.Millisecond
	// lostAfter is how much later than a frame others have arrived when it has not.
	lostAfter = 10 * time.Second
)

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
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.ReadFull(c, b[:want]); err != nil {
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

// release waits for the frames under way that have to arrive; later ones need not.
func (p *proof) release(ways ...way) {
	p.mu.Lock()
	for _, w := range ways {
		p.must[w] = false
	}
	p.mu.Unlock()
	labtest.Eventually(p.t, fmt.Sprintf("all frames of %v to arrive, or to be lost", ways), func() error {
		p.late()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, w := range ways {
			if n := len(p.pending[w]); n > 0 {
				return fmt.Errorf("%v: %d frames are under way", w, n)
			}
		}
		return nil
	})
}

// passing waits until frames of all kinds pass between those who may talk, and has all do so from now on.
func (p *proof) passing() {
	p.t.Helper()
	p.mu.Lock()
	got, pongs, answers := maps.Clone(p.got), maps.Clone(p.pongs), maps.Clone(p.answers)
	p.mu.Unlock()
	labtest.Eventually(p.t, "frames to pass between those who may talk", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		for w, may := range p.may {
			if may && w.from != w.to && (p.got[w] < got[w]+5 || p.pongs[w] < pongs[w]+2 || p.answers[w] < answers[w]+2) {
				return fmt.Errorf("%v: %d frames, %d pings, %d answers", w, p.got[w]-got[w], p.pongs[w]-pongs[w], p.answers[w]-answers[w])
			}
		}
		return nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for w, may := range p.may {
		p.must[w] = may && w.from != w.to
	}
}

// shut notes what the kernel drops from now on.
func (p *proof) shut(ways ...way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range ways {
		p.closed[w] = time.Now().Add(closeMargin)
	}
}

// toggle has a host join the zone of another one, or leave it.
func (p *proof) toggle(x, y string) {
	zone := map[string]string{"1": "a", "2": "b"}[y[1:]]
	ways := []way{{x, y}, {y, x}}
	if p.may[ways[0]] {
		p.release(ways...)
		p.allow(x, y, false)
		p.zone("remove", zone, p.addr[x].String())
		p.kernel(x, y, false)
		p.shut(ways...)
		return
	}
	p.allow(x, y, true)
	p.zone("add", zone, p.addr[x].String())
	p.kernel(x, y, true)
	p.passing()
}

// flap pulls a host's cable, for a moment.
func (p *proof) flap(host string, routed bool) {
	var ways []way
	for _, o := range p.hosts {
		ways = append(ways, way{host, o}, way{o, host})
	}
	p.release(ways...)
	n := slices.Index(p.hosts, host) + 1
	p.fault("sw", fmt.Sprintf("eth%d", n), false)
	time.Sleep(time.Duration(p.rnd.IntN(80)) * time.Millisecond)
	p.fault("sw", fmt.Sprintf("eth%d", n), true)
	if routed { // went with the link
		p.run(host, "ip", "route", "replace", "192.0.0.0/16", "via", fmt.Sprintf("192.0.%d.254", n))
	}
	p.passing()
}

// restart ends the daemon and begins it again, perhaps as another program.
func (p *proof) restart(sig unix.Signal, program string) {
	p.proc.signal(sig)
	p.proc.exit()
	time.Sleep(time.Duration(p.rnd.IntN(300)) * time.Millisecond)
	p.proc = p.launchIn("sw", nil, program, "run", "-c", p.conf)
	p.normal()
}

// dropped gives by link how many frames it dropped: it was down, or the other end, which has room
// for 256, did not take them off in time. What a filter drops is not among them.
func (p *proof) dropped() map[string]uint64 {
	out := map[string]uint64{}
	add := func(node, port string) {
		p.in(node, func() error {
			l, err := netlink.LinkByName(port)
			if err != nil {
				return err
			}
			if st := l.Attrs().Statistics; st != nil && st.TxDropped+st.RxDropped > 0 {
				out[node+":"+port] = st.TxDropped + st.RxDropped
			}
			return nil
		})
	}
	for i, h := range p.hosts {
		add(h, "eth1")
		add("sw", fmt.Sprintf("eth%d", i+1))
	}
	return out
}

// A capture at all hosts shows no frame between hosts that may not talk, and each frame of those that
// may, while zones change, ports flap and the daemon is killed, stopped and upgraded. It goes on for
// INOF_HARDZONING_CAPTURE, 0 s if that is not set, after each change was made once.
func TestByCaptureNothingDeniedPassesAndNothingPermittedIsLost(t *testing.T) {
	var more time.Duration
	if text := os.Getenv(envCapture); text != "" {
		var err error
		if more, err = time.ParseDuration(text); err != nil {
			t.Fatal(envCapture, err)
		}
	}
	for name, routed := range map[string]bool{"bridge": false, "routed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProof(t, "capture"+name, routed)
			inofd := suite.Program(t, "inofd")
			upgraded := filepath.Join(p.dir, "inofd-upgraded")
			b, err := os.ReadFile(inofd)
			if err == nil {
				err = os.WriteFile(upgraded, b, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
			p.daemon()
			p.normal()
			for _, h := range p.hosts {
				p.listen(h)
				p.serves(h)
			}
			for _, h := range p.hosts {
				p.sends(h)
				for _, o := range p.hosts {
					if h != o {
						p.connects(way{h, o})
					}
				}
			}
			p.until(time.Second, p.late)
			p.passing()
			var never []way
			for w, may := range p.may {
				if !may {
					never = append(never, w)
				}
			}
			p.shut(never...)

			acts := []struct {
				name string
				do   func()
			}{
				{"i2 and t1", func() { p.toggle("i2", "t1") }},
				{"a kill", func() { p.restart(unix.SIGKILL, inofd) }},
				{"i1 and t2", func() { p.toggle("i1", "t2") }},
				{"i2's cable", func() { p.flap("i2", routed) }},
				{"i2 and t1", func() { p.toggle("i2", "t1") }},
				{"an upgrade", func() { p.restart(unix.SIGTERM, upgraded) }},
				{"t2's cable", func() { p.flap("t2", routed) }},
				{"i1 and t2", func() { p.toggle("i1", "t2") }},
				{"a restart", func() { p.restart(unix.SIGTERM, inofd) }},
				{"a flush", func() {
					if o := p.ctl("sw", "hard-zoning", "flush"); o.code != 0 {
						t.Error(o.stderr)
					}
				}},
			}
			n := 0
			for began := time.Now(); (n < len(acts) || time.Since(began) < more) && !t.Failed(); n++ {
				act := acts[n%len(acts)]
				if n >= len(acts) {
					act = acts[p.rnd.IntN(len(acts))]
				}
				p.mu.Lock()
				p.act = fmt.Sprintf("%s at %s, %s before", act.name, time.Now().Format("15:04:05.000"), p.act[:min(len(p.act), 60)])
				p.mu.Unlock()
				act.do()
				p.mu.Lock()
				for _, l := range p.leaks[:min(len(p.leaks), 10)] {
					t.Error(l)
				}
				p.mu.Unlock()
			}
			var all []way
			for w := range p.must {
				all = append(all, w)
			}
			p.release(all...)
			close(p.stop)
			p.done.Wait()

			var passed, denied, seen uint64
			for _, w := range all {
				passed, denied, seen = passed+p.required[w], denied+p.denied[w], seen+p.seen[w]
			}
			t.Logf("%d changes; %d frames captured at four hosts; %d of those that had to arrive did, %d did not; %d were sent to hosts that may not be reached, %d of them passed",
				n, seen, passed, len(p.lost), denied, len(p.leaks))
			for _, l := range p.lost[:min(len(p.lost), 40)] {
				t.Error("lost:", l)
			}
			t.Log("frames that links dropped, as one that is down or full does:", p.dropped())
			for _, l := range p.leaks[:min(len(p.leaks), 10)] {
				t.Error(l)
			}
			if p.missed > 0 {
				t.Errorf("the captures had no room for %d frames: they prove nothing", p.missed)
			}
			if passed == 0 || denied == 0 {
				t.Error("nothing was tried")
			}
		})
	}
}
