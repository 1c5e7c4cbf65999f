package link

import (
	"context"
	"crypto"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// Sessions over TLS do what others do: the whole protocol runs over them.
func TestSessionOverTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		ca := newCA(t, "CA")
		r := startReflector(t, &f, tlsAuth(ca.issue(inoftest.ReflID, nil)), 1, inoftest.ThreeZones, nil)
		a := startClient(t, &f, tlsAuth(ca.issue(inoftest.DevID(0), nil)), inoftest.DevID(0), 1, inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "Ethernet1"))
		b := startClient(t, &f, tlsAuth(ca.issue(inoftest.DevID(1), nil)), inoftest.DevID(1), 1, inoftest.HostAt(inoftest.HostIP(1), inoftest.DevID(1), "Ethernet1"))
		after(time.Minute)
		for i, c := range []*clientNode{a, b} {
			if info := c.dialer.Info(); info.State != StateEstablished || info.Auth != wire.AuthTLS || info.Device != inoftest.ReflID || info.Reconnects != 0 || info.CertExpires.IsZero() {
				t.Errorf("client %d: %+v", i, info)
			}
			if hosts, _ := c.knows(); hosts != 1 {
				t.Errorf("client %d knows %d hosts", i, hosts)
			}
		}
		if r.err != nil {
			t.Error(r.err)
		}
		a.stop()
		b.stop()
		r.stop()
	})
}

