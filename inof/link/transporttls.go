package link

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/nowait"
)

// maxTLSHandshake is how many bytes a peer may send before the TLS handshake is
// done: some certificates and no more.
const maxTLSHandshake = 64 << 10

// handshakeTurns are held by those TLS handshakes of a listener that compute, and not while they
// wait for their peers: however many come, some processors are left to who has a session.
type handshakeTurns chan struct{}

func newHandshakeTurns() handshakeTurns {
	return make(handshakeTurns, max(1, runtime.GOMAXPROCS(0)/2))
}

// tlsConn is the connection of a session in mode tls. Its Close is that of the
// socket: the one of tls.Conn may wait for a peer that does not read.
type tlsConn struct {
	*tls.Conn
	raw    *metered
	store  *CredentialStore
	dialer bool
	addr   netip.Addr // dialer: what the reflector's certificate must be good for; zero: not checked
	chain  []*x509.Certificate
	at     time.Time // of the handshake
	plain  bool      // the peer speaks our protocol without TLS, and is told so without
}

// configTLS is what both sides have in common.
func configTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS13, NextProtos: []string{ALPN, formerALPN},
		// A resumed connection would carry on what a certificate was once good for.
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
	}
}

// listenerTLS is for all connections of a listener: what differs is in their metered.
func listenerTLS() *tls.Config {
	cfg := configTLS()
	// The certificate is asked for here and judged at the Open (identify), so that
	// its owner can be told what is wrong with it.
	cfg.ClientAuth = tls.RequestClientCert
	cfg.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return &hello.Conn.(*metered).creds.Certificate, nil
	}
	return cfg
}

// newTLSServer does not touch the network yet.
func newTLSServer(nc net.Conn, store *CredentialStore, cfg *tls.Config, turns handshakeTurns) *tlsConn {
	t := &tlsConn{raw: newMetered(nc), store: store}
	t.raw.turns = turns
	t.Conn = tls.Server(t.raw, cfg)
	return t
}

// newTLSClient does not touch the network yet.
func newTLSClient(nc net.Conn, store *CredentialStore, addr netip.Addr) *tlsConn {
	t := &tlsConn{raw: newMetered(nc), store: store, dialer: true, addr: addr}
	cfg := configTLS()
	// Names of hosts mean nothing here: verifyServer checks the chain and the address.
	cfg.InsecureSkipVerify = true
	cfg.VerifyConnection = t.verifyServer
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &t.raw.creds.Certificate, nil }
	t.Conn = tls.Client(t.raw, cfg)
	return t
}

// shake does the TLS handshake.
func (t *tlsConn) shake() error {
	if t.store.refresh != nil {
		t.store.refresh()
	}
	t.raw.creds = t.store.Get()
	t.at = time.Now()
	err := t.Handshake()
	t.raw.turn(false)
	if err != nil {
		return t.typed(err)
	}
	t.raw.open.Store(true)
	s := t.ConnectionState()
	t.chain = s.PeerCertificates
	switch s.NegotiatedProtocol {
	case ALPN:
	case formerALPN: // a listener waits for the Open, whose header says it again
		if t.dialer {
			return &wire.ProtocolError{Code: wire.CodeVersion, Where: "ALPN", Detail: fmt.Sprintf("the listener speaks version 1 (%s), the dialer version %d: upgrade the older device", formerALPN, wire.Version), AnswerIn: 1}
		}
	default:
		return &wire.ProtocolError{Code: wire.CodeTLS, Where: "ALPN", Detail: fmt.Sprintf("the peer speaks TLS but not %s over it", ALPN)}
	}
	return nil
}

// verifyServer checks what a reflector shows, before it sees our certificate.
func (t *tlsConn) verifyServer(s tls.ConnectionState) error {
	if err := t.raw.creds.Verify(s.PeerCertificates, x509.ExtKeyUsageServerAuth, t.at); err != nil {
		return err
	}
	leaf := s.PeerCertificates[0]
	if t.addr.IsValid() && !names(leaf, t.addr) {
		return refuseCertificate(leaf, "is not for the reflector's address %v; it is for %s", t.addr, addresses(leaf))
	}
	return nil
}

// identify reports whether the peer may be a device.
func (t *tlsConn) identify(c *Credentials, device netip.Addr) error {
	usage := x509.ExtKeyUsageClientAuth
	if t.dialer {
		usage = x509.ExtKeyUsageServerAuth
	}
	if err := c.Verify(t.chain, usage, t.at); err != nil {
		return err
	}
	return c.Permit(t.chain[0], device)
}

// recheck is identify with the credentials in force now. The time stays that of
// the handshake: an established session outlives its certificate, so that a
// forgotten renewal does not tear down a fabric.
func (t *tlsConn) recheck(device netip.Addr) error {
	c := t.store.Get()
	if c == t.raw.creds {
		return nil
	}
	return t.identify(c, device)
}

