package bfdd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/openinof/inof/bfd"
)

// ClientConfig is what a Client is made from.
type ClientConfig struct {
	// Dial connects to the process.
	Dial func(ctx context.Context) (net.Conn, error)
	// Start starts a process that outlives this one; nil: somebody else does.
	Start func() error
	// Patience is how long somebody else is given to start one before Start is called.
	Patience time.Duration
	Device   string // id: an older process of another device is replaced
	Build    string // of the program: an older process of another build is replaced
	// Sink takes reports, in order; after each connection those of all sessions. It may
	// wait, and then gets the latest of each.
	Sink func(bfd.Event)
	// Tell takes what operators should know of the process, in words; nil: nobody.
	Tell func(text string)

	monotonic func() int64
}

// ClientCounters count what becomes of the process.
type ClientCounters struct {
	Connects    uint64 `json:"connects"`
	Lost        uint64 `json:"lost"`   // connections that ended without anybody wanting it
	Starts      uint64 `json:"starts"` // processes started
	StartErrors uint64 `json:"start_errors"`
	Replaced    uint64 `json:"replaced"`  // processes of another build that were told to stop
	Displaced   uint64 `json:"displaced"` // times another owner took the process over
	Reports     uint64 `json:"reports"`
	Errors      uint64 `json:"protocol_errors"`
	Refused     uint64 `json:"refused"` // sets of sessions of which something was refused
}

// Info is what is known of the process without asking it.
type Info struct {
	Needed    bool // there are paths to watch
	Connected bool
	PID       int
	Since     time.Time // of Connected or its opposite
	LastError string    // why there is no connection
	Refused   string    // what of the last set was refused
	LastLost  time.Time // when a connection ended without anybody wanting it; zero: never
}

// Client keeps the daemon connected with its BFD process and starts one where there
// is none. What is wanted is told again to each new process, together with what was
// reported of each path last, so that it goes on from there.
type Client struct {
	cfg   ClientConfig
	began int64 // on the clock that processes share
	wake  chan struct{}

	mu       sync.Mutex
	wanted   []bfd.Peer
	ignore   []int
	seq      uint64 // of wanted
	last     map[bfd.Key]bfd.Report
	info     Info
	counters ClientCounters
	conn     *link // nil: none
	asked    uint64
}

// Times of the Client.
const (
	dialFirst  = 5 * time.Millisecond // distances of attempts to connect
	dialMost   = 500 * time.Millisecond
	startFirst = 250 * time.Millisecond // distances of attempts to start a process
	startMost  = 10 * time.Second
	steady     = 10 * time.Second // a connection of this length ends a row of failures
	leaveTime  = 2 * time.Second  // for a process to make room
	displaced  = 5 * time.Second  // until an owner that was replaced tries again
)

// Errors of a Client.
var (
	ErrNoProcess = errors.New("no BFD process is connected")
	errReplaced  = errors.New("the BFD process was of another build or device and was told to stop")
	errNewer     = errors.New("the BFD process is newer than this one, and has another protocol or belongs to another device: start this one again, or give each device a bfd.socket of its own")
	errDisplaced = errors.New("another owner has taken the BFD process over")
)

// NewClient makes a Client; nothing is connected before Run.
func NewClient(cfg ClientConfig) *Client {
	if cfg.Tell == nil {
		cfg.Tell = func(string) {}
	}
	if cfg.monotonic == nil {
		cfg.monotonic = monotonic
	}
	return &Client{cfg: cfg, began: cfg.monotonic(), wake: make(chan struct{}, 1), last: make(map[bfd.Key]bfd.Report), info: Info{Since: time.Now()}}
}

// String names the task.
func (c *Client) String() string { return "BFD process" }

// Watch says which sessions there are to be: these and no others. It never waits.
func (c *Client) Watch(peers []bfd.Peer) {
	c.mu.Lock()
	c.wanted = slices.Clone(peers)
	c.seq++
	c.info.Needed = len(peers) > 0
	keep := make(map[bfd.Key]bfd.Report, len(peers))
	for _, p := range peers {
		if r, ok := c.last[p.Key]; ok {
			keep[p.Key] = r
		}
	}
	c.last = keep
	c.tell()
}

// Ignore says by which interfaces, by index, hosts are connected: what comes from there
// is no BFD. The process is told with what there is to watch, and again when it changes.
func (c *Client) Ignore(interfaces []int) {
	c.mu.Lock()
	c.ignore = slices.Clone(interfaces)
	if c.seq == 0 { // nothing is wanted yet: the process goes on as it is
		c.mu.Unlock()
		return
	}
	c.seq++
	c.tell()
}

