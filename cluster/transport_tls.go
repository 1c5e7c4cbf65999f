package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/inof/link"
)

// conn is a connection between members: TLS 1.3, both sides with a certificate of the CA.
type conn struct {
	*tls.Conn
	t      *transport
	dialer bool
	raw    *paced
	creds  *link.Credentials
	usage  x509.ExtKeyUsage
	since  time.Time
	peer   MemberID    // as its first message says and its certificate allows
	last   atomic.Bool // the next answer is the last
	once   sync.Once
	closed chan struct{}
	forget func(io.Closer) // by the transport
}

// shake does the TLS handshake.
func (c *conn) shake() error {
	if store := c.t.cfg.TLS(); store != nil {
		c.creds = store.Fresh()
	}
	if c.creds == nil {
		return errors.New("there are no TLS credentials: a cluster needs session.auth: tls")
	}
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{ALPN}, Certificates: []tls.Certificate{c.creds.Certificate},
		// Names of hosts mean nothing here: the chain is verified below, the device by current.
		InsecureSkipVerify: true, ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error { return c.creds.Verify(s.PeerCertificates, c.usage, c.since) },
	}
	if c.dialer {
		c.Conn = tls.Client(c.raw, cfg)
	} else {
		c.Conn = tls.Server(c.raw, cfg)
	}
	if err := c.Handshake(); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	if c.ConnectionState().NegotiatedProtocol != ALPN {
		return errors.New("TLS: the peer speaks another protocol, or another version of it: all members of a cluster have the same version of inofd")
	}
	return nil
}

// identify takes the peer for a member, if its certificate allows that.
func (c *conn) identify(as MemberID) error {
	c.peer = as
	return c.creds.Permit(c.ConnectionState().PeerCertificates[0], as.Device)
}

// current returns why the peer would not be let in with the credentials that are in force now.
func (c *conn) current() error {
	creds := c.t.cfg.TLS().Get()
	if creds == c.creds {
		return nil
	}
	chain := c.ConnectionState().PeerCertificates
	return first(creds.Verify(chain, c.usage, c.since), creds.Permit(chain[0], c.peer.Device))
}

// greet is the beginning of the side that dials: handshake within one context, the answer to the
// request within another one, if that has an end.
func (c *conn) greet(q request, short, whole context.Context) (*answer, error) {
	deadline, _ := short.Deadline()
	_ = c.raw.Conn.SetDeadline(deadline)
	if err := c.shake(); err != nil {
		return nil, err
	}
	if err := c.identify(q.To); err != nil {
		return nil, err
	}
	if end, ok := whole.Deadline(); ok && (q.Do == doChange || q.Do == doConfigure) {
		_ = c.raw.Conn.SetDeadline(end)
	}
	q.From = c.t.cfg.Self
	q.Cluster, _ = c.t.cfg.state()
	if err := writeMessage(c, &q); err != nil {
		return nil, err
	}
	ans, err := c.answer()
	switch {
	case err != nil:
		return nil, err
	case ans.From.Device != q.To.Device:
		return nil, &impostorError{"it says that it is device " + ans.From.Device.String()}
	case q.To.Incarnation != 0 && ans.From != q.To:
		return nil, &incarnationError{q.To}
	}
	return ans, nil
}

// answer reads one; that it is an error is an error.
func (c *conn) answer() (*answer, error) {
	var ans answer
	if err := readMessage(c, &ans); err != nil {
		return nil, err
	}
	if ans.Error != "" {
		return nil, &toldError{printable(ans.Error)}
	}
	return &ans, nil
}

// reply answers a request.
func (c *conn) reply(body []byte, err error) error {
	a := answer{From: c.t.cfg.Self, Body: body}
	a.Cluster, a.Fresh = c.t.cfg.state()
	if err != nil {
		text := err.Error()
		a.Error = text[:min(len(text), 2048)]
	}
	return writeMessage(c, &a)
}

// Write ends the connection if the peer would be refused by now, or after the answer that refuses it.
func (c *conn) Write(b []byte) (int, error) {
	if c.peer.Device.IsValid() {
		if err := c.current(); err != nil {
			_ = c.Close()
			return 0, err
		}
	}
	n, err := c.Conn.Write(b)
	if c.last.Load() {
		_ = c.Close()
	}
	return n, err
}

// Close closes the socket at once: that of TLS may wait for a peer.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.forget(c)
	return c.raw.Conn.Close()
}

// SetDeadline does nothing, as the two that follow: the library has one deadline for a message,
// however large; paced has its own.
func (c *conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (c *conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// paced is the socket under TLS. It bounds what the peer sends until it is answered, and, once
// paced, how long the peer may stand still.
type paced struct {
	net.Conn
	wait time.Duration // 0: the deadlines of the socket are others' business
	idle bool          // the next message may take any time: dead peers are the business of the system's keepalive
	most int           // bytes of the peer until this side writes
	got  int           // of these
	sent int           // since the peer wrote
}

// limit bounds a message of the peer, with what TLS puts around it.
func (p *paced) limit(n int) { p.most = n + n/64 + 32<<10 }

// pace ends the deadline of the handshake: from now on only standing still has an end.
func (p *paced) pace(wait time.Duration, idle bool) {
	p.wait, p.idle = wait, idle
	_ = p.Conn.SetDeadline(time.Time{})
}

// Read implements net.Conn.
func (p *paced) Read(b []byte) (int, error) {
	if p.got >= p.most {
		return 0, broken("connection", "more than %d bytes in one message", p.most)
	}
	if p.wait > 0 {
		var end time.Time
		if !p.idle || p.got > 0 {
			end = time.Now().Add(p.wait + time.Duration(p.sent)*time.Second/bytesPerSecond)
		}
		_ = p.Conn.SetReadDeadline(end)
	}
	n, err := p.Conn.Read(b[:min(len(b), p.most-p.got)])
	p.got += n
	if n > 0 {
		p.sent = 0
	}
	return n, err
}

// Write implements net.Conn.
func (p *paced) Write(b []byte) (int, error) {
	if p.wait > 0 {
		_ = p.Conn.SetWriteDeadline(time.Now().Add(p.wait))
	}
	p.got = 0
	p.sent += len(b)
	return p.Conn.Write(b)
}
