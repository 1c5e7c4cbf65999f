package cluster

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
	"unicode"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
)

// conn is one connection between members. Requests follow each other on it.
type conn struct {
	nc     net.Conn
	in     *bufio.Reader
	tx, rx *seal
	keys   []*link.SessionKeys // mode hmac-sha256: of each password, until prove has chosen
	peer   *hello
	creds  *link.Credentials // in mode tls: those of the handshake
	chain  []*x509.Certificate
	since  time.Time
	used   time.Time
	dialer bool
}

const refusalMagic = "iNOFrefu"

// incarnationError is a member that is another one than it was: its disk was lost.
type incarnationError struct{ want, got MemberID }

func (e *incarnationError) Error() string {
	return fmt.Sprintf("its state is not that of the member %s: it has lost its disk, or is another device; replace it", e.want)
}

// greet is the handshake of the side that dials.
func (c *conn) greet(auth link.Auth, ours func(wire.AuthMode, MemberID) *hello, target MemberID) error {
	c.dialer = true
	if err := c.secure(auth); err != nil {
		return err
	}
	own := ours(auth.Mode, target).encode()
	if err := c.writeHello(own); err != nil {
		return err
	}
	b, err := c.readHello()
	if err != nil {
		return err
	}
	if c.peer, err = decodeHello(b); err != nil {
		return err
	}
	if c.peer.Self.Device != target.Device {
		return fmt.Errorf("it is device %s", c.peer.Self.Device)
	}
	if err := c.trust(auth, own, b); err != nil {
		return err
	}
	if err := c.prove(); err != nil {
		return err
	}
	if target.Incarnation != 0 && c.peer.Self != target {
		return &incarnationError{target, c.peer.Self}
	}
	return nil
}

// welcome is the handshake of the side that listens.
func (c *conn) welcome(auth link.Auth, ours func(wire.AuthMode, MemberID) *hello) error {
	if err := c.secure(auth); err != nil {
		return err
	}
	b, err := c.readHello()
	if err != nil {
		return err
	}
	if c.peer, err = decodeHello(b); err != nil {
		return err
	}
	h := ours(auth.Mode, c.peer.Self)
	own := h.encode()
	switch {
	case c.peer.Mode != auth.Mode:
		err = fmt.Errorf("this member asks for %v, the other for %v", auth.Mode, c.peer.Mode)
	case c.peer.Self.Device == h.Self.Device:
		err = fmt.Errorf("device id %s is this member's own", h.Self.Device)
	case c.peer.Target.Device != h.Self.Device:
		err = fmt.Errorf("this is device %s, not %s", h.Self.Device, c.peer.Target.Device)
	}
	if err != nil {
		_ = c.writeHello(append([]byte(refusalMagic), err.Error()...))
		return err
	}
	if err := c.writeHello(own); err != nil {
		return err
	}
	if err := c.trust(auth, b, own); err != nil {
		return err
	}
	return c.prove()
}

// errGuesses is a source of too many wrong passwords.
var errGuesses = errors.New("too many wrong passwords")

// refuse tells a dialer that it may not even try.
func (c *conn) refuse(why string) error {
	_ = c.writeHello(append([]byte(refusalMagic), why...))
	return errGuesses
}

// trust checks that the peer may be the device it says, and sets the keys.
func (c *conn) trust(auth link.Auth, dialer, listener []byte) error {
	c.tx, c.rx = newSeal(nil), newSeal(nil)
	switch auth.Mode {
	case wire.AuthTLS:
		return c.permit(c.creds)
	case wire.AuthHMAC:
		var err error
		if c.keys, err = keys(auth.Passwords, dialer, listener); err != nil {
			return err
		}
		c.use(c.keys[0])
	}
	return nil
}

// use makes the keys of one password those of the connection, whose records go on.
func (c *conn) use(k *link.SessionKeys) {
	tx, rx := c.tx.number, c.rx.number
	if c.dialer {
		c.tx, c.rx = newSeal(k.Dialer), newSeal(k.Listener)
	} else {
		c.tx, c.rx = newSeal(k.Listener), newSeal(k.Dialer)
	}
	c.tx.number, c.rx.number = tx, rx
}

// prove exchanges the records by which both sides show that they know the keys. The
// dialer goes first.
func (c *conn) prove() error {
	if c.dialer {
		if err := c.write(recordProof, link.ProofOfSecond(c.keys)); err != nil {
			return err
		}
	}
	typ, b, err := c.read()
	switch {
	case err != nil:
		return err
	case typ == recordRefusal:
		return fmt.Errorf("refused: %q", b)
	case typ != recordProof || len(b) > 0 && (c.dialer || len(b) != wire.ProofLen):
		return broken("record", "type %d of %d bytes in place of a proof", typ, len(b))
	}
	if !c.dialer {
		return c.write(recordProof)
	}
	return nil
}

