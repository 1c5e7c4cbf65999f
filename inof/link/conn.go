package link

import (
	"crypto/rand"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/deepstack"
)

const (
	lingerTime  = 200 * time.Millisecond // for the peer to read our Notification before the close
	lingerBytes = 64 << 10
)

// host is what a connection needs of its Server or Dialer.
type host struct {
	cfg   TransportConfig
	tally tally
	bufs  sync.Pool    // *[]byte for writes
	busy  atomic.Int64 // sessions with something that waits
	tags  taggerPool
	// establish is called once, before the Up event; an error ends the session.
	establish func(c *conn) error
	// hasHosts is called by the reader when the device has announced hosts; nil: nobody asks.
	hasHosts func(c *conn, now time.Time)
	tls      *tls.Config // of a listener
	turns    handshakeTurns
	tlsAddr  netip.Addr // what the certificate of a dialer's peer must be good for
}

func newHost(cfg TransportConfig) *host {
	return &host{cfg: cfg, tls: listenerTLS(), turns: newHandshakeTurns(), bufs: sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}}
}

// taggerPool lends the sessions of a host as many taggers as there are at work.
type taggerPool struct{ p sync.Pool }

func (tp *taggerPool) get() *tagger {
	if t, ok := tp.p.Get().(*tagger); ok {
		return t
	}
	return newTagger()
}

func (tp *taggerPool) put(t *tagger) { tp.p.Put(t) }

// conn is one connection: a reader goroutine that owns its life, and a writer
// that is whoever sends, or a goroutine while there is a backlog.
type conn struct {
	host  *host
	nc    net.Conn
	peer  *Peer // made when Established
	limit int   // of the next message; the session says it
	out   writer
	pace  *pacer        // of its device; nil: nothing slows it down
	done  chan struct{} // closed after the Down event
	hosts bool          // of its reader: the device has announced hosts
	// source is what counts as one source of connections.
	source netip.Prefix

	mu   sync.Mutex // guards what follows
	sess *Session   // only the sending half once Established, see Session
	view PeerInfo   // State, Since, Device, Role, timers
	// probe asks whether the peer is there, nil: nobody asks.
	probe *probe
}

func newConn(h *host, nc net.Conn, sc SessionConfig, now time.Time) (*conn, error) {
	if _, err := rand.Read(sc.Nonce[:]); err != nil {
		return nil, err
	}
	c := &conn{host: h, done: make(chan struct{})}
	sc.Identify, sc.Confirm = c.identify, true
	sc.taggers = &h.tags
	sess, err := NewSession(sc, now)
	if err != nil {
		return nil, err
	}
	if t, ok := nc.(*net.TCPConn); ok {
		// Notices must not wait for more bytes, and liveness is our own affair.
		_ = t.SetNoDelay(true)
		_ = t.SetKeepAlive(false)
	}
	if sc.Auth.Mode == wire.AuthTLS {
		if sc.Dialer {
			nc = newTLSClient(nc, sc.Auth.TLS, h.tlsAddr)
		} else {
			nc = newTLSServer(nc, sc.Auth.TLS, h.tls, h.turns)
		}
	}
	c.nc, c.sess = nc, sess
	c.view = PeerInfo{Address: nc.RemoteAddr().String(), Since: now, Auth: sc.Auth.Mode, Dialed: sc.Dialer}
	c.out.init(c)
	return c, nil
}

// run works until the session ends; the error says why and is never nil.
func (c *conn) run() error {
	r := newMsgReader(c)
	err := c.begin(r)
	if err == nil {
		err = c.follow(r)
	}
	return c.end(err)
}

// begin works until the session is Established.
func (c *conn) begin(r *msgReader) error {
	if err := c.secure(); err != nil {
		return err
	}
	if err := c.start(); err != nil {
		return err
	}
	for c.peer == nil {
		frame, err := r.message()
		if err == nil {
			err = c.handshake(frame, time.Now())
		}
		if err != nil {
			return err
		}
	}
	r.small = smallReads
	return nil
}

// follow takes messages until the session ends, or rests.
func (c *conn) follow(r *msgReader) error {
	for {
		if err := r.settle(); err != nil {
			return err
		}
		frame, err := r.message()
		if err != nil {
			return err
		}
		deepstack.Grow()
		m, _, err := c.sess.Receive(frame, nil, time.Now())
		if err != nil {
			return err
		}
		if u, ok := m.(*wire.Update); ok {
			u.ReceivedAt = r.at
			if len(u.Hosts) > 0 && !c.hosts && c.host.hasHosts != nil {
				c.hosts = true
				c.host.hasHosts(c, time.Now())
			}
		}
		switch m := m.(type) {
		case nil, *wire.Keepalive:
			if err := c.slowDown(); err != nil {
				return err
			}
			if k, ok := m.(*wire.Keepalive); ok {
				c.asked(k)
			}
		default:
			c.host.cfg.Sink(PeerEvent{Peer: c.peer, Kind: PeerMessage, Msg: m, At: r.at, Size: len(frame)})
		}
		c.sess.Heard(time.Now()) // while it was not read it was not silent
	}
}

