package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
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
