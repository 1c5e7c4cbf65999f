package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/deepstack"
)

// ServerConfig is the configuration of the listening side.
type ServerConfig struct {
	TransportConfig
	// Listen opens the listener; called once by Run.
	Listen func(ctx context.Context) (net.Listener, error)
	// Allow reports whether a device may connect; nil: every device. It must be
	// safe for concurrent use.
	Allow func(dev netip.Addr) bool
	// Everything tells which devices may ask for all hosts; nil: every one.
	// It must be safe for concurrent use.
	Everything func(dev netip.Addr) bool
	// MaxPeers is the number of established sessions, zero: DefaultMaxClients.
	// MaxPending is the number of connections before that, zero: DefaultMaxPending.
	// When a connection comes beyond it, the oldest pending one is closed: an
	// honest peer needs milliseconds, so a flood does not keep it out.
	MaxPeers, MaxPending int
	// MaxFromOne is how many devices one address (an IPv6 /64) may have sessions for, zero: no
	// limit; those that prove their ids by a certificate, or are Listed, do not count. Listed must
	// be safe for concurrent use.
	MaxFromOne int
	Listed     func(dev netip.Addr) bool
	// Returning are devices that had hosts before: their places are kept for a day.
	Returning []netip.Addr
	// Pace is how fast a device may send.
	Pace Pace
}

// Server accepts the sessions of clients.
type Server struct {
	cfg   ServerConfig
	host  *host
	pace  *pacers
	ready chan struct{}
	wg    sync.WaitGroup

	mu       sync.Mutex
	addr     net.Addr
	pending  []*conn // oldest first
	peers    map[netip.Addr]*conn
	past     map[netip.Addr]past
	hosts    map[netip.Addr]time.Time // devices that had hosts, and when their last session ended
	refused  []PeerInfo               // newest last, one an address
	guesses  Guesses
	stopping bool
}

// past is what is remembered of a device's earlier sessions.
type past struct {
	sessions uint64
	err      string
	at       time.Time
}

// NewServer checks the configuration.
func NewServer(cfg ServerConfig) (*Server, error) {
	var err error
	if cfg.TransportConfig, err = cfg.TransportConfig.withDefaults(); err != nil {
		return nil, fmt.Errorf("inof server: %w", err)
	}
	if cfg.Listen == nil {
		return nil, errors.New("inof server: Listen must be set")
	}
	cfg.MaxPeers = cmp.Or(cfg.MaxPeers, wire.DefaultMaxClients)
	cfg.MaxPending = cmp.Or(cfg.MaxPending, DefaultMaxPending)
	s := &Server{cfg: cfg, host: newHost(cfg.TransportConfig), ready: make(chan struct{}), peers: map[netip.Addr]*conn{}, past: map[netip.Addr]past{}, hosts: map[netip.Addr]time.Time{}}
	for _, dev := range cfg.Returning[:min(len(cfg.Returning), cfg.MaxPeers)] {
		s.hosts[dev] = time.Now()
	}
	s.host.establish, s.host.hasHosts = s.establish, s.hasHosts
	s.pace = newPacers(cfg.Pace, 2*cfg.MaxPeers, s.connected)
	return s, nil
}

// SetPace changes how fast a device may send, at once for all.
func (s *Server) SetPace(p Pace) { s.pace.set(p) }

func (s *Server) connected(dev netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peers[dev] != nil
}

// Run listens until ctx ends, then closes every session with a Cease. It returns
// once all sessions have told their Down, so the Sink must go on until then.
func (s *Server) Run(ctx context.Context) error {
	l, err := s.cfg.Listen(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.addr = l.Addr()
	s.mu.Unlock()
	close(s.ready)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	err = s.accept(ctx, l)
	_ = l.Close()
	s.stop()
	s.wg.Wait()
	return err
}

// accept takes connections; errors such as a lack of file descriptors pass.
func (s *Server) accept(ctx context.Context, l net.Listener) error {
	const first, most = 5 * time.Millisecond, time.Second
	wait := first
	for {
		nc, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = nc.Close()
			}
			return ctx.Err()
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("inof server: %w", err)
		case err != nil:
			s.host.tally.acceptErrors.Add(1)
			s.cfg.Log.Warn("cannot accept a connection, trying again", "error", err, "wait", wait)
			if !sleep(ctx, wait) {
				return ctx.Err()
			}
			wait = min(2*wait, most)
			continue
		}
		wait = first
		s.serve(nc)
	}
}

