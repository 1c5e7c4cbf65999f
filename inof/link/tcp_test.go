package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// patientHold is the hold time of sessions in real time whose client sends no keepalive:
// beyond what a test takes on a machine with a lot else to do.
const patientHold = 10 * time.Minute

// loopback is a server on a real socket that collects its sessions.
type loopback struct {
	server *Server
	peers  chan *Peer
	downs  chan PeerEvent
	stop   func()
}

func startLoopback(t testing.TB, change func(*ServerConfig)) *loopback {
	t.Helper()
	l := &loopback{peers: make(chan *Peer, 10_000), downs: make(chan PeerEvent, 10_000)}
	cfg := ServerConfig{
		TransportConfig: TransportConfig{Self: inoftest.ReflID, Roles: wire.RoleReflector, Hold: patientHold, Auth: func() Auth { return hmacAuth("password1") }, Sink: func(ev PeerEvent) {
			switch ev.Kind {
			case PeerUp:
				l.peers <- ev.Peer
			case PeerDown:
				l.downs <- ev
			}
		}},
		Listen: func(ctx context.Context) (net.Listener, error) {
			return (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		},
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if l.server, err = NewServer(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = l.server.Run(ctx) }()
	<-l.server.Ready()
	l.stop = func() { cancel(); <-done }
	return l
}

// connect makes a session by hand; what follows the handshake is left unread.
func connect(t testing.TB, l *loopback, dev netip.Addr) (net.Conn, *Session) {
	t.Helper()
	nc, s, err := handshakeAs(t, l, dev)
	if err != nil {
		t.Fatal(err)
	}
	return nc, s
}

// tryConnect gives the error of a handshake.
func tryConnect(t testing.TB, l *loopback, dev netip.Addr) (net.Conn, error) {
	t.Helper()
	nc, _, err := handshakeAs(t, l, dev)
	return nc, err
}

func handshakeAs(t testing.TB, l *loopback, dev netip.Addr) (net.Conn, *Session, error) {
	t.Helper()
	nc, err := net.Dial("tcp", l.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return handshakeOver(t, nc, dev, SessionConfig{Auth: hmacAuth("password1")})
}

// handshakeOver makes the session of a dialer, with the rest of its configuration.
func handshakeOver(t testing.TB, nc net.Conn, dev netip.Addr, cfg SessionConfig) (net.Conn, *Session, error) {
	t.Helper()
	cfg.Self, cfg.Dialer, cfg.Roles, cfg.Hold, cfg.Nonce = dev, true, wire.RoleClient, patientHold, inoftest.GoldenNonce(dev.AsSlice()[3])
	s, err := NewSession(cfg, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Start(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for {
		if len(out) > 0 {
			if _, err := nc.Write(out); err != nil {
				t.Fatal(err)
			}
		}
		if st, _ := s.State(); st == StateEstablished {
			return nc, s, nil
		}
		frame := readFrame(t, nc)
		if _, out, err = s.Receive(frame, nil, time.Now()); err != nil {
			return nc, s, err
		}
	}
}

func readFrame(t testing.TB, r io.Reader) []byte {
	t.Helper()
	b := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	h, err := wire.ParseHeader(b, wire.MaxMessage)
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, make([]byte, h.Length-wire.HeaderLen)...)
	if _, err := io.ReadFull(r, b[wire.HeaderLen:]); err != nil {
		t.Fatal(err)
	}
	return b
}

// One client does not read: it is cut when not even the latest state has room. The
// others get every message, in order.
func TestSlowReaderIsCutAndOthersGoOn(t *testing.T) {
	const limit = 1 << 20
	l := startLoopback(t, func(c *ServerConfig) { c.QueueBytes = limit })
	defer l.stop()
	var peers Peers
	conns := map[netip.Addr]net.Conn{}
	sessions := map[netip.Addr]*Session{}
	for i := range 3 {
		conns[inoftest.DevID(i)], sessions[inoftest.DevID(i)] = connect(t, l, inoftest.DevID(i))
		defer conns[inoftest.DevID(i)].Close()
		peers.Handle(PeerEvent{Peer: <-l.peers, Kind: PeerUp})
	}
	hosts := func(seq uint64) []wire.HostRecord {
		list := make([]wire.HostRecord, 300)
		for i := range list {
			list[i] = wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(9), fmt.Sprintf("Ethernet%d", seq))}
		}
		return list
	}
	received := make(chan error, 2)
	const total = 700
	for i := 1; i < 3; i++ {
		go func(nc net.Conn, s *Session) {
			received <- func() error {
				for want := uint64(1); want <= total; {
					m, _, err := s.Receive(readFrame(t, nc), nil, time.Now())
					if err != nil {
						return err
					}
					if u, ok := m.(*wire.Update); ok {
						if u.Seq != want {
							return fmt.Errorf("update %d, want %d", u.Seq, want)
						}
						want++
					}
				}
				return nil
			}()
		}(conns[inoftest.DevID(i)], sessions[inoftest.DevID(i)])
	}
	to := []netip.Addr{inoftest.DevID(0), inoftest.DevID(1), inoftest.DevID(2)}
	var longest time.Duration
	for seq := range uint64(total) {
		began := time.Now()
		if err := peers.Deliver([]wire.Delivery{{To: to, Msg: &wire.Update{Origin: inoftest.ReflID, Seq: seq + 1, Hosts: hosts(seq)}}}); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(began))
		for i := 1; i < 3; i++ { // an honest reader that falls behind here is given time
			for peers.Get(inoftest.DevID(i)).Info().QueueBytes > limit/8 {
				<-time.After(time.Millisecond)
			}
		}
	}
	for range 2 {
		if err := <-received; err != nil {
			t.Error(err)
		}
	}
	ev := <-l.downs
	if ev.Peer.Device() != inoftest.DevID(0) || wire.CodeOf(ev.Err) != wire.CodeSlow {
		t.Errorf("down: %v, %v", ev.Peer.Device(), ev.Err)
	}
	c := l.server.Counters()
	if c.SlowCut != 1 || len(l.downs) != 0 {
		t.Errorf("counters %+v", c)
	}
	t.Logf("longest Deliver %v; %d messages in %d writes", longest, c.MsgOut, c.Writes)
}

// A client that stops reading for a while costs the memory of one state, whatever
// happens meanwhile, and then gets the latest one and every number that it must know.
func TestSlowReaderGetsTheLatestState(t *testing.T) {
	const limit, total, keys = 1 << 20, 1000, 300
	l := startLoopback(t, func(c *ServerConfig) { c.QueueBytes = limit })
	defer l.stop()
	var peers Peers
	nc, s := connect(t, l, inoftest.DevID(0))
	defer nc.Close()
	peer := <-l.peers
	peers.Handle(PeerEvent{Peer: peer, Kind: PeerUp})
	most := 0
	for seq := range uint64(total) {
		hosts := make([]wire.HostRecord, keys)
		for i := range hosts {
			h := inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(9), "Ethernet1")
			h.Since = inoftest.T0.Add(time.Duration(seq) * time.Second)
			hosts[i] = wire.HostRecord{Op: wire.Put, Host: h}
		}
		u := &wire.Update{Origin: inoftest.DevID(9), Epoch: 3, Seq: seq + 1, Hosts: hosts, Pos: wire.Stamp{Epoch: 1, Seq: seq + 1}}
		if err := peers.Deliver([]wire.Delivery{{To: []netip.Addr{inoftest.DevID(0)}, Msg: u}}); err != nil {
			t.Fatal(err)
		}
		most = max(most, peer.Info().QueueBytes)
	}
	if err := peers.Deliver([]wire.Delivery{{To: []netip.Addr{inoftest.DevID(0)}, Msg: &wire.EndOfSync{Epoch: 1, Seq: total}}}); err != nil {
		t.Fatal(err)
	}
	if most > limit {
		t.Errorf("%d bytes waited, limit %d", most, limit)
	}
	last := map[zone.HostKey]time.Time{}
	var pos wire.Stamp
	messages := 0
	for {
		m, _, err := s.Receive(readFrame(t, nc), nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if u, ok := m.(*wire.Update); ok {
			messages++
			for _, h := range u.Hosts {
				if h.Host.Since.Before(last[h.Host.HostKey]) {
					t.Fatalf("%v goes back in time", h.Host.Addr)
				}
				last[h.Host.HostKey] = h.Host.Since
			}
			if !u.Partial {
				pos = u.Pos
			} else if u.Pos.Known() {
				t.Fatal("a part of a run has a position")
			}
		}
		if _, ok := m.(*wire.EndOfSync); ok {
			break
		}
	}
	for k, at := range last {
		if want := inoftest.T0.Add((total - 1) * time.Second); !at.Equal(want) {
			t.Errorf("%v is of %v, want %v", k.Addr, at, want)
		}
	}
	c := l.server.Counters()
	if len(last) != keys || pos != (wire.Stamp{Epoch: 1, Seq: total}) || c.SlowCut != 0 || c.Coalesced == 0 || messages >= total {
		t.Errorf("%d hosts, position %v, %d messages, counters %+v", len(last), pos, messages, c)
	}
	t.Logf("%d changes were %d messages, at most %d bytes waited", total, messages, most)
}

// Messages that are sent one by one go out one by one, without a goroutine; those
// of one Deliver share a write.
func TestOneDeliverIsOneWrite(t *testing.T) {
	l := startLoopback(t, nil)
	defer l.stop()
	nc, s := connect(t, l, inoftest.DevID(0))
	defer nc.Close()
	var peers Peers
	peers.Handle(PeerEvent{Peer: <-l.peers, Kind: PeerUp})
	before := l.server.Counters()
	var ds []wire.Delivery
	for i := range 100 {
		ds = append(ds, wire.Delivery{To: []netip.Addr{inoftest.DevID(0)}, Msg: &wire.EndOfSync{Seq: uint64(i)}})
	}
	if err := peers.Deliver(ds); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		m, _, err := s.Receive(readFrame(t, nc), nil, time.Now())
		if e, ok := m.(*wire.EndOfSync); err != nil || !ok || e.Seq != uint64(i) {
			t.Fatalf("message %d: %v, %v", i, m, err)
		}
	}
	if c := l.server.Counters(); c.Writes-before.Writes != 1 || c.MsgOut-before.MsgOut != 100 {
		t.Errorf("%d messages in %d writes", c.MsgOut-before.MsgOut, c.Writes-before.Writes)
	}
	if err := peers.Deliver([]wire.Delivery{{To: []netip.Addr{inoftest.DevID(0)}, Msg: &wire.Notification{Code: wire.CodeLimit, Text: "test"}}}); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Receive(readFrame(t, nc), nil, time.Now())
	var peer *PeerError
	if !errors.As(err, &peer) || peer.Code != wire.CodeLimit || !strings.Contains(peer.Text, "test") {
		t.Errorf("%v", err)
	}
	if err := peers.Get(inoftest.DevID(0)).Send(&wire.EndOfSync{}); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func benchUpdate() *wire.Update {
	return &wire.Update{
		Origin: inoftest.DevID(0), Epoch: 1, Seq: 1, FaultAt: inoftest.T0, SentAt: inoftest.T0, ReflectedAt: inoftest.T0,
		Downs: []wire.DownRecord{{Device: inoftest.DevID(0), Port: "Ethernet4", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0}, Addrs: []netip.Addr{inoftest.HostIP(0)}}},
	}
}

func BenchmarkCodec(b *testing.B) {
	host := &wire.Update{Origin: inoftest.DevID(0), Epoch: 1, Seq: 1, SentAt: inoftest.T0, Hosts: []wire.HostRecord{{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "Ethernet4")}}}
	zones := &wire.Update{Origin: inoftest.ReflID, Epoch: 1, Seq: 1, Zones: []wire.ZoneRecord{{Op: wire.Put, Zone: zone.Zone{Name: "z"}}}}
	for i := range 16 {
		zones.Zones[0].Zone.Members = append(zones.Zones[0].Zone.Members, inoftest.AddrMember(inoftest.HostIP(i)))
	}
	for _, tt := range []struct {
		name string
		m    wire.Message
	}{{"Open", inoftest.Golden["open-client"]}, {"Keepalive", &wire.Keepalive{}}, {"Fault", benchUpdate()}, {"Host", host}, {"Zone16", zones}, {"EndOfSync", &wire.EndOfSync{}}} {
		frame := inoftest.FrameOf(b, tt.m)
		b.Run("Encode/"+tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Encode(tt.m); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Decode/"+tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Decode(frame); err != nil {
					b.Fatal(err)
				}
			}
		})
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