// typed gives an error of package tls a code.
func (t *tlsConn) typed(err error) error {
	if errors.As(err, new(*wire.ProtocolError)) {
		return err
	}
	if he, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return t.notTLS(he.RecordHeader)
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return err
	}
	oe, isOp := errors.AsType[*net.OpError](err)
	switch {
	case isOp && oe.Op == "remote error":
		text := shortText(oe.Err.Error())
		if strings.Contains(text, "certificate") {
			return &PeerError{Code: wire.CodeCertificate, Text: "ours is not taken: " + text}
		}
		return &PeerError{Code: wire.CodeTLS, Text: text}
	case isOp && oe.Op == "local error", strings.HasPrefix(err.Error(), "tls: "):
		return &wire.ProtocolError{Code: wire.CodeTLS, Detail: shortText(err.Error())}
	}
	return err
}

// notTLS names what came in place of a TLS record.
func (t *tlsConn) notTLS(head [5]byte) error {
	if head[0] == 0 && head[4] <= wire.Version {
		t.plain = !t.dialer
		return &wire.ProtocolError{Code: wire.CodeAuthMode, Where: "connection", Detail: "one side asks for tls, but the other speaks without TLS"}
	}
	var b [wire.HeaderLen]byte
	copy(b[:], head[:])
	name := wire.Foreign(b[:])
	if name == "" {
		name = "another protocol"
	}
	return &wire.ProtocolError{Code: wire.CodeNotINOF, Where: "connection", Detail: fmt.Sprintf("this side asks for tls, the peer speaks %s (bytes % x)", name, head)}
}

// Write is that of tls.Conn, except towards a peer without TLS.
func (t *tlsConn) Write(b []byte) (int, error) {
	if t.plain {
		return t.raw.Write(b)
	}
	return t.Conn.Write(b)
}

// errNothingYet is of a read that would have to wait. TLS tries again after it, as after a
// deadline.
var errNothingYet error = nothingYet{}

type nothingYet struct{}

func (nothingYet) Error() string   { return "nothing is there yet" }
func (nothingYet) Timeout() bool   { return true }
func (nothingYet) Temporary() bool { return true }

// readNow is Read, but for errNothingYet where that would wait for the peer.
func (t *tlsConn) readNow(b []byte) (int, error) {
	t.raw.now = true
	n, err := t.Read(b)
	t.raw.now = false
	return n, err
}

// Read gives typed errors.
func (t *tlsConn) Read(b []byte) (int, error) {
	if t.plain {
		return t.raw.Read(b)
	}
	n, err := t.Conn.Read(b)
	if err != nil {
		err = t.typed(err)
	}
	return n, err
}

// CloseWrite ends our direction, with the alert that belongs to it, within lingerTime.
func (t *tlsConn) CloseWrite() error {
	if half, ok := t.raw.Conn.(interface{ CloseWrite() error }); t.plain && ok {
		return half.CloseWrite()
	} else if t.plain {
		return errors.ErrUnsupported
	}
	stop := time.AfterFunc(lingerTime, func() { _ = t.raw.Close() })
	defer stop.Stop()
	return t.Conn.CloseWrite()
}

// Close closes the socket at once.
func (t *tlsConn) Close() error { return t.raw.Close() }

// metered is the socket under TLS. It bounds what a peer sends before the handshake is done.
type metered struct {
	net.Conn
	creds *Credentials    // of this connection; set by shake
	sys   syscall.RawConn // nil: it is no socket
	open  atomic.Bool
	now   bool // Read does not wait; the reader's
	total int
	turns handshakeTurns // nil: a dialer's
	mine  bool           // a turn
}

// turn takes a turn, or gives it back.
func (m *metered) turn(take bool) {
	if m.turns == nil || m.mine == take {
		return
	}
	if m.mine = take; take {
		m.turns <- struct{}{}
	} else {
		<-m.turns
	}
}

func newMetered(nc net.Conn) *metered {
	m := &metered{Conn: nc}
	if sc, ok := nc.(syscall.Conn); ok {
		m.sys, _ = sc.SyscallConn()
	}
	return m
}

func (m *metered) Read(b []byte) (int, error) {
	if m.now {
		return m.readNow(b)
	}
	if !m.open.Load() {
		if m.total >= maxTLSHandshake {
			return 0, &wire.ProtocolError{Code: wire.CodeLength, Where: "TLS handshake", Detail: fmt.Sprintf("more than %d bytes", maxTLSHandshake)}
		}
		b = b[:min(len(b), maxTLSHandshake-m.total)]
		m.turn(false)
		defer m.turn(true)
	}
	n, err := m.Conn.Read(b)
	m.total += n
	return n, err
}

// readNow gives what the socket has, or errNothingYet.
func (m *metered) readNow(b []byte) (n int, err error) {
	failed := m.sys.Read(func(fd uintptr) bool {
		n, err = nowait.Read(fd, b)
		return true // never wait for the socket
	})
	switch {
	case failed != nil:
		return 0, failed
	case err == syscall.EAGAIN:
		return 0, errNothingYet
	case err != nil:
		return 0, readError(m, err)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}