// sleep reports whether ctx still lives after d.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// serve runs a session in a goroutine of its own.
func (s *Server) serve(nc net.Conn) {
	s.host.tally.accepted.Add(1)
	sc := s.cfg.session(false)
	sc.Allow, sc.Everything, sc.ResumeFor = s.cfg.Allow, s.cfg.Everything, s.cfg.Resume
	c, err := newConn(s.host, nc, sc, time.Now())
	if err != nil {
		s.cfg.Log.Warn("cannot begin a session", "peer", nc.RemoteAddr(), "error", err)
		_ = nc.Close()
		return
	}
	c.source = sourceOf(c.view.Address)
	s.mu.Lock()
	var oldest *conn
	if len(s.pending) >= s.cfg.MaxPending {
		oldest = s.pending[0]
		s.pending = slices.Delete(s.pending, 0, 1)
	}
	s.pending = append(s.pending, c)
	s.mu.Unlock()
	if oldest != nil {
		s.host.tally.pendingRefused.Add(1)
		_ = oldest.nc.Close()
	}
	s.wg.Add(1) // until the session has ended, whichever goroutine it is in
	go func() {
		r := newMsgReader(c)
		err := s.mayTry(c)
		if err == nil {
			err = c.begin(r)
		}
		if err != nil {
			err = c.end(err)
			s.ended(c, err)
			s.wg.Done()
			return
		}
		// The handshake needs a deep stack; what follows it does not, and lives on.
		r.mayRest()
		go s.attend(c, r)
	}()
}

// mayTry refuses a source of too many wrong passwords.
func (s *Server) mayTry(c *conn) error {
	s.mu.Lock()
	first, err := s.guesses.Check(c.view.Address, time.Now())
	s.mu.Unlock()
	if err != nil {
		s.host.tally.guesses.Add(1)
	}
	if first {
		s.cfg.Log.Warn("too many wrong passwords", "peer", c.view.Address, "error", err)
	}
	return err
}

// mayBegin refuses a device whose sessions begin and end too often. S.mu is held.
func (s *Server) mayBegin(c *conn, pace *pacer) error {
	first, err := pace.begins(time.Now())
	if err != nil {
		s.host.tally.tooMany.Add(1)
	}
	if dev := c.device(); first {
		s.cfg.Log.Warn("sessions of a device begin and end too often", "peer", c.view.Address, "device", dev, "error", err)
		s.cfg.Alarm(dev, fmt.Sprintf("its sessions begin and end too often, the last one from %s: %v; see in its log why they end", c.view.Address, err))
	}
	return err
}

func (s *Server) ended(c *conn, err error) {
	if guessed(err) && c.peer == nil {
		s.mu.Lock()
		s.guesses.Failed(c.view.Address, time.Now())
		s.mu.Unlock()
	}
	s.remove(c, err)
	level := slog.LevelInfo
	if c.peer != nil { // it was established, and its end is told as an event
		level = slog.LevelDebug
	}
	s.cfg.Log.Log(context.Background(), level, "session ended", "peer", c.view.Address, "device", c.device(), "error", err)
}

