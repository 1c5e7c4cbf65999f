package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
)

// Target is the reflector under load and how its clients prove who they are.
type Target struct {
	Addr netip.AddrPort
	Auth wire.AuthMode
	// Password of mode hmac-sha256.
	Password link.Password
	// Credentials of mode tls, by device.
	Credentials func(dev netip.Addr) (*link.Credentials, error)
}

// Password is a Target of mode hmac-sha256.
func Password(addr netip.AddrPort, password []byte) (*Target, error) {
	p, err := link.NewPassword(password)
	return &Target{Addr: addr, Auth: wire.AuthHMAC, Password: p}, err
}

// Certificate is a Target of mode tls with one certificate and its key, which must be
// good for every device id, and the CAs whose certificates are taken.
func Certificate(addr netip.AddrPort, certFile, keyFile, caFile string) (*Target, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, err)
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("CA certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA certificates: %s has none in PEM form", caFile)
	}
	creds := &link.Credentials{Certificate: cert, Roots: pool}
	return &Target{Addr: addr, Auth: wire.AuthTLS, Credentials: func(netip.Addr) (*link.Credentials, error) { return creds, nil }}, nil
}

// auth is the authentication of one device; the credentials are nil but in mode tls.
func (t *Target) auth(dev netip.Addr) (link.Auth, *link.Credentials, error) {
	a := link.Auth{Mode: t.Auth}
	if t.Auth == wire.AuthHMAC {
		a.Passwords = []link.Password{t.Password}
	}
	if t.Auth != wire.AuthTLS {
		return a, nil, nil
	}
	c, err := t.Credentials(dev)
	if err == nil {
		a.TLS = link.NewCredentialStore(c, nil)
	}
	return a, c, err
}

// dialTimeout bounds connection and handshake of one session.
const dialTimeout = 20 * time.Second

// dial opens the transport of a session.
func (t *Target) dial(ctx context.Context, creds *link.Credentials) (net.Conn, error) {
	nc, err := (&net.Dialer{KeepAlive: -1}).DialContext(ctx, "tcp", t.Addr.String())
	if err != nil {
		return nil, err
	}
	if creds == nil {
		return nc, nil
	}
	c := tls.Client(nc, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{link.ALPN}, Certificates: []tls.Certificate{creds.Certificate},
		// The name of a host means nothing here: the chain is checked by us, and the
		// device id when the Open tells it.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			return creds.Verify(s.PeerCertificates, x509.ExtKeyUsageServerAuth, time.Now())
		},
		DynamicRecordSizingDisabled: true,
	})
	if err := c.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

// identify reports whether the other end of a TLS connection may be a device.
func identify(nc net.Conn, creds *link.Credentials) func(netip.Addr) error {
	return func(dev netip.Addr) error {
		return creds.Permit(nc.(*tls.Conn).ConnectionState().PeerCertificates[0], dev)
	}
}
