package bfdd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/bfd"
)

// DefaultGrace is how long a process goes on without an owner: as long as a reflector
// keeps the records of a device that left.
const DefaultGrace = 2 * time.Minute

const (
	helloTimeout = 2 * time.Second // for the first line of an owner
	failureRetry = time.Second     // until sockets that failed are tried again
	logQueue     = 1024            // reports that wait for the log
)

// ServerConfig is what a Server is made from.
type ServerConfig struct {
	// Conn makes the network of the sessions; it is called again after a failure.
	Conn     func() (bfd.Conn, error)
	Manager  bfd.Config
	Priority bfd.Priority
	Grace    time.Duration // without an owner; 0: DefaultGrace
	Device   string        // id
	Build    string        // of the program
	Log      *slog.Logger  // nil: no log
	// Holders lists other processes on the port; nil: there are none.
	Holders func() ([]bfd.Holder, error)
	// monotonic replaces the clock that processes share, in tests.
	monotonic func() int64
}

// Server is the BFD process: a Runner, and the owner that tells it what to watch.
type Server struct {
	cfg     ServerConfig
	started time.Time
	since   int64           // the same on the clock that processes share
	ctx     context.Context // of Run
	stop    context.CancelCauseFunc
	log     chan bfd.Event

	mu      sync.Mutex
	runner  *bfd.Runner // nil while there is none
	failure string
	wanted  []bfd.Peer
	ignored []int                 // interfaces of host ports
	paths   map[bfd.Key]bfd.Event // by wanted session
	owner   *owner                // nil: none
	alone   *time.Timer           // ends the process
	owners  uint64
	lost    uint64 // changes that owners did not read
	errs    uint64
}

// errStop is why a Server ends as it should.
var errStop = errors.New("stop")

// NewServer makes a Server; nothing runs yet.
func NewServer(cfg ServerConfig) *Server {
	if cfg.Grace <= 0 {
		cfg.Grace = DefaultGrace
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.monotonic == nil {
		cfg.monotonic = monotonic
	}
	return &Server{cfg: cfg, started: time.Now(), since: cfg.monotonic(), log: make(chan bfd.Event, logQueue), paths: make(map[bfd.Key]bfd.Event)}
}

// Run serves owners that come to l until ctx ends, an owner says stop, or there was
// none for the grace time. Peers are told AdminDown then, so that none takes it for a
// fault. It closes l.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	ctx, s.stop = context.WithCancelCause(ctx)
	s.ctx = ctx
	defer s.stop(nil)
	s.mu.Lock()
	s.abandon()
	s.mu.Unlock()
	var tasks sync.WaitGroup
	tasks.Go(func() { s.work(ctx) })
	tasks.Go(func() { s.write(ctx) })
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			if conn != nil {
				conn.Close()
			}
			break
		}
		if err != nil {
			s.cfg.Log.Warn("BFD socket", "error", err)
			select {
			case <-time.After(100 * time.Millisecond): // out of descriptors, most likely
			case <-ctx.Done():
			}
			continue
		}
		tasks.Go(func() { s.serve(ctx, conn) })
	}
	tasks.Wait()
	s.cfg.Log.Info("BFD process ends", "cause", context.Cause(ctx))
	return nil
}

// work runs the sessions, again and again should their sockets fail.
func (s *Server) work(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.session(ctx)
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		s.runner, s.failure = nil, fmt.Sprint(err)
		s.mu.Unlock()
		s.cfg.Log.Warn("BFD does not work", "error", err)
		select {
		case <-time.After(failureRetry):
		case <-ctx.Done():
		}
	}
}

func (s *Server) session(ctx context.Context) error {
	conn, err := s.cfg.Conn()
	if err != nil {
		return err
	}
	manager := s.cfg.Manager
	manager.Seed, manager.Clock = rand.Uint64(), time.Duration(s.cfg.monotonic())
	r := bfd.NewRunner(bfd.RunnerConfig{Manager: manager, Sink: s.report, Priority: s.cfg.Priority, Log: s.cfg.Log}, conn)
	s.mu.Lock()
	s.runner = r
	r.Ignore(s.ignored)
	_ = r.Reconcile(s.carryOn()) // checked when it was wanted
	s.mu.Unlock()
	go func() {
		select {
		case <-r.Ready():
			s.mu.Lock()
			s.failure = ""
			s.mu.Unlock()
		case <-ctx.Done():
		}
	}()
	return r.Run(ctx)
}

