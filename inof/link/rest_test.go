package link

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// restingSessions counts the sessions of servers that rest.
func restingSessions() int {
	buf := make([]byte, 1<<20)
	return bytes.Count(buf[:runtime.Stack(buf, true)], []byte("(*resting).wait("))
}

func waitForRest(n int) {
	for restingSessions() != n { // which stops the world: the session needs the processor too
		time.Sleep(200 * time.Microsecond)
	}
}

// updateOf has about so many bytes on the wire.
func updateOf(dev netip.Addr, seq uint64, size int) *wire.Update {
	f := wire.DownRecord{Device: dev, Port: "a", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: time.Unix(1_700_000_000, 0)}}
	for i := range size / 4 {
		f.Addrs = append(f.Addrs, netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}))
	}
	return &wire.Update{Origin: dev, Epoch: 1, Seq: seq, Downs: []wire.DownRecord{f}}
}

// Whatever the sizes of messages, wherever the peer's writes cut them and whether the
// session rested before or not: it takes all of them, in order.
func TestSessionsThatRestTakeEverything(t *testing.T) {
	restTakesEverything(t, nil)
}

// The same in TLS, where a record may be cut anywhere, and one read may bring several of them.
func TestSessionsInTLSThatRestTakeEverything(t *testing.T) {
	restTakesEverything(t, newCA(t, "CA"))
}

// inTLS lets a server speak TLS.
func inTLS(cfg *ServerConfig, ca *testCA) {
	store := NewCredentialStore(ca.issue(inoftest.ReflID, nil), nil)
	cfg.Auth = func() Auth { return Auth{Mode: wire.AuthTLS, TLS: store} }
}

// cutting is a socket that writes as many bytes as it is told; what is more waits for the next
// call.
type cutting struct {
	net.Conn
	all []byte // not written yet
	cut bool
}

func (c *cutting) Write(b []byte) (int, error) {
	if !c.cut {
		return c.Conn.Write(b)
	}
	c.all = append(c.all, b...)
	return len(b), nil
}