// establish makes c the session of its device, unless one stands that answers. One that
// does not is ended first, and has told its Down when this returns.
func (s *Server) establish(c *conn) error {
	dev := c.device()
	pace := s.pace.of(dev)
	c.mu.Lock()
	c.pace = pace
	c.mu.Unlock()
	s.mu.Lock()
	s.guesses.Right(c.view.Address)
	if err := s.contest(c); err != nil {
		s.mu.Unlock()
		return err
	}
	old := s.peers[dev]
	switch {
	case s.stopping:
		s.mu.Unlock()
		return &wire.ProtocolError{Code: wire.CodeCease, Detail: "the reflector stops"}
	case old == nil:
		if err := s.place(c, dev, time.Now()); err != nil {
			s.mu.Unlock()
			return err
		}
	}
	// Either this sees the credentials of a Recheck, or that sees this session.
	if err := c.recheck(); err != nil {
		s.mu.Unlock()
		return err
	}
	if err := s.mayBegin(c, pace); err != nil {
		s.mu.Unlock()
		return err
	}
	s.peers[dev] = c
	replaced := &wire.ProtocolError{Code: wire.CodeReplaced, Detail: "by a session from " + c.view.Address}
	p := s.past[dev]
	if old != nil { // it becomes one of the past only when it has ended
		p = past{sessions: p.sessions + 1, err: replaced.Error(), at: time.Now()}
	}
	c.recall(p)
	s.forgive(c.view.Address)
	s.pending = slices.DeleteFunc(s.pending, func(p *conn) bool { return p == c })
	s.mu.Unlock()
	if old != nil {
		old.out.shut(replaced)
		<-old.done
	}
	s.cfg.Log.Debug("session established", "peer", c.view.Address, "device", dev)
	return nil
}

func (s *Server) remove(c *conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(p *conn) bool { return p == c })
	dev := c.device()
	if s.peers[dev] == c {
		delete(s.peers, dev)
		if _, had := s.hosts[dev]; had {
			s.hosts[dev] = time.Now()
		}
	}
	if c.peer == nil {
		s.refuse(c, err)
		return
	}
	if _, known := s.past[dev]; !known && len(s.past) >= 2*s.cfg.MaxPeers {
		clear(s.past) // device ids made up in mode none must not fill the memory
	}
	s.past[dev] = past{sessions: s.past[dev].sessions + 1, err: err.Error(), at: time.Now()}
}

// recall shows what is remembered of the device with the new session.
func (c *conn) recall(p past) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.view.Reconnects, c.view.LastError, c.view.LastErrAt = p.sessions, p.err, p.at
}

// stop ends every session.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for _, c := range s.pending {
		_ = c.nc.Close()
	}
	for _, c := range s.peers {
		c.out.shut(&wire.ProtocolError{Code: wire.CodeCease, Detail: "the reflector stops"})
	}
}

// Ready is closed once the server listens.
func (s *Server) Ready() <-chan struct{} { return s.ready }

func (s *Server) String() string { return "inof server" }

// Addr is the listener's address, nil before Ready.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// Infos are the established sessions, sorted by device, then those in handshake.
func (s *Server) Infos() []PeerInfo {
	s.mu.Lock()
	conns := make([]*conn, 0, len(s.peers)+len(s.pending))
	for _, c := range s.peers {
		conns = append(conns, c)
	}
	established := len(conns)
	conns = append(conns, s.pending...)
	s.mu.Unlock()
	out := make([]PeerInfo, len(conns))
	for i, c := range conns {
		out[i] = c.info()
	}
	slices.SortFunc(out[:established], func(a, b PeerInfo) int { return cmp.Or(a.Device.Compare(b.Device), cmp.Compare(a.Address, b.Address)) })
	return out
}

// Counters returns a copy.
func (s *Server) Counters() TransportCounters { return s.host.tally.snapshot() }

// attend takes messages until the session rests or ends. It owns c and r.
func (s *Server) attend(c *conn, r *msgReader) {
	err := c.follow(r)
	if err == errResting {
		go s.rest(c, r)
		return
	}
	s.ended(c, c.end(err))
	s.wg.Done()
}

// rest waits until something comes, and attends to it. It owns c and r.
func (s *Server) rest(c *conn, r *msgReader) {
	r.rest.wait()
	deepstack.Grow()
	s.attend(c, r)
}
