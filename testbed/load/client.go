package load

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// client is one device with its session, of which only the sending half is kept: what
// comes is for the reader.
type client struct {
	*reader
	dev      netip.Addr
	opened   time.Time // when it was dialed
	interval time.Duration

	mu   sync.Mutex
	sess *link.Session
	seq  uint64
	buf  []byte
}

// epochOf is the epoch of all devices of a run.
func epochOf(now time.Time) uint64 { return uint64(now.UnixNano()) | 1 }

// connect makes a session. Its reader does not run yet.
func connect(ctx context.Context, t *Target, dev netip.Addr, caps wire.Capabilities, epoch uint64, crowd *crowd) (*client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c := &client{dev: dev, opened: time.Now()}
	auth, creds, err := t.auth(dev)
	if err != nil {
		return nil, fmt.Errorf("device %v: %w", dev, err)
	}
	nc, err := t.dial(ctx, creds)
	if err != nil {
		return nil, fmt.Errorf("device %v: %w", dev, err)
	}
	c.reader = newReader(nc, crowd)
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	err = c.handshake(link.SessionConfig{Self: dev, Dialer: true, Roles: wire.RoleClient, Epoch: epoch, Caps: caps, Auth: auth, Identify: identify(nc, creds)})
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("device %v: %w", dev, err)
	}
	return c, nil
}

func (c *client) handshake(cfg link.SessionConfig) error {
	_, _ = rand.Read(cfg.Nonce[:]) // never fails
	s, err := link.NewSession(cfg, time.Now())
	if err != nil {
		return err
	}
	out, err := s.Start(nil, time.Now())
	for err == nil {
		if len(out) > 0 {
			if _, err = c.nc.Write(out); err != nil {
				break
			}
		}
		if st, _ := s.State(); st == link.StateEstablished {
			c.sess = s
			_, c.interval = s.Timers()
			return nil
		}
		var frame []byte
		if frame, err = c.readFrame(s.Limit()); err == nil {
			_, out, err = s.Receive(frame, out[:0], time.Now())
		}
	}
	if errors.As(err, new(*link.PeerError)) {
		return fmt.Errorf("the reflector refuses the session: %w", err)
	}
	return err
}

// readFrame takes no byte more than the message has: the rest is for the reader.
func (c *client) readFrame(limit int) ([]byte, error) {
	b := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(c.nc, b); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(b))
	if n < len(b) || n > limit {
		_, err := wire.ParseHeader(b, limit)
		return nil, err
	}
	b = append(b, make([]byte, n-len(b))...)
	_, err := io.ReadFull(c.nc, b[wire.HeaderLen:])
	return b, err
}

// update gives the next Update of the device, without records.
func (c *client) update(epoch uint64) *wire.Update {
	c.seq++
	now := time.Now()
	return &wire.Update{Origin: c.dev, Epoch: epoch, Seq: c.seq, SentAt: now}
}

// send puts messages on the wire in one write.
func (c *client) send(ms ...wire.Message) error {
	_, err := c.sendTimed(ms...)
	return err
}

// sendTimed is send; it gives when the messages were ready to be written: what they cost their
// sender until then is no cost of who passes them on.
func (c *client) sendTimed(ms ...wire.Message) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = c.buf[:0]
	for _, m := range ms {
		e, err := wire.Encode(m)
		if err != nil {
			return time.Time{}, err
		}
		c.buf = c.sess.Seal(c.buf, e, time.Now())
	}
	began := time.Now()
	return began, c.write()
}

// pour makes messages ready, says so, and sends them without a pause once start is
// closed.
func (c *client) pour(list []*wire.Encoded, ready func(), start <-chan struct{}) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = c.buf[:0]
	for _, e := range list {
		c.buf = c.sess.Seal(c.buf, e, time.Now())
	}
	ready()
	<-start
	return c.write()
}

// keepalive sends one if one is due; every is how often this is called.
func (c *client) keepalive(every time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Add(every).After(c.sess.KeepaliveAt()) {
		e, err := wire.Encode(&wire.Keepalive{})
		if err == nil {
			c.buf = c.sess.Seal(c.buf[:0], e, now)
			_ = c.write() // the reader tells of a session that has ended
		}
	}
}

func (c *client) write() error {
	_, err := c.nc.Write(c.buf)
	if cap(c.buf) > 4<<10 {
		c.buf = nil
	}
	if err != nil && c.ended() != nil {
		return c.ended()
	}
	return err
}

// ended tells why the session is over, nil: it is not.
func (c *client) ended() error {
	select {
	case <-c.done:
	default:
		return nil
	}
	if c.err != nil {
		return fmt.Errorf("session of device %v: %w", c.dev, c.err)
	}
	return fmt.Errorf("session of device %v: closed by the reflector", c.dev)
}

// goodbyeTime is how long the reflector has to read our last word.
const goodbyeTime = 2 * time.Second

// goodbye ends the session.
func (c *client) goodbye() {
	c.mu.Lock()
	_ = c.nc.SetWriteDeadline(time.Now().Add(goodbyeTime))
	_, _ = c.nc.Write(c.sess.Notify(nil, &wire.ProtocolError{Code: wire.CodeCease, Detail: "the benchmark is over"}))
	c.mu.Unlock()
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		select {
		case <-c.done:
		case <-time.After(goodbyeTime):
		}
	}
	c.nc.Close()
	<-c.done
}

// putHost says that a host is attached.
func putHost(addr, dev netip.Addr, port string, since time.Time) wire.HostRecord {
	h := zone.Host{HostKey: zone.HostKey{Addr: addr, Device: dev, Port: port}, Since: since}
	h.NQN = markNQN
	return wire.HostRecord{Op: wire.Put, Host: h}
}

// markNQN is the name of every host that is no host.
const markNQN = "nqn.2026-01.org.openinof:inofctl-bench"