// Each row is a client that a reflector must not take, or a reflector that a client
// must not take: the client's last error tells why, and both sides count it.
func TestCertificatesThatAreRefused(t *testing.T) {
	type change = func(*x509.Certificate, *crypto.Signer)
	day := 24 * time.Hour
	expired := func(c *x509.Certificate, _ *crypto.Signer) { c.NotAfter = time.Now().Add(-time.Minute) }
	early := func(c *x509.Certificate, _ *crypto.Signer) { c.NotBefore = time.Now().Add(day) }
	noSAN := func(c *x509.Certificate, _ *crypto.Signer) { c.IPAddresses = nil }
	usage := func(u x509.ExtKeyUsage) change {
		return func(c *x509.Certificate, _ *crypto.Signer) { c.ExtKeyUsage = []x509.ExtKeyUsage{u} }
	}
	curve := func(c elliptic.Curve) change {
		return func(_ *x509.Certificate, k *crypto.Signer) { *k = newKey(t, c) }
	}
	for _, tt := range []struct {
		name           string
		client, server func(ca, other *testCA) *Credentials
		want           string
		byServer       bool // who refuses
	}{
		{"client expired", func(ca, _ *testCA) *Credentials { return ca.issue(inoftest.DevID(0), expired) }, nil, "has expired on", true},
		{"client not yet valid", func(ca, _ *testCA) *Credentials { return ca.issue(inoftest.DevID(0), early) }, nil, "is not valid before", true},
		{"client of another CA", func(ca, other *testCA) *Credentials { return other.issue(inoftest.DevID(0), nil).with(ca) }, nil, "unknown authority", true},
		{"client self-signed", func(ca, _ *testCA) *Credentials { return selfSigned(t, inoftest.DevID(0), ca) }, nil, "is self-signed", true},
		{"client of another device", func(ca, _ *testCA) *Credentials { return ca.issue(inoftest.DevID(7), nil) }, nil, "is not for device 192.0.2.1; it is for 192.0.2.8", true},
		{"client without SAN", func(ca, _ *testCA) *Credentials { return ca.issue(inoftest.DevID(0), noSAN) }, nil, "it is for no IP address", true},
		{"client weak RSA", func(ca, _ *testCA) *Credentials { return ca.issue(inoftest.DevID(0), shortRSA(t)) }, nil, "RSA key of 1024 bits", true},
		{"client for servers only", func(ca, _ *testCA) *Credentials {
			return ca.issue(inoftest.DevID(0), usage(x509.ExtKeyUsageServerAuth))
		}, nil, "incompatible key usage", true},
		{"client without certificate", func(ca, _ *testCA) *Credentials { return &Credentials{Roots: ca.pool()} }, nil, "has shown none", true},
		{"client not on the list", nil, func(ca, _ *testCA) *Credentials {
			return ca.issue(inoftest.ReflID, nil).allowing(t, inoftest.DevID(5).String())
		}, "is not on the allow list", true},

		{"server expired", nil, func(ca, _ *testCA) *Credentials { return ca.issue(inoftest.ReflID, expired) }, "has expired on", false},
		{"server not yet valid", nil, func(ca, _ *testCA) *Credentials { return ca.issue(inoftest.ReflID, early) }, "is not valid before", false},
		{"server of another CA", nil, func(ca, other *testCA) *Credentials { return other.issue(inoftest.ReflID, nil).with(ca) }, "unknown authority", false},
		{"server self-signed", nil, func(ca, _ *testCA) *Credentials { return selfSigned(t, inoftest.ReflID, ca) }, "is self-signed", false},
		{"server of another device", nil, func(ca, _ *testCA) *Credentials { return ca.issue(inoftest.DevID(3), nil) }, "is not for device 192.0.2.250", false},
		{"server weak RSA", nil, func(ca, _ *testCA) *Credentials { return ca.issue(inoftest.ReflID, shortRSA(t)) }, "RSA key of 1024 bits", false},
		{"server for clients only", nil, func(ca, _ *testCA) *Credentials { return ca.issue(inoftest.ReflID, usage(x509.ExtKeyUsageClientAuth)) }, "incompatible key usage", false},
		{"server not on the client's list", func(ca, _ *testCA) *Credentials {
			return ca.issue(inoftest.DevID(0), nil).allowing(t, inoftest.DevID(5).String())
		}, nil, "is not on the allow list", false},

		{"P-384 is good", func(ca, _ *testCA) *Credentials { return ca.issue(inoftest.DevID(0), curve(elliptic.P384())) }, nil, "", false},
	} {
		run := func(t *testing.T, f *fabricNet, wait func(*clientNode, *reflNode)) {
			ca, other := newCA(t, "CA"), newCA(t, "other CA")
			cc, sc := ca.issue(inoftest.DevID(0), nil), ca.issue(inoftest.ReflID, nil)
			if tt.client != nil {
				cc = tt.client(ca, other)
			}
			if tt.server != nil {
				sc = tt.server(ca, other)
			}
			r := startReflector(t, f, tlsAuth(sc), 1, inoftest.ThreeZones, nil)
			<-r.server.Ready()
			c := startClient(t, f, tlsAuth(cc), inoftest.DevID(0), 1)
			wait(c, r)
			info, refused := c.dialer.Info(), r.server.Refused()
			c.stop()
			r.stop()
			s, n := r.server.Counters(), c.dialer.Counters()
			if tt.want == "" {
				if info.State != StateEstablished || len(refused) != 0 {
					t.Errorf("%+v", info)
				}
				return
			}
			if info.State == StateEstablished || !strings.Contains(info.LastError, "certificate refused") || !strings.Contains(info.LastError, tt.want) {
				t.Errorf("the client shows %q, want %q", info.LastError, tt.want)
			}
			by, other2 := s, n
			if !tt.byServer {
				by, other2 = n, s
			}
			if by.BadCertificate == 0 || other2.NotifiedByPeer == 0 || n.Established+s.Established+n.HandshakeTimeout+s.HandshakeTimeout != 0 {
				t.Errorf("counters of the one that refuses %+v and of its peer %+v", by, other2)
			}
			if len(refused) != 1 || !strings.Contains(refused[0].LastError, "certificate refused") {
				t.Errorf("the reflector shows %+v", refused)
			}
		}
		t.Run(tt.name, func(t *testing.T) {
			run(t, &fabricNet{tcp: true}, func(c *clientNode, r *reflNode) {
				for c.dialer.Info().State != StateEstablished && (c.dialer.Info().LastError == "" || len(r.server.Refused()) == 0) {
					<-time.After(time.Millisecond)
				}
			})
		})
		if !tt.byServer { // an alert during the handshake needs a network that buffers
			continue
		}
		t.Run(tt.name+" in memory", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run(t, &fabricNet{}, func(*clientNode, *reflNode) { after(20 * time.Second) })
			})
		})
	}
}

