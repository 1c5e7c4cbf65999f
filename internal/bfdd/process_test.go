package bfdd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/testbed/wires"
)

// site is one device: its BFD process, which may be killed, and its daemon.
type site struct {
	t     *testing.T
	net   *bfd.MemoryNet
	addr  netip.Addr
	build string

	mu       sync.Mutex
	listener *wires.Net // its only address
	ended    chan struct{}
	stop     context.CancelFunc
	silent   *atomic.Bool // of the present process: what it sends is lost
	starts   int
	starting time.Duration // that a process needs to start
	broken   bool          // processes cannot be started

	ignored atomic.Pointer[[]int] // what the process was told last
	client  *Client
	halt    context.CancelFunc
	gone    chan struct{}
	reports []string
}

func newSite(t *testing.T, n *bfd.MemoryNet, addr string) *site {
	s := &site{t: t, net: n, addr: netip.MustParseAddr(addr), build: "one"}
	t.Cleanup(func() { s.killDaemon(); s.kill(); synctest.Wait() })
	return s
}

// mute is a Conn that can be made to lose what it sends: a process that is killed says
// no AdminDown.
type mute struct {
	bfd.Conn
	silent  *atomic.Bool
	ignored *atomic.Pointer[[]int]
}

func (m mute) Ignore(interfaces []int) error {
	m.ignored.Store(&interfaces)
	return nil
}

func (m mute) Send(s *bfd.Send) error {
	if m.silent.Load() {
		return nil
	}
	return m.Conn.Send(s)
}

// run starts the BFD process.
func (s *site) run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return errors.New("no such file")
	}
	s.starts++
	silent := new(atomic.Bool)
	srv := NewServer(ServerConfig{Build: s.build, Device: s.device(), monotonic: func() int64 { return time.Now().UnixNano() },
		Holders: func() ([]bfd.Holder, error) {
			return []bfd.Holder{{Address: netip.IPv4Unspecified(), Owner: "bfdd (pid 7)"}}, nil
		},
		Conn: func() (bfd.Conn, error) { return mute{s.net.Conn(s.addr), silent, &s.ignored}, nil }})
	l := new(wires.Net)
	ctx, stop := context.WithCancel(context.Background())
	ended, before, former := make(chan struct{}), s.ended, s.stop
	if former != nil { // one that has ended already, or that a later one waits for
		last := stop
		stop = func() { former(); last() }
	}
	s.stop, s.silent, s.ended = stop, silent, ended
	go func() {
		defer close(ended)
		if before != nil { // the lock
			<-before
		}
		<-time.After(s.starting)
		in, _ := l.Listen(ctx, netip.AddrPort{})
		s.mu.Lock()
		s.listener = l
		s.mu.Unlock()
		_ = srv.Run(ctx, in)
		s.mu.Lock()
		if s.listener == l {
			s.listener = nil
		}
		s.mu.Unlock()
	}()
	return nil
}

// kill ends the BFD process without a word to its peers.
func (s *site) kill() {
	s.mu.Lock()
	stop, silent, ended := s.stop, s.silent, s.ended
	s.mu.Unlock()
	if stop == nil {
		return
	}
	silent.Store(true)
	stop()
	<-ended
}

// terminate is SIGTERM for the BFD process.
func (s *site) terminate() {
	s.mu.Lock()
	stop := s.stop
	s.mu.Unlock()
	stop()
}

// daemon starts the owner.
func (s *site) daemon(peers ...*site) {
	s.client = NewClient(ClientConfig{Build: s.build, Device: s.device(), Start: s.run, monotonic: func() int64 { return time.Now().UnixNano() },
		Dial: func(ctx context.Context) (net.Conn, error) {
			s.mu.Lock()
			l := s.listener
			s.mu.Unlock()
			if l == nil {
				return nil, errors.New("connection refused")
			}
			return l.Dial(ctx, netip.AddrPort{})
		},
		Sink: func(e bfd.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if age := time.Since(e.At); e.Report != bfd.ReportUnknown && (e.At.IsZero() || age < 0) {
				s.t.Errorf("report of %v, %v ago", e.At, age)
			}
			s.reports = append(s.reports, e.Report.String())
		}})
	ctx, halt := context.WithCancel(context.Background())
	s.halt, s.gone = halt, make(chan struct{})
	go func() { defer close(s.gone); _ = s.client.Run(ctx) }()
	if len(peers) > 0 {
		s.watch(peers...)
	}
}

func (s *site) watch(peers ...*site) {
	var list []bfd.Peer
	for _, p := range peers {
		list = append(list, s.peer(p.addr))
	}
	s.client.Watch(list)
}

func (s *site) peer(a netip.Addr) bfd.Peer {
	return bfd.Peer{Key: bfd.Key{Peer: a, Local: s.addr, Multihop: true}, Timers: bfd.DefaultTimers()}
}

// device is the id of the device; a test may change the address of a site.
func (s *site) device() string { return s.addr.String() }

