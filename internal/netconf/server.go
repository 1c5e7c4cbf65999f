package netconf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/openinof/inof/internal/api"
)

// Limits of the server.
const (
	MaxSessions   = 32
	maxStrangers  = 32 // connections that have not logged in
	maxFromOne    = 4  // of those from one address
	handshakeTime = 20 * time.Second
	maxTries      = 6 // keys and passwords of a connection
	// goodbyeTime is how long the last reply may take to its reader.
	goodbyeTime = 2 * time.Second
)

// Counters count what comes over SSH.
type Counters struct {
	api.DoorCounters
	Sessions      uint64 `json:"sessions"`      // begun
	Open          uint64 `json:"open"`          // now
	Dropped       uint64 `json:"dropped"`       // ended by something else than close-session
	Full          uint64 `json:"full"`          // refused: 32 sessions, or too many strangers
	NotNetconf    uint64 `json:"not_netconf"`   // channels and subsystems that are none of ours
	BadHello      uint64 `json:"bad_hello"`     // none, or one without a base that is known
	BadFraming    uint64 `json:"bad_framing"`   // sessions that ended by it
	TooBig        uint64 `json:"too_big"`       // messages of more than 4 MiB
	Malformed     uint64 `json:"malformed"`     // messages that are no rpc
	RPCs          uint64 `json:"rpcs"`          // operations
	Errors        uint64 `json:"errors"`        // of those, answered with an error
	Notifications uint64 `json:"notifications"` // sent
	Lost          uint64 `json:"lost"`          // events that a client was too slow for
}

// Config is what a Server needs beside its Device.
type Config struct {
	HostKey ssh.Signer
	Door    *api.Door
}

// Server is the NETCONF server of a device.
type Server struct {
	dev     Device
	cfg     Config
	store   *store
	started time.Time
	large   chan struct{} // one large answer is made at a time

	mu        sync.Mutex
	counts    Counters
	sessions  map[uint32]*session
	lastID    uint32
	strangers map[netip.Addr]int
}

// New makes a server; it listens nowhere yet.
func New(dev Device, cfg Config) *Server {
	return &Server{dev: dev, cfg: cfg, store: newStore(dev), started: time.Now(), large: make(chan struct{}, 1), sessions: map[uint32]*session{}, strangers: map[netip.Addr]int{}}
}

// Counters returns what was counted.
func (s *Server) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.DoorCounters = s.cfg.Door.Counters()
	c.Open = uint64(len(s.sessions))
	return c
}

func (s *Server) tally(add func(*Counters)) {
	s.mu.Lock()
	add(&s.counts)
	s.mu.Unlock()
}

// beginLarge waits until no other large answer is being made.
func (s *Server) beginLarge(ctx context.Context) (end func(), err error) {
	select {
	case s.large <- struct{}{}:
		return func() { <-s.large }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Serve takes connections until ctx ends or the listener fails, and waits for the sessions' ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		from := addressOf(conn)
		if !s.admit(from) {
			conn.Close()
			continue
		}
		all.Go(func() { s.connection(ctx, conn, from) })
	}
}

func addressOf(conn net.Conn) netip.Addr {
	ap, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// admit takes a stranger in, while there is room for one.
func (s *Server) admit(from netip.Addr) bool {
	if err := s.cfg.Door.Open(from); err != nil {
		s.cfg.Door.TurnAway(from, err)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := 0
	for _, n := range s.strangers {
		all += n
	}
	if all >= maxStrangers || s.strangers[from] >= maxFromOne {
		s.counts.Full++
		return false
	}
	s.strangers[from]++
	return true
}

func (s *Server) noStranger(from netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strangers[from]--; s.strangers[from] <= 0 {
		delete(s.strangers, from)
	}
}

// visitorKey is under what a connection keeps who was let in.
type visitorKey struct{}

// connection speaks SSH with one client.
func (s *Server) connection(ctx context.Context, conn net.Conn, from netip.Addr) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(handshakeTime)) // a pipe in a test may have none
	c, channels, requests, err := s.handshake(conn, from)
	s.noStranger(from)
	if err != nil {
		return
	}
	defer c.Close()
	_ = conn.SetDeadline(time.Time{})
	go ssh.DiscardRequests(requests)
	who, ok := c.Permissions.ExtraData[visitorKey{}].(api.Visitor)
	if !ok {
		return // no callback lets anybody in without
	}
	idle := time.AfterFunc(helloTime, func() { conn.Close() }) // who opens nothing
	defer idle.Stop()
	taken := false
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for ch := range channels {
		if ch.ChannelType() != "session" || taken {
			s.tally(func(c *Counters) { c.NotNetconf++ })
			_ = ch.Reject(ssh.Prohibited, "one session with the subsystem netconf, and nothing else") // it has gone then
			continue
		}
		x := s.place(who)
		if x == nil {
			_ = ch.Reject(ssh.ResourceShortage, fmt.Sprintf("there are %d sessions, the most there can be", MaxSessions)) // it has gone then
			continue
		}
		channel, asked, err := ch.Accept()
		if err != nil {
			s.leave(x)
			return
		}
		taken = true
		sessions.Go(func() {
			defer c.Close()
			defer s.leave(x)
			if !s.subsystem(asked) {
				return
			}
			idle.Stop()
			gone := make(chan struct{})
			go func() { ssh.DiscardRequests(asked); close(gone) }()
			s.session(ctx, x, sshPipe{channel, conn})
			_ = channel.Close() // the client may have done so
			select {            // it has taken all when it closes its side too
			case <-gone:
			case <-time.After(goodbyeTime):
			}
		})
	}
}