// The two sides of a connection ask for different modes: both say so.
func TestModesThatDiffer(t *testing.T) {
	ca := newCA(t, "CA") // valid at any time of this test
	for _, tt := range []struct {
		name           string
		client, server func(*testCA) *password
		want           string
		count          func(client, server TransportCounters) uint64
	}{
		{"hmac to tls", func(*testCA) *password { return newPassword("password1") }, nil, "authentication mode mismatch",
			func(_, s TransportCounters) uint64 { return s.AuthMode }},
		{"none to tls", func(*testCA) *password { return &password{a: Auth{Mode: wire.AuthNone}} }, nil, "authentication mode mismatch",
			func(_, s TransportCounters) uint64 { return s.AuthMode }},
		{"tls to hmac", nil, func(*testCA) *password { return newPassword("password1") }, "authentication mode mismatch",
			func(c, s TransportCounters) uint64 { return min(c.AuthMode, s.NotINOF) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca = newCA(t, "CA")
				var f fabricNet
				c, s := tlsAuth(ca.issue(inoftest.DevID(0), nil)), tlsAuth(ca.issue(inoftest.ReflID, nil))
				if tt.client != nil {
					c = tt.client(ca)
				}
				if tt.server != nil {
					s = tt.server(ca)
				}
				r := startReflector(t, &f, s, 1, inoftest.ThreeZones, nil)
				n := startClient(t, &f, c, inoftest.DevID(0), 1)
				after(20 * time.Second)
				info := n.dialer.Info()
				if !strings.Contains(info.LastError, tt.want) || info.State == StateEstablished {
					t.Errorf("the client shows %q", info.LastError)
				}
				if tt.count(n.dialer.Counters(), r.server.Counters()) == 0 {
					t.Errorf("counters %+v and %+v", n.dialer.Counters(), r.server.Counters())
				}
				if shown := r.server.Refused(); len(shown) != 1 {
					t.Errorf("the reflector shows %+v", shown)
				}
				n.stop()
				r.stop()
			})
		})
	}
}

