package bfd

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/internal/timerheap"
)

const (
	// DefaultMaxSessions is the default of Config.MaxSessions.
	DefaultMaxSessions = 16384 // as many as there are source ports (RFC 5881 section 4)
	// MinPause is the shortest time our owner may be late before it counts as a
	// pause: the shortest interval that devices agree on.
	MinPause = 3 * time.Millisecond
)

// Config of a Manager. The zero value is usable.
type Config struct {
	MaxSessions int           // wanted and lingering; 0: DefaultMaxSessions
	HoldUp      time.Duration // a failed path must work so long before it is told; 0: 1 s, negative: none
	MaxHoldUp   time.Duration // HoldUp doubles with each early flap up to this; 0: 60 s
	// RestartGrace is how long a session that a peer has taken down without a
	// diagnostic, as one does that was just started, may be without being Up again
	// before that is told as Down; 0: 5 s, negative: none.
	RestartGrace time.Duration
	SteadyTime   time.Duration // a flap so long after the one before is not early; 0: 60 s
	Seed         uint64        // of discriminators and jitter; give it randomness
	// Clock is what a clock of the machine says when the Manager is made that no process
	// sets and no restart of a process turns back: sequence numbers begin there where keys
	// are handed out.
	Clock time.Duration
}

func (c Config) withDefaults() Config {
	if c.MaxSessions <= 0 {
		c.MaxSessions = DefaultMaxSessions
	}
	if c.HoldUp == 0 {
		c.HoldUp = time.Second
	}
	c.HoldUp = max(c.HoldUp, 0)
	if c.MaxHoldUp <= 0 {
		c.MaxHoldUp = time.Minute
	}
	c.MaxHoldUp = max(c.MaxHoldUp, c.HoldUp)
	if c.RestartGrace == 0 {
		c.RestartGrace = 5 * time.Second
	}
	c.RestartGrace = max(c.RestartGrace, 0)
	if c.SteadyTime <= 0 {
		c.SteadyTime = time.Minute
	}
	return c
}

// Arrival is what is known of a received packet besides its payload.
type Arrival struct {
	Src, Dst  netip.Addr // zones are ignored
	Interface string     // where it came in; empty: unknown, which fits any session
	Multihop  bool       // it came to port 4784, not 3784
	TTL       uint8      // or hop limit
	At        time.Time  // when the kernel got it, with monotonic reading; zero: now
}

// Send is one packet to be sent. It is valid until the next call of the Manager.
type Send struct {
	Local     netip.Addr // zero: any
	Peer      netip.Addr
	Interface string // empty: any
	Multihop  bool   // to port 4784, not 3784; TTL 255 both ways
	Discr     uint32 // names the session: one source port for each (RFC 5881 section 4)

	n   uint8
	buf [maxPacket]byte
}

// Data is the UDP payload.
func (s *Send) Data() []byte { return s.buf[:s.n] }

// Manager holds the sessions of a device. It is not safe for concurrent use.
//
// Its owner, when it wakes, calls Wake, hands in with Receive all that has come,
// then Tick; after these and any other call it sends what Sends gives and tells
// what Events gives. It sleeps until Next at the latest.
type Manager struct {
	cfg     Config
	base    time.Time
	clock   instant // the latest moment we were told of
	paused  instant // end of the last pause: packets that waited in a queue count from here
	pause   instant // its length
	byDiscr map[uint32]*session
	byKey   map[Key]*session // under Key.index
	timers  timerheap.Heap[session, *session]
	gen     uint64

	rng    random
	discrs discriminators

	events   []Event
	sends    []Send
	gone     []uint32
	counters Counters
	stray    Stray
}

// NewManager makes a Manager without sessions.
func NewManager(cfg Config, now time.Time) *Manager {
	m := &Manager{cfg: cfg.withDefaults(), byDiscr: make(map[uint32]*session), byKey: make(map[Key]*session)}
	m.rng.x = cfg.Seed
	m.discrs.key = m.rng.u64()
	m.base = now.Add(-time.Nanosecond) // so that no moment is zero, which is never
	m.clock = m.instant(now)
	return m
}