// tell wakes who tells the process. C.mu is held, and let go.
func (c *Client) tell() {
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		conn.signal()
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Info may be called by any goroutine.
func (c *Client) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

// Counters may be called by any goroutine.
func (c *Client) Counters() ClientCounters {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counters
}

// Run keeps the connection until ctx ends. The process goes on then: a daemon that is
// started again finds it as it was.
func (c *Client) Run(ctx context.Context) error {
	p := pace{dial: dialFirst, start: startFirst}
	for ctx.Err() == nil {
		conn, err := c.cfg.Dial(ctx)
		if err != nil {
			c.absent(err)
			c.retry(ctx, &p)
			continue
		}
		p.dial, p.missing = dialFirst, time.Time{}
		begun := time.Now()
		err = c.attend(ctx, conn)
		conn.Close()
		if ctx.Err() != nil {
			break
		}
		if time.Since(begun) >= steady {
			p = pace{dial: dialFirst, start: startFirst}
		}
		c.ended(err)
		if errors.Is(err, errDisplaced) || errors.Is(err, errNewer) {
			pause(ctx, nil, displaced)
		} else if errors.Is(err, ErrMessage) || errors.Is(err, ErrLine) {
			pause(ctx, nil, dialMost)
		}
	}
	return nil
}

// pace is how fast a Client tries.
type pace struct {
	dial, start time.Duration // next distances
	missing     time.Time     // since when nobody answers
	notBefore   time.Time     // the next start
}

// retry waits for a while, after having started a process where one is needed.
func (c *Client) retry(ctx context.Context, p *pace) {
	now := time.Now()
	if p.missing.IsZero() {
		p.missing = now
	}
	needed := c.Info().Needed
	if needed && c.cfg.Start != nil && now.Sub(p.missing) >= c.cfg.Patience && !now.Before(p.notBefore) {
		p.notBefore, p.start = now.Add(p.start), min(2*p.start, startMost)
		p.dial = dialFirst
		c.start()
	}
	if !needed { // whoever needs it wakes us
		p.dial = dialMost
	}
	pause(ctx, c.wake, p.dial)
	p.dial = min(2*p.dial, dialMost)
}

func (c *Client) start() {
	err := c.cfg.Start()
	c.mu.Lock()
	if err != nil {
		c.counters.StartErrors++
	} else {
		c.counters.Starts++
	}
	c.mu.Unlock()
	if err != nil {
		c.cfg.Tell(fmt.Sprintf("BFD process cannot be started: %v: paths to other devices are not watched", err))
	} else {
		c.cfg.Tell("BFD process is started")
	}
}

// pause waits for d, for less when wake has something, or until ctx ends.
func pause(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-t.C:
	}
}

// absent notes that nobody answers.
func (c *Client) absent(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.info.LastError = err.Error()
}

// ended counts and tells why a connection is over.
func (c *Client) ended(err error) {
	c.mu.Lock()
	was := c.info
	c.info.Connected, c.info.Since, c.info.PID, c.info.LastError = false, time.Now(), 0, err.Error()
	c.conn = nil
	switch {
	case errors.Is(err, errReplaced):
		c.counters.Replaced++
	case errors.Is(err, errDisplaced):
		c.counters.Displaced++
	case errors.Is(err, ErrLine) || errors.Is(err, ErrMessage):
		c.counters.Errors++
	case was.Connected:
		c.counters.Lost++
		c.info.LastLost = time.Now()
	}
	c.mu.Unlock()
	switch {
	case errors.Is(err, errReplaced), errors.Is(err, errNewer):
		c.cfg.Tell(err.Error())
	case was.Connected:
		c.cfg.Tell(fmt.Sprintf("connection with the BFD process (pid %d) is lost: %v", was.PID, err))
	}
}

// attend serves one connection until it ends.
func (c *Client) attend(ctx context.Context, conn net.Conn) error {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	if err := send(conn, message{Hello: &hello{Protocol: Protocol, Build: c.cfg.Build, PID: os.Getpid(), Started: c.began, Device: c.cfg.Device}}); err != nil {
		return err
	}
	in := newLines(conn)
	m, err := in.next()
	if err != nil {
		return err
	}
	h := m.Hello
	switch older := h.Started < c.began; {
	case older && (h.Protocol != Protocol || h.Build != c.cfg.Build || h.Device != c.cfg.Device):
		return c.replace(conn, in, h)
	case h.Protocol != Protocol, h.Device != c.cfg.Device:
		return fmt.Errorf("%w (pid %d, protocol %d, build %q, device %s)", errNewer, h.PID, h.Protocol, h.Build, h.Device)
	}
	_ = conn.SetDeadline(time.Time{})
	l := newLink(c, conn)
	c.mu.Lock()
	c.counters.Connects++
	c.conn = l
	c.info.Connected, c.info.Since, c.info.PID, c.info.LastError = true, time.Now(), h.PID, ""
	c.mu.Unlock()
	var writer sync.WaitGroup
	writer.Go(l.write)
	l.signal()
	err = l.read(in)
	l.close()
	writer.Wait()
	return err
}

// replace has a process of another build make room. Its peers are told AdminDown,
// which is no fault.
func (c *Client) replace(conn net.Conn, in *lines, h *hello) error {
	_ = conn.SetDeadline(time.Now().Add(leaveTime))
	if err := send(conn, message{Stop: &stop{Why: fmt.Sprintf("replaced by build %s", c.cfg.Build)}}); err != nil {
		return err
	}
	for {
		if _, err := in.next(); err != nil { // until it ends
			return fmt.Errorf("%w (pid %d, protocol %d, build %q, device %s)", errReplaced, h.PID, h.Protocol, h.Build, h.Device)
		}
	}
}