// What else may come to a TLS port. Every one is cut in time, counted, and leaves
// no connection behind.
func TestStrangersAtATLSPort(t *testing.T) {
	garbage := append([]byte{0x16, 3, 1, 0x40, 0}, make([]byte, 0x4000)...)
	for _, tt := range []struct {
		name string
		do   func(nc net.Conn)
		n    func(TransportCounters) uint64
	}{
		{"http", func(nc net.Conn) { _, _ = nc.Write([]byte("GET / HTTP/1.1\r\n\r\n")) }, func(c TransportCounters) uint64 { return c.NotINOF }},
		{"silence", func(net.Conn) {}, func(c TransportCounters) uint64 { return c.HandshakeTimeout }},
		{"half a record", func(nc net.Conn) { _, _ = nc.Write([]byte{0x16, 3, 1, 2, 0, 1}) }, func(c TransportCounters) uint64 { return c.HandshakeTimeout }},
		{"garbage", func(nc net.Conn) { _, _ = nc.Write(garbage) }, func(c TransportCounters) uint64 { return c.TLSFailed }},
		{"TLS 1.2", func(nc net.Conn) {
			_ = tls.Client(nc, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, NextProtos: []string{ALPN}}).Handshake()
		}, func(c TransportCounters) uint64 { return c.TLSFailed }},
		{"another ALPN", func(nc net.Conn) {
			_ = tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}).Handshake()
		}, func(c TransportCounters) uint64 { return c.TLSFailed }},
		{"no ALPN", func(nc net.Conn) { _ = tls.Client(nc, &tls.Config{InsecureSkipVerify: true}).Handshake() },
			func(c TransportCounters) uint64 { return c.TLSFailed }},
		{"http inside", func(nc net.Conn) {
			c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}})
			_, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
			_, _ = io.Copy(io.Discard, c)
		}, func(c TransportCounters) uint64 { return c.NotINOF }},
		{"mode none inside", func(nc net.Conn) {
			c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}})
			s, _ := NewSession(SessionConfig{Self: inoftest.DevID(0), Dialer: true, Roles: wire.RoleClient, Auth: Auth{Mode: wire.AuthNone}}, time.Now())
			b, _ := s.Start(nil, time.Now())
			_, _ = c.Write(b)
			_, _ = io.Copy(io.Discard, c)
		}, func(c TransportCounters) uint64 { return c.AuthMode }},
		{"endless handshake", func(nc net.Conn) {
			record := append([]byte{0x16, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff}, make([]byte, 0x4000-4)...)
			for range 8 {
				if _, err := nc.Write(record); err != nil {
					return
				}
				record = append([]byte{0x16, 3, 1, 0x40, 0}, make([]byte, 0x4000)...)
			}
		}, func(c TransportCounters) uint64 { return c.TLSFailed + c.BadLength }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f fabricNet
				ca := newCA(t, "CA")
				r := startReflector(t, &f, tlsAuth(ca.issue(inoftest.ReflID, nil)), 1, inoftest.ThreeZones, nil)
				synctest.Wait()
				peer := rawPeer(t, &f)
				began := time.Now()
				tt.do(peer)
				_, _ = io.Copy(io.Discard, peer)
				if d := time.Since(began); d > wire.HandshakeTimeout+3*lingerTime {
					t.Errorf("cut after %v", d)
				}
				_ = peer.Close()
				synctest.Wait()
				if c := r.server.Counters(); tt.n(c) != 1 || c.Established != 0 {
					t.Errorf("counters %+v", c)
				}
				if infos := r.server.Infos(); len(infos) != 0 {
					t.Errorf("left behind: %+v", infos)
				}
				r.stop()
			})
		})
	}
}