// carryOn gives the wanted sessions with what was reported of them last.
func (s *Server) carryOn() []bfd.Peer {
	list := slices.Clone(s.wanted)
	for i := range list {
		if e, ok := s.paths[list[i].Key]; ok {
			list[i].Last = e.Report
		}
	}
	return list
}

// report takes what the Runner finds out. It is called in the Runner's thread.
func (s *Server) report(events []bfd.Event) {
	if s.ctx.Err() != nil {
		return // our own end is not a report of the paths
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		if _, wanted := s.paths[e.Key]; !wanted {
			continue // the AdminDown of a session that is not wanted any more
		}
		s.paths[e.Key] = e
		if s.owner != nil {
			s.lost += s.owner.changed(e)
		}
		select {
		case s.log <- e:
		default: // the log does not keep up: the owner counts
		}
	}
}

// write logs reports: the Runner's thread must not wait for a log.
func (s *Server) write(ctx context.Context) {
	for {
		select {
		case e := <-s.log:
			s.cfg.Log.Info("BFD path", "peer", e.Key.Peer, "report", e.Report, "diag", e.Diag, "remote_diag", e.RemoteDiag, "flaps", e.Flaps)
		case <-ctx.Done():
			return
		}
	}
}

// want brings a new set of sessions into force.
func (s *Server) want(list []bfd.Peer, ignore []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.paths
	s.wanted, s.paths = list, make(map[bfd.Key]bfd.Event, len(list))
	for _, p := range list {
		e, known := before[p.Key]
		if !known {
			e = bfd.Event{Key: p.Key, Report: p.Last}
		}
		s.paths[p.Key] = e
	}
	s.ignored = ignore
	if s.runner == nil {
		return nil // work hands them over
	}
	s.runner.Ignore(ignore)
	return s.runner.Reconcile(list)
}

// take makes o the owner and gives it the state of all paths.
func (s *Server) take(o *owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != nil {
		s.owner.leave("another owner has come")
	}
	if s.alone != nil {
		s.alone.Stop()
	}
	s.owner = o
	s.owners++
	for _, p := range s.wanted {
		o.changed(s.paths[p.Key])
	}
	s.cfg.Log.Info("BFD owner has come", "pid", o.pid, "sessions", len(s.wanted))
}

// release notes that an owner has gone.
func (s *Server) release(o *owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner == o {
		s.owner = nil
		s.abandon()
		s.cfg.Log.Info("BFD owner has gone", "pid", o.pid, "grace", s.cfg.Grace)
	}
}

// abandon starts the time after which the process ends.
func (s *Server) abandon() {
	s.alone = time.AfterFunc(s.cfg.Grace, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.owner == nil {
			s.stop(fmt.Errorf("no owner for %s", s.cfg.Grace))
		}
	})
}

// status asks the Runner for everything.
func (s *Server) status() ([]bfd.Status, Process) {
	s.mu.Lock()
	r := s.runner
	p := Process{PID: os.Getpid(), Build: s.cfg.Build, Started: s.started, Failure: s.failure, Owners: s.owners, Coalesced: s.lost, Errors: s.errs}
	s.mu.Unlock()
	if r == nil {
		return nil, p
	}
	select {
	case <-r.Ready():
	default:
		return nil, p
	}
	sessions, err := r.Status()
	if err == nil {
		p.BFD, p.Transport, err = r.Counters()
	}
	if err == nil {
		p.Stray, err = r.Stray()
	}
	if err == nil && s.cfg.Holders != nil {
		p.Holders, err = s.cfg.Holders()
	}
	if err != nil && p.Failure == "" {
		p.Failure = err.Error()
	}
	p.Priority = r.Granted()
	return sessions, p
}