// connectTLS is connect in TLS; what is written is cut by the returned socket.
func connectTLS(t testing.TB, l *loopback, ca *testCA, dev netip.Addr) (net.Conn, *Session, *cutting) {
	t.Helper()
	raw, err := net.Dial("tcp", l.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	sock := &cutting{Conn: raw}
	store := NewCredentialStore(ca.issue(dev, nil), nil)
	nc := newTLSClient(sock, store, netip.Addr{})
	if err := nc.shake(); err != nil {
		t.Fatal(err)
	}
	cfg := SessionConfig{Auth: Auth{Mode: wire.AuthTLS, TLS: store}, Identify: func(netip.Addr) error { return nil }}
	_, s, err := handshakeOver(t, nc, dev, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return nc, s, sock
}

func restTakesEverything(t *testing.T, ca *testCA) {
	got := make(chan uint64, 10_000)
	l := startLoopback(t, func(cfg *ServerConfig) {
		if ca != nil {
			inTLS(cfg, ca)
		}
		sink := cfg.Sink
		cfg.Sink = func(ev PeerEvent) {
			if u, ok := ev.Msg.(*wire.Update); ok {
				got <- u.Seq
			}
			sink(ev)
		}
	})
	defer l.stop()
	dev := netip.MustParseAddr("10.0.0.1")
	var nc, sock net.Conn
	var s *Session
	var tlsCut *cutting
	if ca == nil {
		nc, s = connect(t, l, dev)
		sock = nc
	} else {
		nc, s, tlsCut = connectTLS(t, l, ca, dev)
		sock = tlsCut.Conn
	}
	defer sock.Close()
	<-l.peers
	seq, want := uint64(0), uint64(0)
	rapid.Check(t, func(t *rapid.T) {
		if rapid.Bool().Draw(t, "rested") {
			// The reader rests unless its buffer was just full: a keepalive lets it know
			// that there is no more.
			if _, err := nc.Write(s.Seal(nil, keepalive, time.Now())); err != nil {
				t.Fatal(err)
			}
			waitForRest(1)
		}
		var stream []byte
		for range rapid.IntRange(1, 8).Draw(t, "messages") {
			seq++
			size := rapid.SampledFrom([]int{0, 100, 200, 1000, 5000, 40_000}).Draw(t, "size")
			e, err := wire.Encode(updateOf(dev, seq, size+rapid.IntRange(0, 300).Draw(t, "more")))
			if err != nil {
				t.Fatal(err)
			}
			stream = s.Seal(stream, e, time.Now())
		}
		if tlsCut != nil {
			tlsCut.cut = true
			for len(stream) > 0 { // in records of some sizes
				n := min(len(stream), rapid.SampledFrom([]int{1, 100, 3000, 100_000}).Draw(t, "record"))
				if _, err := nc.Write(stream[:n]); err != nil {
					t.Fatal(err)
				}
				stream = stream[n:]
			}
			stream, tlsCut.all, tlsCut.cut = tlsCut.all, nil, false
		}
		for len(stream) > 0 {
			n := min(len(stream), rapid.SampledFrom([]int{1, 15, 256, 257, 3000, 100_000}).Draw(t, "write"))
			if _, err := sock.Write(stream[:n]); err != nil {
				t.Fatal(err)
			}
			if stream = stream[n:]; rapid.IntRange(0, 9).Draw(t, "yield") == 0 {
				runtime.Gosched()
			}
		}
		for want < seq {
			if want++; want != <-got {
				t.Fatalf("message %d is not the next", want)
			}
		}
	})
}

// A session that rests ends as others do.
func TestSessionsThatRestEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(l *loopback, p *Peer, nc net.Conn)
		want func(error) bool
	}{
		"peer closes": {func(_ *loopback, _ *Peer, nc net.Conn) { nc.Close() }, func(err error) bool { return errors.Is(err, io.EOF) }},
		"peer resets": {func(_ *loopback, _ *Peer, nc net.Conn) {
			_ = nc.(*net.TCPConn).SetLinger(0)
			nc.Close()
		}, func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
		"closed here":  {func(_ *loopback, p *Peer, _ net.Conn) { p.Close(wire.CodeCease, "enough") }, func(err error) bool { return wire.CodeOf(err) == wire.CodeCease }},
		"server stops": {func(l *loopback, _ *Peer, _ net.Conn) { l.stop() }, func(err error) bool { return wire.CodeOf(err) == wire.CodeCease }},
		"garbage": {func(_ *loopback, _ *Peer, nc net.Conn) { _, _ = nc.Write([]byte("GET / HTTP/1.1\r\n\r\n")) },
			func(err error) bool { return strings.Contains(err.Error(), "HTTP") }},
	} {
		t.Run(name, func(t *testing.T) {
			l := startLoopback(t, nil)
			defer l.stop()
			nc, _ := connect(t, l, netip.MustParseAddr("10.0.0.1"))
			defer nc.Close()
			p := <-l.peers
			waitForRest(1)
			c.end(l, p, nc)
			if ev := <-l.downs; ev.Peer != p || !c.want(ev.Err) {
				t.Errorf("it ended with %v", ev.Err)
			}
			waitForRest(0)
		})
		t.Run(name+" in TLS", func(t *testing.T) {
			ca := newCA(t, "CA")
			l := startLoopback(t, func(cfg *ServerConfig) { inTLS(cfg, ca) })
			defer l.stop()
			_, _, sock := connectTLS(t, l, ca, netip.MustParseAddr("10.0.0.1"))
			defer sock.Conn.Close()
			p := <-l.peers
			waitForRest(1)
			c.end(l, p, sock.Conn)
			ev := <-l.downs
			if name == "garbage" { // it is none of the protocol any more, but of TLS
				if wire.CodeOf(ev.Err) != wire.CodeTLS && wire.CodeOf(ev.Err) != wire.CodeNotINOF {
					t.Errorf("it ended with %v", ev.Err)
				}
			} else if ev.Peer != p || !c.want(ev.Err) {
				t.Errorf("it ended with %v", ev.Err)
			}
			waitForRest(0)
		})
	}
}

// The hold time goes on for a session that rests.
func TestHoldTimeOfASessionThatRests(t *testing.T) {
	l := startLoopback(t, func(cfg *ServerConfig) { cfg.Hold, cfg.Keepalive = wire.MinHold, wire.MinKeepalive })
	defer l.stop()
	began := time.Now()
	nc, _ := connect(t, l, netip.MustParseAddr("10.0.0.1"))
	defer nc.Close()
	<-l.peers
	if ev := <-l.downs; wire.CodeOf(ev.Err) != wire.CodeHoldExpired || time.Since(began) < wire.MinHold {
		t.Errorf("it ended after %v with %v", time.Since(began), ev.Err)
	}
}