// An entry taken from the allow list, or a CA taken from the file, cuts the sessions
// that stand on it and no others; renewed certificates and expiry cut none.
func TestRevocationCutsSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		ca, other := newCA(t, "CA"), newCA(t, "other CA")
		bothCAs := ca.pool()
		bothCAs.AddCert(other.cert)
		soon := func(c *x509.Certificate, _ *crypto.Signer) { c.NotAfter = time.Now().Add(5 * time.Minute) }
		a, b := ca.issue(inoftest.DevID(0), soon), other.issue(inoftest.DevID(1), nil).with(ca)
		print := fmt.Sprintf("%X", sha256.Sum256(a.Certificate.Leaf.Raw))
		server := ca.issue(inoftest.ReflID, nil).allowing(t, print, inoftest.DevID(1).String())
		server.Roots = bothCAs
		auth := tlsAuth(server)
		store := auth.a.TLS
		r := startReflector(t, &f, auth, 1, inoftest.ThreeZones, nil)
		ca1, cb := startClient(t, &f, tlsAuth(a), inoftest.DevID(0), 1), startClient(t, &f, tlsAuth(b), inoftest.DevID(1), 1)
		after(time.Second)
		check := func(step string, wantA, wantB bool) {
			t.Helper()
			for i, c := range []*clientNode{ca1, cb} {
				want := []bool{wantA, wantB}[i]
				if info := c.dialer.Info(); (info.State == StateEstablished) != want {
					t.Errorf("%s: client %d: %+v", step, i, info)
				} else if !want && !strings.Contains(info.LastError, "certificate refused") {
					t.Errorf("%s: client %d shows %q", step, i, info.LastError)
				}
			}
		}
		check("at first", true, true)
		change := func(allow []string, roots *x509.CertPool, want int) {
			t.Helper()
			c := server.allowing(t, allow...)
			c.Roots = roots
			store.Set(c)
			if n := r.server.Recheck(); n != want {
				t.Errorf("Recheck cut %d, want %d", n, want)
			}
			after(BackoffMax + time.Second)
		}
		change([]string{inoftest.DevID(0).String(), inoftest.DevID(1).String()}, bothCAs, 0) // the same by another name
		check("renamed", true, true)
		change([]string{inoftest.DevID(1).String()}, bothCAs, 1)
		check("a removed", false, true)
		change([]string{inoftest.DevID(0).String(), inoftest.DevID(1).String()}, bothCAs, 0)
		check("a is back", true, true)
		change(nil, ca.pool(), 1)
		check("the CA of b removed", true, false)
		if info := ca1.dialer.Info(); info.Reconnects == 0 {
			t.Errorf("%+v", info)
		}
		before := ca1.dialer.Info().Reconnects
		after(10 * time.Minute) // past the certificate's end
		store.Set(server.allowing(t, inoftest.DevID(0).String()))
		if n := r.server.Recheck(); n != 0 || ca1.dialer.Info().Reconnects != before {
			t.Errorf("Recheck cut %d expired session(s)", n)
		}
		ca1.stop()
		cb.stop()
		r.stop()
	})
}

// A client whose list or CA changes lets go of its reflector.
func TestDialerRecheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		ca := newCA(t, "CA")
		mine := ca.issue(inoftest.DevID(0), nil)
		auth := tlsAuth(mine)
		r := startReflector(t, &f, tlsAuth(ca.issue(inoftest.ReflID, nil)), 1, inoftest.ThreeZones, nil)
		c := startClient(t, &f, auth, inoftest.DevID(0), 1)
		if n := c.dialer.Recheck(); n != 0 {
			t.Error(n)
		}
		after(time.Second)
		auth.a.TLS.Set(mine.allowing(t, inoftest.DevID(9).String()))
		if n := c.dialer.Recheck(); n != 1 {
			t.Error(n)
		}
		after(time.Minute)
		if info := c.dialer.Info(); info.State == StateEstablished || !strings.Contains(info.LastError, "allow list") {
			t.Errorf("%+v", info)
		}
		c.stop()
		r.stop()
	})
}

// A new certificate counts for the next connection without a restart; what stands
// stays. Refresh is asked at each handshake.
func TestCertificatesAreRenewedWithoutARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		ca := newCA(t, "CA")
		auth := tlsAuth(ca.issue(inoftest.ReflID, nil))
		var asked atomic.Int32
		next := ca.issue(inoftest.ReflID, func(c *x509.Certificate, _ *crypto.Signer) {
			c.NotAfter = time.Now().Add(77 * time.Hour).Truncate(time.Second)
		})
		store := auth.a.TLS
		store.refresh = func() {
			if asked.Add(1) == 2 {
				store.Set(next)
			}
		}
		r := startReflector(t, &f, auth, 1, inoftest.ThreeZones, nil)
		a := startClient(t, &f, tlsAuth(ca.issue(inoftest.DevID(0), nil)), inoftest.DevID(0), 1)
		after(time.Second)
		b := startClient(t, &f, tlsAuth(ca.issue(inoftest.DevID(1), nil)), inoftest.DevID(1), 1)
		after(time.Second)
		ia, ib := a.dialer.Info(), b.dialer.Info()
		if !ib.CertExpires.Equal(next.Certificate.Leaf.NotAfter) || ia.CertExpires.Equal(ib.CertExpires) || ia.State != StateEstablished || ia.Reconnects != 0 {
			t.Errorf("%+v and %+v", ia, ib)
		}
		a.stop()
		b.stop()
		r.stop()
	})
}