// subsystem waits until a client asks for the subsystem, and refuses all else.
func (s *Server) subsystem(asked <-chan *ssh.Request) bool {
	for r := range asked {
		var name struct{ Name string }
		good := r.Type == "subsystem" && ssh.Unmarshal(r.Payload, &name) == nil && name.Name == "netconf"
		if !good && r.Type != "env" {
			s.tally(func(c *Counters) { c.NotNetconf++ })
		}
		if r.WantReply && r.Reply(good, nil) != nil {
			return false
		}
		if good {
			return true
		}
	}
	return false
}

// handshake finds out who it is.
func (s *Server) handshake(conn net.Conn, from netip.Addr) (*ssh.ServerConn, <-chan ssh.NewChannel, <-chan *ssh.Request, error) {
	var last error // why the last try of this connection came to nothing
	counted := false
	let := func(v api.Visitor, err error) (*ssh.Permissions, error) {
		if err != nil {
			last = err
			return nil, err
		}
		return &ssh.Permissions{ExtraData: map[any]any{visitorKey{}: v}}, nil
	}
	cfg := &ssh.ServerConfig{
		MaxAuthTries:  maxTries,
		ServerVersion: "SSH-2.0-iNOF",
		PasswordCallback: func(m ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			v, err := s.cfg.Door.Password(from, m.User(), string(password))
			counted = counted || errors.Is(err, api.ErrNobody)
			return let(v, err)
		},
		PublicKeyCallback: func(m ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			return let(s.cfg.Door.Key(from, m.User(), key.Marshal()))
		},
	}
	cfg.AddHostKey(s.cfg.HostKey)
	c, channels, requests, err := ssh.NewServerConn(conn, cfg)
	switch {
	case err == nil:
		return c, channels, requests, nil
	case last == nil:
		s.cfg.Door.Nothing()
		return nil, nil, nil, err
	case !counted && errors.Is(last, api.ErrNobody):
		s.cfg.Door.Failed(from)
	}
	s.cfg.Door.TurnAway(from, last)
	return nil, nil, nil, err
}

// sshPipe is a channel whose end is that of its connection, so that no write waits for ever.
type sshPipe struct {
	io.ReadWriter
	conn net.Conn
}

func (p sshPipe) Close() error { return p.conn.Close() }

// place keeps a place for a session; nil: there is none.
func (s *Server) place(who api.Visitor) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) >= MaxSessions {
		s.counts.Full++
		return nil
	}
	s.lastID++ // of 2^32 none comes back while the first stands
	x := &session{srv: s, id: s.lastID, who: who, since: time.Now()}
	s.sessions[x.id] = x
	return x
}

func (s *Server) leave(x *session) {
	s.mu.Lock()
	delete(s.sessions, x.id)
	s.mu.Unlock()
}

// session talks with a client that was let in.
func (s *Server) session(ctx context.Context, x *session, p pipe) {
	s.mu.Lock()
	x.pipe = p
	s.counts.Sessions++
	s.mu.Unlock()
	_ = x.run(ctx) // its client knows why, and it is counted
	s.leave(x)
	if !x.closing {
		s.tally(func(c *Counters) { c.Dropped++ })
	}
	s.ended(ctx, x)
}

// ended takes back what a session leaves that nobody can confirm any more (RFC 6241 section 8.4.1).
func (s *Server) ended(ctx context.Context, x *session) {
	number := s.store.left(x.id)
	if number == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(api.As(ctx, x.who)), 10*time.Second)
	defer cancel()
	// An error is that it was settled meanwhile, or its deadline takes it back.
	_ = api.Do(ctx, s.dev, "NETCONF session "+x.idText(), "end of the session", fmt.Sprintf("version %d was not confirmed", number), func(ctx context.Context) error {
		_, err := s.dev.SettleZones(ctx, number, false)
		return err
	})
}

// list gives the sessions, by number.
func (s *Server) list() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := maps.Clone(s.sessions)
	maps.DeleteFunc(begun, func(_ uint32, x *session) bool { return x.pipe == nil })
	return slices.SortedFunc(maps.Values(begun), func(a, b *session) int { return cmp.Compare(a.id, b.id) })
}

// kill ends another session; false: there is none.
func (s *Server) kill(id uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[id]
	if x == nil || x.pipe == nil {
		return false
	}
	x.pipe.Close()
	return true
}