// Counters gives a copy of the counters.
func (m *Manager) Counters() Counters { return m.counters }

// Len gives the number of sessions, those included that linger in AdminDown because
// they are no longer wanted.
func (m *Manager) Len() int { return len(m.byDiscr) }

// Events gives what was told since it was last asked, in order. The slice is valid
// until the next call of the Manager.
func (m *Manager) Events() []Event {
	out := m.events
	m.events = m.events[:0]
	return out
}

// Sends gives the packets to be sent, in order. The slice is valid until the next
// call of the Manager.
func (m *Manager) Sends() []Send {
	out := m.sends
	m.sends = m.sends[:0]
	return out
}

// Gone gives the discriminators of sessions that ended since it was last asked, so
// that their source ports can be freed.
func (m *Manager) Gone() []uint32 {
	out := m.gone
	m.gone = m.gone[:0]
	return out
}

// farOff is later than any timer.
const farOff = instant(1) << 62

// Next is when Tick has something to do; zero: not before something else happens.
func (m *Manager) Next() time.Time {
	s := m.first()
	if s == nil || s.due == farOff {
		return time.Time{}
	}
	return m.time(s.due)
}

// Tick lets all timers fire that are due, and sends along what is nearly due. Everything that was
// received before now must have been handed in.
func (m *Manager) Tick(now time.Time) {
	t := m.advance(now)
	for s := m.first(); s != nil; s = m.first() {
		switch {
		case s.due <= t:
			m.fire(s, t)
		case s.mayGoAlong(t):
			s.transmit(false, t)
		default:
			return
		}
	}
}

// fire handles the due timers of one session. Each is put off or cleared, so that
// Tick ends.
func (m *Manager) fire(s *session, now instant) {
	due := func(t instant) bool { return t != never && t <= now }
	if due(s.lingers) {
		m.drop(s)
		return
	}
	if due(s.detectAt) {
		s.expire(now)
	}
	if due(s.report.pending) {
		s.report.pending = never
		m.tell(s, ReportUp, now)
	}
	if due(s.report.suspect) {
		m.condemn(s, now)
	}
	if due(s.txAt) {
		s.transmitDue(now)
	}
	m.arm(s)
}

// Wake tells that the owner runs at now, before it hands in what was received. When
// that is later than it was due by MinPause or more, the process was stopped, swapped
// or starved: packets may have been lost meanwhile, so silence proves nothing. Each
// session whose interval is shorter than the pause gets one detection time to be
// heard again.
func (m *Manager) Wake(now time.Time) {
	planned := m.clock
	if s := m.first(); s != nil && s.due != farOff {
		planned = max(planned, s.due)
	} else {
		planned = farOff
	}
	t := m.advance(now)
	if late := t - planned; late >= instant(MinPause) {
		m.resume(late, t)
	}
}

// Paused tells that this process was not run, or the machine as a whole, from some
// moment until another one, for an owner that knows better than Wake.
func (m *Manager) Paused(from, until time.Time) {
	t := m.advance(until)
	m.resume(t-m.instant(from), t)
}

func (m *Manager) resume(pause, now instant) {
	m.counters.Pauses++
	m.counters.PauseMax = max(m.counters.PauseMax, time.Duration(pause))
	m.paused, m.pause = now, pause
	for _, s := range m.byDiscr { // the order does not show
		if s.graceFor(pause, now) {
			m.counters.Graced++
			m.arm(s)
		}
	}
}

// LinkDown tells that an interface has lost its carrier: its single-hop sessions are
// Down at once, with diagnostic Path Down.
func (m *Manager) LinkDown(ifname string, now time.Time) {
	t := m.advance(now)
	for _, s := range m.onInterface(ifname) {
		if s.pathDown(t) {
			m.counters.PathDown++
		}
	}
}

// LinkUp tells that the carrier is back: its sessions speak at once instead of
// within a second.
func (m *Manager) LinkUp(ifname string, now time.Time) {
	t := m.advance(now)
	for _, s := range m.onInterface(ifname) {
		if s.state == StateDown && s.lingers == never {
			s.urgent = true
			s.flush(t)
		}
	}
}
