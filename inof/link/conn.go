package link

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/inof/wire"
)

const (
	openReadBuffer  = 2 << 10                // before Established: what speakers of another protocol begin with fits
	firstReadBuffer = 256                    // grows to the largest message on its way, and back
	quickReadBuffer = 16 << 10               // grows to this where reads fill it
	smallReads      = 3                      // after so many in a row it is small again
	lingerTime      = 200 * time.Millisecond // for the peer to read our Notification before the close
	lingerBytes     = 64 << 10
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
	tls       *tls.Config // of a listener
	tlsAddr   netip.Addr  // what the certificate of a dialer's peer must be good for
}

func newHost(cfg TransportConfig) *host {
	return &host{cfg: cfg, tls: listenerTLS(), bufs: sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}}
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
			nc = newTLSServer(nc, sc.Auth.TLS, h.tls)
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
		m, _, err := c.sess.Receive(frame, nil, time.Now())
		if err != nil {
			return err
		}
		if u, ok := m.(*wire.Update); ok {
			u.ReceivedAt = r.at
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

// expired maps the reader's deadline to the session's word for it.
func (c *conn) expired(err error) error {
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		if e := c.sess.Expired(time.Now()); e != nil {
			return e
		}
	}
	if closed(err) {
		return fmt.Errorf("connection to %s was closed: %w", c.view.Address, err)
	}
	return err
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

// msgReader takes whole messages from a connection. A length is checked before
// anything is allocated for it.
type msgReader struct {
	c        *conn
	buf      []byte
	from, to int       // unread bytes of buf
	deadline time.Time // set on the connection
	at       time.Time // when the newest bytes were read
	small    int       // reads in a row that brought little
	filled   bool      // the last read filled buf: there may be more
	rest     resting
}

func newMsgReader(c *conn) *msgReader {
	return &msgReader{c: c, buf: make([]byte, openReadBuffer)}
}

// message is next, counted.
func (r *msgReader) message() ([]byte, error) {
	frame, err := r.next()
	if err == nil {
		r.c.host.tally.msgIn.Add(1)
		r.c.out.msgIn.Add(1)
	}
	return frame, err
}

// next gives a message that is valid until the next call.
func (r *msgReader) next() ([]byte, error) {
	// The first byte of the length is zero: anything else is another protocol and
	// may never send as much as a header.
	if err := r.fill(1); err != nil {
		return nil, err
	}
	want := wire.HeaderLen
	if r.buf[r.from] != 0 {
		want = min(wire.HeaderLen, max(8, r.to-r.from))
	}
	if err := r.fill(want); err != nil {
		return nil, err
	}
	if r.buf[r.from] != 0 {
		var b [wire.HeaderLen]byte
		copy(b[:], r.buf[r.from:r.to])
		_, err := wire.ParseHeader(b[:], r.c.limit)
		return nil, err
	}
	h, err := wire.ParseHeader(r.buf[r.from:r.to], r.c.limit)
	if err != nil {
		return nil, err
	}
	if err := r.fill(h.Length); err != nil {
		return nil, err
	}
	frame := r.buf[r.from : r.from+h.Length]
	r.from += h.Length
	return frame, nil
}

// fill reads until n unread bytes are there.
func (r *msgReader) fill(n int) error {
	for r.to-r.from < n {
		switch {
		case r.from == r.to:
			r.from, r.to = 0, 0
			r.fit(n)
		case r.from > 0 && len(r.buf)-r.from < n:
			r.to = copy(r.buf, r.buf[r.from:r.to])
			r.from = 0
		}
		if len(r.buf)-r.from < n {
			// Doubling keeps a peer that only announces a long message from
			// occupying memory for it.
			b := make([]byte, min(max(2*len(r.buf), wire.HeaderLen), max(n, firstReadBuffer)))
			r.to = copy(b, r.buf[r.from:r.to])
			r.buf, r.from = b, 0
		}
		if err := r.arm(); err != nil {
			return r.c.expired(err)
		}
		got, err := r.c.nc.Read(r.buf[r.to:])
		if got > 0 {
			r.at = time.Now()
		}
		if err := r.take(got, err); err != nil {
			return err
		}
	}
	return nil
}

// take notes what a read has brought to the end of buf.
func (r *msgReader) take(got int, err error) error {
	r.to += got
	r.filled = r.to == len(r.buf)
	if r.to > firstReadBuffer {
		r.small = 0
	} else if r.small < smallReads {
		r.small++
	}
	r.c.host.tally.bytesIn.Add(uint64(got))
	r.c.out.bytesIn.Add(uint64(got))
	if got > 0 || err == nil || r.early(err) {
		return nil
	}
	return r.c.expired(err)
}

// fit makes the empty buffer larger where that saves reads, and small again when
// little comes: most of the time a session is silent.
func (r *msgReader) fit(n int) {
	switch {
	case n > firstReadBuffer:
	case len(r.buf) > quickReadBuffer, len(r.buf) > firstReadBuffer && r.small >= smallReads:
		r.buf = make([]byte, firstReadBuffer)
	case r.filled && len(r.buf) < quickReadBuffer:
		r.buf = make([]byte, 2*len(r.buf))
	}
}

// arm sets the read deadline where it has moved by enough to matter.
func (r *msgReader) arm() error {
	want := r.c.sess.Deadline()
	if d := want.Sub(r.deadline); d >= 0 && d < wire.MinKeepalive/4 {
		return nil
	}
	r.deadline = want
	if err := r.c.nc.SetReadDeadline(want); err != nil {
		return err
	}
	// shut sets stopping first and then a deadline in the past: either it is seen
	// here, or that deadline replaces the one just set.
	if r.c.out.stopping.Load() {
		return ErrClosed
	}
	return nil
}

// early reports whether the deadline fired before the session's own: arm passes over
// small moves.
func (r *msgReader) early(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	if !ok || !ne.Timeout() || r.c.out.stopping.Load() || r.c.sess.Expired(time.Now()) != nil {
		return false
	}
	r.deadline = time.Time{}
	return true
}