// killDaemon ends the owner without a word.
func (s *site) killDaemon() {
	if s.halt != nil {
		s.halt()
		<-s.gone
		s.halt = nil
	}
}

// expect compares what was reported since the last call.
func (s *site) expect(step string, want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.reports, want) {
		s.t.Errorf("%s: device %s: reports %v, want %v", step, s.addr, s.reports, want)
	}
	s.reports = nil
}

func wait(d time.Duration) {
	<-time.After(d) // fake time
	synctest.Wait()
}

// pair is two devices whose session is up.
func pair(t *testing.T) (a, b *site) {
	n := bfd.NewMemoryNet()
	a, b = newSite(t, n, "10.0.0.1"), newSite(t, n, "10.0.0.2")
	a.daemon(b)
	b.daemon(a)
	wait(5 * time.Second)
	a.expect("first", "up")
	b.expect("first", "up")
	return a, b
}

// The process knows where hosts are, each one that is started and when it changes.
func TestTheProcessIsToldTheHostPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		told := func() []int {
			wait(5 * time.Second)
			if p := a.ignored.Load(); p != nil {
				return *p
			}
			return nil
		}
		a.client.Ignore([]int{3, 4})
		if got := told(); !slices.Equal(got, []int{3, 4}) {
			t.Errorf("told %v", got)
		}
		a.client.Ignore([]int{4})
		if got := told(); !slices.Equal(got, []int{4}) {
			t.Errorf("changed: %v", got)
		}
		a.ignored.Store(nil)
		a.kill()
		if got := told(); !slices.Equal(got, []int{4}) {
			t.Errorf("a new process: %v", got)
		}
		b.expect("a process that was started again is no fault")
	})
}

func TestTheDaemonMayBeKilledAndStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		for range 3 {
			a.killDaemon()
			wait(time.Minute)
			b.expect("while the daemon is away")
			a.daemon() // it does not know yet what to watch
			wait(time.Second)
			a.expect("it finds the present state", "up")
			wait(time.Minute)
			a.watch(b)
			wait(time.Minute)
			a.expect("it says again what it wants")
			b.expect("it says again what it wants")
		}
		if a.starts != 1 {
			t.Errorf("%d processes were started", a.starts)
		}
	})
}

func TestAProcessWithoutADaemonSaysAdminDownAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		a.killDaemon()
		wait(DefaultGrace - time.Second)
		b.expect("within the grace time")
		wait(2 * time.Second)
		b.expect("after it", "admin-down")
		select {
		case <-a.ended:
		default:
			t.Error("the process has not ended")
		}
	})
}

func TestAProcessThatIsStoppedIsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		a.terminate()
		wait(10 * time.Second)
		b.expect("the process was stopped and started again", "admin-down", "up")
		a.expect("the process was stopped and started again")
		if c := a.client.Counters(); c.Lost != 1 || c.Starts != 2 {
			t.Errorf("counters %+v", c)
		}
	})
}

func TestAProcessThatDiesIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		a.starting = 50 * time.Millisecond
		a.kill()
		wait(30 * time.Second)
		b.expect("the process was killed")
		a.expect("the process was killed")
		if c := a.client.Counters(); c.Lost != 1 || c.Starts != 2 {
			t.Errorf("counters %+v", c)
		}
	})
}

// What fails while no process runs is found out by the next one.
func TestAPathThatFailsWhileNoProcessRunsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		a.starting = 50 * time.Millisecond
		a.net.Drop(func(_, _ netip.Addr, _ []byte) bool { return true })
		a.kill()
		wait(10 * time.Second)
		b.expect("the path fails", "down")
		a.expect("the path fails", "down")
		a.net.Drop(nil)
		wait(10 * time.Second)
		b.expect("the path works", "up")
		a.expect("the path works", "up")
	})
}

func TestAProcessOfAnotherBuildIsReplacedWithoutAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		a.killDaemon()
		a.build = "two"
		a.daemon(b)
		wait(10 * time.Second)
		b.expect("upgrade", "admin-down", "up")
		a.expect("upgrade", "up")
		if c := a.client.Counters(); c.Replaced != 1 || a.starts != 2 {
			t.Errorf("counters %+v, %d starts", c, a.starts)
		}
	})
}

// The program was replaced on disk while the daemon runs, and somebody started the
// process anew.
func TestANewerProcessOfAnotherBuildIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		a.build = "two" // of processes to come; the daemon is "one"
		a.terminate()
		wait(10 * time.Second)
		b.expect("new process", "admin-down", "up")
		if c := a.client.Counters(); c.Replaced != 0 || a.starts != 2 || !a.client.Info().Connected {
			t.Errorf("counters %+v, %d starts", c, a.starts)
		}
	})
}