// secure does the TLS handshake in mode tls, with the credentials of the sessions:
// TLS 1.3, both sides with certificates of the CA.
func (c *conn) secure(auth link.Auth) error {
	if auth.Mode == wire.AuthTLS {
		creds := auth.TLS.Fresh()
		if creds == nil {
			return errors.New("there are no TLS credentials")
		}
		usage := x509.ExtKeyUsageClientAuth
		if c.dialer {
			usage = x509.ExtKeyUsageServerAuth
		}
		cfg := &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{ALPN}, Certificates: []tls.Certificate{creds.Certificate},
			// Names of hosts mean nothing here: the chain is verified below, the device id by
			// permit.
			InsecureSkipVerify: true, ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
			VerifyConnection: func(s tls.ConnectionState) error { return creds.Verify(s.PeerCertificates, usage, time.Now()) },
		}
		var tc *tls.Conn
		if c.dialer {
			tc = tls.Client(c.nc, cfg)
		} else {
			tc = tls.Server(&bounded{Conn: c.nc, left: maxTLSHandshake}, cfg)
		}
		if err := tc.Handshake(); err != nil {
			return fmt.Errorf("TLS: %w", err)
		}
		if b, ok := tc.NetConn().(*bounded); ok {
			b.left = -1
		}
		s := tc.ConnectionState()
		if s.NegotiatedProtocol != ALPN {
			return errors.New("TLS: the peer speaks another protocol over it")
		}
		c.nc, c.creds, c.chain = &rawClose{tc, c.nc}, creds, s.PeerCertificates
	}
	c.in = bufio.NewReaderSize(c.nc, 16<<10)
	return nil
}

// maxTLSHandshake is how many bytes a peer may send before its handshake is done.
const maxTLSHandshake = 64 << 10

// bounded ends a connection that sends too much.
type bounded struct {
	net.Conn
	left int // -1: no limit any more
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return b.Conn.Read(p)
	}
	if b.left == 0 {
		return 0, broken("TLS handshake", "more than %d bytes", maxTLSHandshake)
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// rawClose closes the socket at once: the Close of TLS may wait for a peer.
type rawClose struct {
	*tls.Conn
	raw net.Conn
}

func (r *rawClose) Close() error { return r.raw.Close() }

// permit reports whether the peer's certificate lets it be the device it says.
func (c *conn) permit(creds *link.Credentials) error {
	if creds == nil || len(c.chain) == 0 {
		return errors.New("no certificate")
	}
	return creds.Permit(c.chain[0], c.peer.Self.Device)
}

// current reports whether the peer would be let in with what is in force now.
func (c *conn) current(auth link.Auth) bool {
	if auth.Mode != wire.AuthTLS || c.creds == nil {
		return true
	}
	creds := auth.TLS.Get()
	if creds == c.creds {
		return true
	}
	usage := x509.ExtKeyUsageClientAuth
	if c.dialer {
		usage = x509.ExtKeyUsageServerAuth
	}
	if creds == nil || creds.Verify(c.chain, usage, c.since) != nil || c.permit(creds) != nil {
		return false
	}
	c.creds = creds
	return true
}

func (c *conn) writeHello(b []byte) error {
	b = b[:min(len(b), maxHello)]
	_, err := c.nc.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...))
	return err
}

func (c *conn) readHello() ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(head[:]))
	if n > maxHello {
		return nil, broken("hello", "%d bytes, at most %d: this is no member of a cluster", n, maxHello)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c.in, b); err != nil {
		return nil, err
	}
	if text, ok := strings.CutPrefix(string(b), refusalMagic); ok {
		return nil, fmt.Errorf("refused: %s", printable(text))
	}
	return b, nil
}

// printable makes a peer's text fit for a line of a log.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// write sends one record.
func (c *conn) write(t recordType, body ...[]byte) error {
	n := c.tx.overhead()
	for _, b := range body {
		n += len(b)
	}
	if n > t.limit() {
		return broken("record", "type %d would have %d bytes, at most %d", t, n, t.limit())
	}
	_, err := c.nc.Write(c.tx.append(make([]byte, 0, n), t, body...))
	return err
}

// read takes one record. A request is held to the limit of what it asks for.
func (c *conn) read() (recordType, []byte, error) {
	var head [recordHead]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, err
	}
	t, n, err := c.rx.head(head[:])
	if err != nil {
		return 0, nil, err
	}
	if t == recordRequest && n > maxSmall {
		first, err := c.in.Peek(1)
		if err != nil {
			return 0, nil, err
		}
		if o := op(first[0]); n > o.limit() {
			return 0, nil, broken("record", "request %d has %d bytes, at most %d", o, n, o.limit())
		}
	}
	rest, err := readGrowing(c.in, n)
	if err != nil {
		return 0, nil, err
	}
	if c.keys != nil {
		b, err := c.settle(head[:], rest)
		return t, b, err
	}
	b, err := c.rx.open(head[:], rest)
	return t, b, err
}

// settle opens the first record of the peer, which shows the passwords it knows.
func (c *conn) settle(head, rest []byte) ([]byte, error) {
	end := len(rest) - recordTag
	signed, tag := append(append([]byte(nil), head...), rest[:end]...), rest[end:]
	k := (*link.SessionKeys)(nil)
	if c.dialer {
		k = link.ChooseByListener(c.keys, signed, tag)
	} else {
		k, _ = link.ChooseByDialer(c.keys, signed, tag, rest[:end])
	}
	if k == nil {
		return nil, errTag
	}
	c.keys = nil
	c.use(k)
	c.rx.number++
	return rest[:end], nil
}
