package link

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

func benchUpdate() *wire.Update {
	return &wire.Update{
		Origin: inoftest.DevID(0), Epoch: 1, Seq: 1, FaultAt: inoftest.T0, SentAt: inoftest.T0, ReflectedAt: inoftest.T0,
		Downs: []wire.DownRecord{{Device: inoftest.DevID(0), Port: "Ethernet4", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0}, Addrs: []netip.Addr{inoftest.HostIP(0)}}},
	}
}

func BenchmarkMAC(b *testing.B) {
	d, l := established(b)
	e, err := wire.Encode(benchUpdate())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Seal", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf = d.Seal(buf[:0], e, inoftest.T0)
		}
	})
	frame := d.Seal(nil, e, inoftest.T0)
	h, _ := wire.ParseHeader(frame, wire.MaxMessage)
	b.Run("Open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.rx.seq = h.Seq - 1
			if _, err := l.rx.open(h, frame); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A fault that concerns 16 of 1,000 clients, set and cleared in turn.
func BenchmarkReflectorFault(b *testing.B) {
	const clients, inZone = 1000, 16
	dev := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}) }
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}) }
	var set zone.Set
	for i := range clients {
		if i%inZone == 0 {
			set.Zones = append(set.Zones, zone.Zone{Name: fmt.Sprint("z", i/inZone)})
		}
		z := &set.Zones[len(set.Zones)-1]
		z.Members = append(z.Members, inoftest.AddrMember(addr(i+1)))
	}
	r, err := reflector.New(inoftest.ReflID, 1, set, reflector.Config{}, inoftest.T0)
	if err != nil {
		b.Fatal(err)
	}
	for i := range clients {
		r.Join(dev(i+1), inoftest.T0)
		if _, err := r.Receive(dev(i+1), &wire.Update{Origin: dev(i + 1), Hosts: []wire.HostRecord{{Op: wire.Put, Host: inoftest.HostAt(addr(i+1), dev(i+1), "p")}}}, inoftest.T0); err != nil {
			b.Fatal(err)
		}
		r.Receive(dev(i+1), &wire.EndOfSync{}, inoftest.T0)
	}
	fault := &wire.Update{Origin: dev(1), Downs: []wire.DownRecord{{Device: dev(1), Port: "p", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0}, Addrs: []netip.Addr{addr(1)}}}}
	clear := &wire.Update{Origin: dev(1), Downs: []wire.DownRecord{{Device: dev(1), Port: "p", Addrs: []netip.Addr{addr(1)}}}}
	b.ReportAllocs()
	for b.Loop() {
		for _, u := range []*wire.Update{fault, clear} {
			ds, err := r.Receive(dev(1), u, inoftest.T0)
			if err != nil || len(ds) != 1 || len(ds[0].To) != inZone-1 {
				b.Fatal(len(ds), err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/change")
}

// One message to 100 sessions over loopback until the last has it, in turn with a
// bare loop that writes the same bytes to 100 sockets.
func BenchmarkFanOut100(b *testing.B) {
	const n = 100
	l := startLoopback(b, nil)
	defer l.stop()
	var peers Peers
	var to []netip.Addr
	got := make(chan struct{}, n)
	read := func(nc net.Conn) {
		buf := make([]byte, 4096)
		for pending := 0; ; {
			m, err := nc.Read(buf[pending:])
			if err != nil {
				return
			}
			for pending += m; pending >= wire.HeaderLen; {
				size := int(buf[2])<<8 | int(buf[3])
				if pending < size {
					break
				}
				if wire.MsgType(buf[5]) == wire.TypeUpdate {
					got <- struct{}{}
				}
				pending = copy(buf, buf[size:pending])
			}
		}
	}
	for i := range n {
		nc, _ := connect(b, l, inoftest.DevID(i))
		defer nc.Close()
		p := <-l.peers
		peers.Handle(PeerEvent{Peer: p, Kind: PeerUp})
		to = append(to, p.Device())
		go read(nc)
	}
	bare := make([]net.Conn, n)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	for i := range bare {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		defer nc.Close()
		go read(nc)
		if bare[i], err = ln.Accept(); err != nil {
			b.Fatal(err)
		}
		defer bare[i].Close()
	}
	u := benchUpdate()
	d, _ := established(b)
	e, _ := wire.Encode(u)
	frame := d.Seal(nil, e, inoftest.T0)
	var ours, theirs []time.Duration
	last := func(send func()) time.Duration {
		began := time.Now()
		send()
		for range n {
			<-got
		}
		return time.Since(began)
	}
	for b.Loop() {
		ours = append(ours, last(func() { _ = peers.Deliver([]wire.Delivery{{To: to, Msg: u}}) }))
		theirs = append(theirs, last(func() {
			for _, c := range bare {
				_, _ = c.Write(frame)
			}
		}))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	at := func(ds []time.Duration, p int) float64 { return float64(ds[len(ds)*p/100].Nanoseconds()) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(at(ours, 50), "ns/last-p50")
	b.ReportMetric(at(theirs, 50), "ns/bare-p50")
	b.ReportMetric(at(ours, 99), "ns/last-p99")
	b.ReportMetric(at(ours, 50)/at(theirs, 50), "ratio-p50")
	b.ReportMetric(at(ours, 99)/at(theirs, 99), "ratio-p99")
}