// Two daemons of one machine have the same socket by mistake: the later one gets it,
// the other one says why it has no paths, and they do not fight.
func TestAProcessServesOneDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		first, halt, gone := a.client, a.halt, a.gone
		a.addr = netip.MustParseAddr("10.0.0.3")
		a.daemon(b)
		wait(time.Minute)
		if i := first.Info(); i.Connected || !strings.Contains(i.LastError, "another device") {
			t.Errorf("first %+v", i)
		}
		if c := a.client.Counters(); !a.client.Info().Connected || c.Replaced != 1 || a.starts > 3 {
			t.Errorf("second %+v, %d starts", c, a.starts)
		}
		b.expect("the process of its peer was stopped", "admin-down")
		halt()
		<-gone
	})
}

func TestAnotherOwnerReplacesTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		first := a.client
		firstHalt, firstGone := a.halt, a.gone
		a.daemon(b)
		wait(time.Second)
		if first.Info().Connected || first.Counters().Displaced != 1 || !a.client.Info().Connected {
			t.Errorf("first %+v, second %+v", first.Info(), a.client.Info())
		}
		firstHalt()
		<-firstGone
		wait(10 * time.Second)
		b.expect("two owners")
	})
}

func TestAProcessThatCannotBeStartedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := bfd.NewMemoryNet()
		a, b := newSite(t, n, "10.0.0.1"), newSite(t, n, "10.0.0.2")
		b.daemon(a)
		a.broken = true
		a.daemon(b)
		wait(time.Minute)
		c := a.client.Counters()
		if c.Starts != 0 || c.StartErrors < 5 || c.StartErrors > 15 || a.client.Info().Connected {
			t.Errorf("counters %+v, info %+v", c, a.client.Info())
		}
		a.mu.Lock()
		a.broken = false
		a.mu.Unlock()
		wait(20 * time.Second)
		a.expect("it can be started", "up")
	})
}

func TestNoProcessIsStartedWhereNothingIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newSite(t, bfd.NewMemoryNet(), "10.0.0.1")
		a.daemon()
		wait(time.Hour)
		a.client.Watch(nil)
		wait(time.Hour)
		if a.starts != 0 {
			t.Errorf("%d processes were started", a.starts)
		}
	})
}

func TestStatusOfManySessionsIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t)
		var list []bfd.Peer
		for i := range 300 {
			list = append(list, a.peer(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})))
		}
		list = append(list, a.peer(netip.MustParseAddr("10.0.0.2")))
		list[7].Auth = &bfd.Auth{Type: bfd.AuthMeticulousSHA1, Keys: []bfd.AuthKey{{ID: 3, Secret: []byte("a secret")}}}
		a.client.Watch(list)
		wait(time.Second)
		sessions, p, err := a.client.Status(t.Context())
		if err != nil || len(sessions) != 301 || p.Build != "one" || p.BFD.PacketsIn == 0 || p.Owners != 1 || len(p.Holders) != 1 || p.Holders[0].Owner != "bfdd (pid 7)" || p.Stray.From.IsValid() {
			t.Fatalf("%d sessions, process %+v, %v", len(sessions), p, err)
		}
		if s := sessions[0]; s.State != bfd.StateUp || s.Report != bfd.ReportUp || s.Peer != netip.MustParseAddr("10.0.0.2") || s.DetectTime != 300*time.Millisecond || s.PacketsIn == 0 {
			t.Errorf("session %+v", s)
		}
		if s := sessions[8]; s.Auth != bfd.AuthMeticulousSHA1 || s.State != bfd.StateDown {
			t.Errorf("session %+v", s)
		}
	})
}

func TestRefusedSessionsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		bad := a.peer(netip.MustParseAddr("10.0.0.9"))
		bad.Timers.MinTx = time.Nanosecond
		a.client.Watch([]bfd.Peer{a.peer(b.addr), bad})
		wait(time.Second)
		if i := a.client.Info(); i.Refused == "" || !i.Connected {
			t.Errorf("info %+v", i)
		}
		b.expect("the others are not concerned")
	})
}

// An owner that does not run for a while finds the latest state.
func TestASlowOwnerGetsTheLatestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		release := make(chan struct{})
		var got []string
		a.killDaemon()
		c := NewClient(ClientConfig{Build: "one", Device: a.device(), Dial: func(ctx context.Context) (net.Conn, error) { return a.listener.Dial(ctx, netip.AddrPort{}) },
			Sink: func(e bfd.Event) { <-release; got = append(got, fmt.Sprint(e.Report, e.Flaps)) }})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = c.Run(ctx) }()
		for range 3 {
			wait(2 * time.Second)
			a.net.Drop(func(_, _ netip.Addr, _ []byte) bool { return true })
			wait(2 * time.Second)
			a.net.Drop(nil)
			wait(20 * time.Second)
		}
		close(release)
		wait(time.Second)
		stop()
		<-done
		if n := len(got); n < 2 || n > 4 || got[0] != "up 0" || got[n-1] != "up 3" {
			t.Errorf("reports %v", got)
		}
		b.reports = nil
	})
}