// A flood of connections that never finish the TLS handshake keeps nobody out.
func TestTLSFloodKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		ca := newCA(t, "CA")
		r := startReflector(t, &f, tlsAuth(ca.issue(inoftest.ReflID, nil)), 1, inoftest.ThreeZones, nil)
		synctest.Wait()
		var conns []net.Conn
		for range 3 * DefaultMaxPending {
			conns = append(conns, rawPeer(t, &f))
		}
		b := startClient(t, &f, tlsAuth(ca.issue(inoftest.DevID(1), nil)), inoftest.DevID(1), 1)
		after(time.Second)
		if n := r.server.Counters(); n.PendingRefused < 2*DefaultMaxPending {
			t.Errorf("counters %+v", n)
		}
		if info := b.dialer.Info(); info.State != StateEstablished || info.Reconnects != 0 {
			t.Errorf("%+v", info)
		}
		for _, c := range conns {
			_ = c.Close()
		}
		b.stop()
		r.stop()
	})
}

// A reflector's certificate must be good for the address that was dialed: another
// device's certificate of the same CA does not make a reflector.
func TestReflectorMustOwnItsAddress(t *testing.T) {
	f := fabricNet{tcp: true}
	ca := newCA(t, "CA")
	r := startReflector(t, &f, tlsAuth(ca.issue(inoftest.ReflID, nil)), 1, inoftest.ThreeZones, nil)
	defer r.stop()
	<-r.server.Ready()
	for _, tt := range []struct {
		addr netip.Addr
		want bool
	}{{inoftest.ReflID, true}, {inoftest.DevID(3), false}, {netip.Addr{}, true}} {
		d, err := NewDialer(DialerConfig{
			TransportConfig: TransportConfig{Self: inoftest.DevID(0), Roles: wire.RoleClient, Auth: tlsAuth(ca.issue(inoftest.DevID(0), nil)).get, Sink: func(PeerEvent) {}},
			Address:         tt.addr, Dial: f.dial,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = d.Run(ctx) }()
		info := d.Info()
		for ; info.State != StateEstablished && info.LastError == ""; info = d.Info() {
			<-time.After(time.Millisecond)
		}
		if (info.State == StateEstablished) != tt.want || !tt.want && !strings.Contains(info.LastError, "not for the reflector's address 192.0.2.4") {
			t.Errorf("address %v: %+v", tt.addr, info)
		}
		cancel()
		<-done
	}
}

// A changed password lets live sessions be, and counts for the next.
func TestPasswordChangeLeavesLiveSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		server, client, late := newPassword("password1"), newPassword("password1"), newPassword("password1")
		r := startReflector(t, &f, server, 1, inoftest.ThreeZones, nil)
		a := startClient(t, &f, client, inoftest.DevID(0), 1)
		after(time.Second)
		server.set("password2")
		after(10 * time.Minute)
		if info := a.dialer.Info(); info.State != StateEstablished || info.Reconnects != 0 {
			t.Errorf("the live session: %+v", info)
		}
		b := startClient(t, &f, late, inoftest.DevID(1), 1)
		after(10 * time.Second)
		if info := b.dialer.Info(); info.State == StateEstablished || !strings.Contains(info.LastError, "authentication failed") {
			t.Errorf("a new session with the old password: %+v", info)
		}
		late.set("password2")
		after(BackoffMax)
		if info := b.dialer.Info(); info.State != StateEstablished {
			t.Errorf("a new session with the new password: %+v", info)
		}
		if info := a.dialer.Info(); info.State != StateEstablished || info.Reconnects != 0 {
			t.Errorf("the live session: %+v", info)
		}
		a.stop()
		b.stop()
		r.stop()
	})
}
