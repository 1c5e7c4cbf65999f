package link

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// tlsLoopback is a TLS server on a real socket and its client's configuration.
func tlsLoopback(t testing.TB, sink func(PeerEvent)) (*loopback, *testCA, func(netip.Addr) *Dialer) {
	t.Helper()
	ca := newCA(t, "CA")
	l := startLoopback(t, func(c *ServerConfig) {
		store := NewCredentialStore(ca.issue(inoftest.ReflID, nil), nil)
		c.Auth = func() Auth { return Auth{Mode: wire.AuthTLS, TLS: store} }
		c.QueueBytes = 1 << 20
	})
	dial := func(dev netip.Addr) *Dialer {
		store := NewCredentialStore(ca.issue(dev, nil), nil)
		d, err := NewDialer(DialerConfig{
			TransportConfig: TransportConfig{Self: dev, Roles: wire.RoleClient, Auth: func() Auth { return Auth{Mode: wire.AuthTLS, TLS: store} }, Sink: sink},
			Name:            "reflector", Address: inoftest.ReflID,
			Dial: func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", l.server.Addr().String())
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	return l, ca, dial
}

// Messages of all sizes in both directions over real TCP; the end is told.
func TestTLSOverTCP(t *testing.T) {
	got := make(chan wire.Message, 10_000)
	ended := make(chan error, 10)
	l, _, dial := tlsLoopback(t, func(ev PeerEvent) {
		switch ev.Kind {
		case PeerMessage:
			got <- ev.Msg
		case PeerDown:
			ended <- ev.Err
		}
	})
	d := dial(inoftest.DevID(0))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = d.Run(ctx) })
	p := <-l.peers
	hosts := make([]wire.HostRecord, 300)
	for i := range hosts {
		hosts[i] = wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(9), "Ethernet1")}
	}
	for i := range 500 {
		for p.Info().QueueBytes > 1<<17 { // an honest reader is given time
			<-time.After(time.Millisecond)
		}
		if err := p.Send(&wire.Update{Origin: inoftest.ReflID, Seq: uint64(i + 1), Hosts: hosts[:1+i*len(hosts)/500]}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 500 {
		if u, ok := (<-got).(*wire.Update); !ok || u.Seq != uint64(i+1) {
			t.Fatalf("message %d is %v", i, u)
		}
	}
	p.Close(wire.CodeLimit, "enough")
	err := <-ended
	var peer *PeerError
	if !errors.As(err, &peer) || peer.Code != wire.CodeLimit || peer.Text == "" {
		t.Errorf("the client was told %v", err)
	}
	cancel()
	wg.Wait()
	l.stop()
}

// A peer over TLS that does not read is cut without holding up who sends.
func TestSlowTLSReaderIsCut(t *testing.T) {
	l, ca, _ := tlsLoopback(t, func(PeerEvent) {})
	defer l.stop()
	nc, err := net.Dial("tcp", l.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := ca.issue(inoftest.DevID(0), nil)
	tc := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}, Certificates: []tls.Certificate{c.Certificate}})
	s, err := NewSession(SessionConfig{Self: inoftest.DevID(0), Dialer: true, Roles: wire.RoleClient, Hold: patientHold, Auth: tlsAuth(c).a, Nonce: inoftest.GoldenNonce(1),
		Identify: func(netip.Addr) error { return nil }}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	out, _ := s.Start(nil, time.Now())
	for range 2 {
		if _, err := tc.Write(out); err != nil {
			t.Fatal(err)
		}
		if _, out, err = s.Receive(readFrame(t, tc), nil, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if tc.ConnectionState().DidResume || tc.ConnectionState().Version != tls.VersionTLS13 {
		t.Errorf("%+v", tc.ConnectionState())
	}
	p := <-l.peers
	hosts := make([]wire.HostRecord, 300)
	for i := range hosts {
		hosts[i] = wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(inoftest.HostIP(i), inoftest.DevID(9), "Ethernet1")}
	}
	e, err := wire.Encode(&wire.Update{Origin: inoftest.ReflID, Seq: 1, Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	var longest time.Duration
	for err = nil; err == nil; {
		began := time.Now()
		err = p.c.out.send(e, nil, true)
		longest = max(longest, time.Since(began))
	}
	if !errors.Is(err, ErrQueueFull) {
		t.Error(err)
	}
	if ev := <-l.downs; wire.CodeOf(ev.Err) != wire.CodeSlow {
		t.Errorf("down: %v", ev.Err)
	}
	// A Send that waited for the reader would not have come back at all.
	t.Logf("longest Send %v", longest)
}

// TLS handshakes of a listener compute in turn, so that strangers do not take all processors; one
// that waits for its peer holds nobody up, and one that fails gives its turn back.
func TestTLSHandshakesTakeTurns(t *testing.T) {
	l, _, dial := tlsLoopback(t, func(PeerEvent) {})
	turns := l.server.host.turns
	for range cap(turns) { // others compute
		turns <- struct{}{}
	}
	d := dial(inoftest.DevID(0))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = d.Run(ctx) })
	for l.server.host.tally.accepted.Load() == 0 {
		<-time.After(time.Millisecond)
	}
	select {
	case <-l.peers:
		t.Fatal("a session out of turn")
	case <-time.After(50 * time.Millisecond):
	}
	for range cap(turns) {
		<-turns
	}
	<-l.peers
	for i := range 2 * cap(turns) { // one half says nothing, the other what is no TLS
		nc, err := net.Dial("tcp", l.server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if i%2 == 0 {
			if _, err := nc.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
		}
	}
	other := dial(inoftest.DevID(1))
	wg.Go(func() { _ = other.Run(ctx) })
	<-l.peers
	cancel()
	wg.Wait()
	l.stop()
	if n := len(turns); n != 0 {
		t.Errorf("%d turns are still taken", n)
	}
}
