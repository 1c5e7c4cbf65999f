package link

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// DialerConfig is the configuration of the session to one reflector.
type DialerConfig struct {
	TransportConfig
	// Name of the reflector in logs and Infos, usually "address:port".
	Name string
	// Address is that of the reflector; in mode tls its certificate must be good
	// for it, so that no other device can pass for a reflector. Zero: not checked.
	Address netip.Addr
	// Expect is the reflector's device id; zero: any.
	Expect netip.Addr
	// Dial opens a connection. It must return when ctx ends.
	Dial func(ctx context.Context) (net.Conn, error)
}

// dialTimeout bounds one attempt: a reflector whose packets are lost must not
// hold up the next attempt for minutes.
const dialTimeout = 5 * time.Second

// Dialer keeps the session to one reflector: it dials, and dials again with
// back-off, until it is stopped.
type Dialer struct {
	cfg   DialerConfig
	host  *host
	ready chan struct{}
	wake  chan struct{} // holds one when the wait is to end

	mu       sync.Mutex
	conn     *conn
	device   netip.Addr // of the reflector, once it was Established
	dials    uint64
	last     error
	lastAt   time.Time
	idleFrom time.Time // since when there is no connection
	msgs     [4]uint64 // totals of connections that ended: messages and bytes, in and out
}

// NewDialer checks the configuration.
func NewDialer(cfg DialerConfig) (*Dialer, error) {
	var err error
	if cfg.TransportConfig, err = cfg.TransportConfig.withDefaults(); err != nil {
		return nil, fmt.Errorf("inof dialer %s: %w", cfg.Name, err)
	}
	if cfg.Dial == nil {
		return nil, fmt.Errorf("inof dialer %s: Dial must be set", cfg.Name)
	}
	d := &Dialer{cfg: cfg, host: newHost(cfg.TransportConfig), ready: make(chan struct{}), wake: make(chan struct{}, 1)}
	d.host.establish, d.host.tlsAddr = d.establish, cfg.Address
	return d, nil
}

func (d *Dialer) establish(c *conn) error {
	// Recheck passes over a session that is not Established yet; its credentials
	// are in force before.
	if err := c.recheck(); err != nil {
		return err
	}
	d.mu.Lock()
	d.device = c.device()
	d.mu.Unlock()
	d.cfg.Log.Debug("session established", "reflector", d.cfg.Name, "device", c.device())
	return nil
}

// reflector is the device id that answered last.
func (d *Dialer) reflector() netip.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.device
}

// Run keeps the session until ctx ends; its error is that of ctx. Its Sink must go
// on until Run returns.
func (d *Dialer) Run(ctx context.Context) error {
	d.mu.Lock()
	d.idleFrom = time.Now()
	d.mu.Unlock()
	close(d.ready)
	for attempt := 0; ; attempt++ {
		began := time.Now()
		established, err := d.once(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if established && time.Since(began) >= BackoffReset {
			attempt = 0
		}
		wait := Backoff(attempt, rand.Float64())
		d.fail(err, wait)
		woken, err := d.pause(ctx, wait)
		if err != nil {
			return err
		}
		if woken {
			attempt = -1
		}
	}
}

// Wake ends the wait for the next attempt, and the back-off begins anew: something has
// changed, a password perhaps. An attempt under way may still be of before; then the
// next one follows it at once. A session that stands is left alone.
func (d *Dialer) Wake() {
	if d.Info().State == StateEstablished {
		return
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// pause waits; it reports whether Wake ended that.
func (d *Dialer) pause(ctx context.Context, wait time.Duration) (woken bool, err error) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-d.wake:
		return true, nil
	case <-t.C:
		return false, nil
	}
}

// fail keeps and logs why there is no session; the same reason again is not logged
// louder than debug.
func (d *Dialer) fail(err error, wait time.Duration) {
	d.mu.Lock()
	again := d.last != nil && d.last.Error() == err.Error()
	d.last, d.lastAt = err, time.Now()
	d.mu.Unlock()
	if again {
		d.cfg.Log.Debug("no session, trying again", "reflector", d.cfg.Name, "error", err, "wait", wait)
		return
	}
	if p, ok := errors.AsType[*PeerError](err); ok && p.Code == wire.CodeDuplicate {
		d.cfg.Alarm(d.cfg.Self, fmt.Sprintf("%v; give this device or the other one another device.id", err))
	}
	d.cfg.Log.Warn("no session, trying again", "reflector", d.cfg.Name, "error", err, "wait", wait)
}

// once dials and runs one session; it reports whether it was Established.
func (d *Dialer) once(ctx context.Context) (bool, error) {
	d.host.tally.dials.Add(1)
	dctx, cancel := context.WithTimeout(ctx, dialTimeout)
	nc, err := d.cfg.Dial(dctx)
	cancel()
	if err != nil {
		d.host.tally.dialErrors.Add(1)
		return false, err
	}
	sc := d.cfg.session(true)
	sc.Expect = d.cfg.Expect
	if dev := d.reflector(); dev.IsValid() && d.cfg.Resume != nil {
		sc.Resume = d.cfg.Resume(dev)
	}
	c, err := newConn(d.host, nc, sc, time.Now())
	if err != nil {
		_ = nc.Close()
		return false, err
	}
	d.mu.Lock()
	d.conn = c
	d.dials++
	d.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		c.out.shut(&wire.ProtocolError{Code: wire.CodeCease, Detail: "the client stops"})
	})
	err = c.run()
	stop()
	v := c.info()
	d.mu.Lock()
	d.conn, d.idleFrom = nil, time.Now()
	for i, n := range [...]uint64{v.MsgIn, v.MsgOut, v.BytesIn, v.BytesOut} {
		d.msgs[i] += n
	}
	d.mu.Unlock()
	var peer *PeerError
	if errors.As(err, &peer) {
		err = fmt.Errorf("reflector %s: %w", d.cfg.Name, err)
	}
	return c.peer != nil, err
}

// Ready is closed once Run has begun: a device does not wait for its reflectors.
func (d *Dialer) Ready() <-chan struct{} { return d.ready }

func (d *Dialer) String() string { return "inof dialer " + d.cfg.Name }

// Info is the session as operators see it, in every state. Messages and bytes are
// those of all its connections.
func (d *Dialer) Info() PeerInfo {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := PeerInfo{Device: d.cfg.Expect, Since: d.idleFrom, Auth: d.cfg.Auth().Mode, Dialed: true}
	if d.conn != nil {
		v = d.conn.info()
		if !v.Device.IsValid() {
			v.Device = d.cfg.Expect
		}
	}
	v.Address = d.cfg.Name
	v.MsgIn += d.msgs[0]
	v.MsgOut += d.msgs[1]
	v.BytesIn += d.msgs[2]
	v.BytesOut += d.msgs[3]
	if d.dials > 1 {
		v.Reconnects = d.dials - 1
	}
	if v.LastError == "" && d.last != nil {
		v.LastError, v.LastErrAt, v.LastCode = d.last.Error(), d.lastAt, ReasonOf(d.last)
	}
	return v
}

// Counters returns a copy.
func (d *Dialer) Counters() TransportCounters { return d.host.tally.snapshot() }
