package link

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// besieged is a server in one authentication mode, and how its peers come to it.
type besieged struct {
	*loopback
	t    *testing.T
	mode wire.AuthMode
	ca   *testCA
}

func besiege(t *testing.T, mode wire.AuthMode) *besieged {
	t.Helper()
	b := &besieged{t: t, mode: mode}
	if mode == wire.AuthTLS {
		b.loopback, b.ca, _ = tlsLoopback(t, func(PeerEvent) {})
		return b
	}
	auth := hmacAuth("password1")
	if mode == wire.AuthNone {
		auth = Auth{Mode: wire.AuthNone}
	}
	b.loopback = startLoopback(t, func(c *ServerConfig) { c.Auth = func() Auth { return auth } })
	return b
}

// knock opens a connection, over TLS in that mode, and no session.
func (b *besieged) knock(dev netip.Addr) (net.Conn, Auth) {
	b.t.Helper()
	nc, err := net.Dial("tcp", b.server.Addr().String())
	if err != nil {
		b.t.Fatal(err)
	}
	switch b.mode {
	case wire.AuthNone:
		return nc, Auth{Mode: wire.AuthNone}
	case wire.AuthHMAC:
		return nc, hmacAuth("password1")
	}
	c := b.ca.issue(dev, nil)
	tc := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}, Certificates: []tls.Certificate{c.Certificate}})
	return tc, tlsAuth(c).a
}

// enter makes a session by hand, and waits until the server has it.
func (b *besieged) enter(dev netip.Addr) (net.Conn, *Session) {
	b.t.Helper()
	nc, auth := b.knock(dev)
	s, err := NewSession(SessionConfig{Self: dev, Dialer: true, Roles: wire.RoleClient, Auth: auth, Hold: patientHold, Nonce: inoftest.GoldenNonce(dev.AsSlice()[3]),
		Identify: func(netip.Addr) error { return nil }}, time.Now())
	if err != nil {
		b.t.Fatal(err)
	}
	out, _ := s.Start(nil, time.Now())
	for range 2 {
		if _, err := nc.Write(out); err != nil {
			b.t.Fatal(err)
		}
		if _, out, err = s.Receive(readFrame(b.t, nc), nil, time.Now()); err != nil {
			b.t.Fatal(err)
		}
	}
	<-b.peers
	return nc, s
}

// within wants the heap not to have grown by more than a bound, which is several times
// what is expected.
func (b *besieged) within(what string, before, bound uint64) {
	b.t.Helper()
	if now := inoftest.Heap(); now > before+bound {
		b.t.Errorf("%v: %s: %d KiB more than before, at most %d", b.mode, what, (now-before)>>10, bound>>10)
	}
}

// announce is a header that promises a message of so many bytes.
func announce(length int, seq uint64) []byte {
	return inoftest.AppendHeader(nil, length, wire.TypeUpdate, 0, seq)
}

// await waits for a counter of the server.
func (b *besieged) await(what string, count func(TransportCounters) uint64, least uint64) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); count(b.server.Counters()) < least; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%v: %s is %d, want %d", b.mode, what, count(b.server.Counters()), least)
		}
	}
}

// In every mode: strangers that begin a message and do not end it, and peers that promise
// the longest one, cost no more memory than they have sent; what is too long is cut by
// its header and counted; peers that send the longest messages without end leave nothing
// behind. An honest peer, there from the beginning, does not notice.
func TestEndlessAndOversizedMessages(t *testing.T) {
	for _, mode := range []wire.AuthMode{wire.AuthNone, wire.AuthHMAC, wire.AuthTLS} {
		t.Run(mode.String(), func(t *testing.T) {
			b := besiege(t, mode)
			defer b.stop()
			var all []net.Conn
			defer func() {
				for _, c := range all {
					_ = c.Close()
				}
			}()
			honest, s := b.enter(inoftest.DevID(100))
			all = append(all, honest)

			const strangers = 64
			before := inoftest.Heap()
			for i := range strangers {
				nc, _ := b.knock(inoftest.DevID(i))
				all = append(all, nc)
				if _, err := nc.Write(append(announce(wire.MaxHandshakeMessage, 0), 1)); err != nil {
					t.Fatal(err)
				}
			}
			b.within("strangers that do not go on", before, strangers*(192<<10))

			const peers = 16
			before = inoftest.Heap()
			for i := range peers {
				nc, _ := b.enter(inoftest.DevID(120 + i))
				all = append(all, nc)
				if _, err := nc.Write(append(announce(wire.MaxMessage, 2), make([]byte, 32<<10)...)); err != nil {
					t.Fatal(err)
				}
			}
			b.await("bytes in", func(c TransportCounters) uint64 { return c.BytesIn }, peers*32<<10)
			b.within("peers that promise 1 MiB and send 32 KiB", before, peers*(768<<10)) // both ends are in this process, with the buffers of TLS

			too := b.server.Counters().BadLength
			nc, _ := b.enter(inoftest.DevID(150))
			if _, err := nc.Write(announce(wire.MaxMessage+1, 2)); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, nc) // until the server has told and closed
			_ = nc.Close()
			b.await("bad lengths", func(c TransportCounters) uint64 { return c.BadLength }, too+1)

			before = inoftest.Heap()
			nc, endless := b.enter(inoftest.DevID(160))
			long := longUpdate(t)
			for range 24 {
				if _, err := nc.Write(endless.Seal(nil, long, time.Now())); err != nil {
					t.Fatal(err)
				}
			}
			b.await("messages in", func(c TransportCounters) uint64 { return c.BytesIn }, 24*wire.MaxMessage*9/10)
			b.within("24 messages of 1 MiB", before, 8<<20)
			_ = nc.Close()

			if _, err := honest.Write(s.Seal(nil, keepalive, time.Now())); err != nil {
				t.Errorf("the honest peer cannot send any more: %v", err)
			}
			for _, v := range b.server.Infos() {
				if v.Device == inoftest.DevID(100) && (v.State != StateEstablished || v.Reconnects != 0) {
					t.Errorf("the honest peer: %+v", v)
				}
			}
		})
	}
}

// longUpdate is as long as a message may be; most of it is of a type that is skipped.
func longUpdate(t *testing.T) *wire.Encoded {
	t.Helper()
	e, err := wire.Encode(&wire.Update{Origin: inoftest.DevID(160), Epoch: 1, Seq: 1})
	if err != nil {
		t.Fatal(err)
	}
	n := wire.MaxMessage - e.Len() - 4
	tlv := binary.BigEndian.AppendUint32(nil, 0x50<<24|uint32(n))
	return wire.Raw(e.Type(), append(append(e.Body(), tlv...), make([]byte, n)...))
}