// end closes the connection; the error is the true reason.
func (c *conn) end(err error) error {
	defer close(c.done)
	err = c.out.finish(err)
	c.host.tally.count(err)
	if c.peer != nil {
		c.host.cfg.Sink(PeerEvent{Peer: c.peer, Kind: PeerDown, At: time.Now(), Err: err})
	}
	return err
}

func (c *conn) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := c.sess.Start(nil, time.Now())
	if err != nil {
		return err
	}
	c.note()
	return c.handshakeWrite(b)
}

// note copies what Infos show from the session. c.mu is held.
func (c *conn) note() {
	c.limit = c.sess.Limit()
	c.view.State, c.view.Since = c.sess.State()
	if o := c.sess.Peer(); o != nil {
		c.view.Device, c.view.Role, c.view.RoleName, c.view.Epoch = o.Device, o.Roles, o.Roles.String(), o.Epoch
		c.view.Hold, c.view.Keepalive = c.sess.Timers()
	}
}

// handshakeWrite sends bytes of the handshake; they always fit the socket buffer
// of a sane peer, and the deadline bounds the rest.
func (c *conn) handshakeWrite(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := c.nc.SetWriteDeadline(c.sess.Deadline()); err != nil {
		return err
	}
	_, err := c.nc.Write(b)
	c.out.wrote(1, len(b))
	return err
}

// handshake takes one message before Established.
func (c *conn) handshake(frame []byte, now time.Time) error {
	c.mu.Lock()
	_, out, err := c.sess.Receive(frame, nil, now)
	if err == nil {
		c.note()
		err = c.handshakeWrite(out)
	}
	state, proved := c.view.State, c.sess.Proved()
	c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case proved:
		return c.admit(now)
	case state != StateEstablished:
		return nil
	}
	if err := c.establish(); err != nil {
		return err
	}
	return c.up(now)
}

// admit answers a dialer that has proved who it is, if it may have a session.
func (c *conn) admit(now time.Time) error {
	if err := c.establish(); err != nil {
		return err
	}
	c.mu.Lock()
	out := c.sess.Answer(nil, now)
	c.note()
	err := c.handshakeWrite(out)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.up(now)
}

func (c *conn) establish() error {
	if c.host.establish == nil {
		return nil
	}
	return c.host.establish(c)
}

// up lets messages through.
func (c *conn) up(now time.Time) error {
	if err := c.nc.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	c.host.tally.established.Add(1)
	c.peer = &Peer{c: c, device: c.sess.Peer().Device}
	c.out.open(c.sess.KeepaliveAt().Sub(now))
	c.host.cfg.Sink(PeerEvent{Peer: c.peer, Kind: PeerUp, At: now, Seen: c.sess.Peer().Resume, Offered: c.sess.Offered(), Caps: c.sess.Peer().Caps})
	return nil
}

// info is the present state for operators.
func (c *conn) info() PeerInfo {
	c.mu.Lock()
	v := c.view
	if p := c.pace; p != nil && v.State == StateEstablished {
		v.SlowedSince, v.Slowed = p.info(time.Now())
	}
	c.mu.Unlock()
	if v.State == StateEstablished {
		v.Password = c.password()
	}
	c.out.info(&v)
	return v
}

// device is the peer's id, zero before its Open. For the owner of the connection.
func (c *conn) device() netip.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view.Device
}

// secure does the TLS handshake of a session in mode tls, within the session's own
// time. It runs in the connection's goroutine.
func (c *conn) secure() error {
	t, ok := c.nc.(*tlsConn)
	if !ok {
		return nil
	}
	if err := t.SetDeadline(c.sess.Deadline()); err != nil {
		return err
	}
	// shut sets stopping first and then a deadline in the past.
	if c.out.stopping.Load() {
		return ErrClosed
	}
	if err := t.shake(); err != nil {
		return c.expired(err)
	}
	if len(t.chain) > 0 {
		c.mu.Lock()
		c.view.CertExpires = t.chain[0].NotAfter
		c.mu.Unlock()
	}
	return nil
}

// identify reports whether the peer's certificate lets it be a device.
func (c *conn) identify(device netip.Addr) error {
	t, ok := c.nc.(*tlsConn)
	if !ok {
		return &wire.ProtocolError{Code: wire.CodeAuthMode, Where: "connection", Detail: "mode tls without TLS"}
	}
	t.raw.turn(true)
	defer t.raw.turn(false)
	return t.identify(t.raw.creds, device)
}

// password is which of those in force the session has, empty: none.
func (c *conn) password() PasswordUse {
	c.mu.Lock()
	p, ok := c.sess.Password()
	c.mu.Unlock()
	if !ok {
		return ""
	}
	return c.host.cfg.Auth().Use(p)
}
