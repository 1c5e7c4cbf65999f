package link

import (
	"cmp"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/openinof/inof/inof/wire"
)

// Pace is how fast a device may send records; zero values mean the defaults. A sync or a
// change of many hosts is a burst; what goes on and on is not taken faster than this, but for
// losses: they may have lossShare of both beside it.
type Pace struct {
	PerSecond int // records a second, DefaultRecordsPerSecond
	Burst     int // records beyond that, in burstTime, DefaultRecordsBurst
}

const (
	DefaultRecordsPerSecond = 2000
	DefaultRecordsBurst     = 20_000
	// lossShare is what a device that rests may still say, up to its last loss: one part in so
	// many of its pace and of its burst.
	lossShare = 4
	// A burst takes burstTime, but for the first of so many parts of it: what others say meanwhile
	// does not find the owner of the state busy with one device.
	burstTime  = 4 * time.Second
	burstParts = 40
	// A keepalive asks for an answer, and no device has a reason to send more of them than
	// four times the fastest rate.
	keepalivesPerSecond = 4 * int(time.Second/wire.MinKeepalive)
	keepalivesBurst     = 100
	// A session that begins costs a handshake, a full sync perhaps, and what of it has been read is
	// taken when it ends. A dialer that waits as it should (Backoff) needs no more of them.
	sessionsBurst = 20
	sessionsEvery = 2 * time.Second
)

func (p Pace) withDefaults() Pace {
	return Pace{cmp.Or(p.PerSecond, DefaultRecordsPerSecond), cmp.Or(p.Burst, DefaultRecordsBurst)}
}

// pacer slows one device down, whatever its session. A nil one slows nobody down.
type pacer struct {
	*rate.Limiter
	burst      *rate.Limiter // while it has not used up a burst
	losses     *rate.Limiter // taken for a loss while it was to rest
	keepalives *rate.Limiter
	sessions   *rate.Limiter

	mu        sync.Mutex
	since     time.Time     // it is held up without a pause; zero: it is not
	last      time.Time     // end of the last time it was held up
	held      time.Duration // all in all
	rests     time.Time     // until when what it has said waits: it was too much
	bursts    time.Time     // until when what it has said waits that is within a burst
	lossRests time.Time     // until when its losses do
	spared    bool          // what was taken last was while it was to rest
	refused   bool          // its last session, since there were too many
	failing   failing
}

func newPacer(p Pace) *pacer {
	return &pacer{
		Limiter:    rate.NewLimiter(rate.Limit(p.PerSecond), p.Burst),
		burst:      rate.NewLimiter(burstRate(p), burstAtOnce(p.Burst)),
		losses:     rate.NewLimiter(rate.Limit(p.PerSecond)/lossShare, p.Burst/lossShare),
		keepalives: rate.NewLimiter(rate.Limit(keepalivesPerSecond), keepalivesBurst),
		sessions:   rate.NewLimiter(rate.Every(sessionsEvery), sessionsBurst),
	}
}

// begins counts a session that begins, unless there were too many; first says that it is the first
// of those that are refused in a row.
func (p *pacer) begins(now time.Time) (first bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions.AllowN(now, 1) {
		p.refused = false
		return false, nil
	}
	first, p.refused = !p.refused, true
	return first, &wire.ProtocolError{Code: wire.CodeLimit, Where: "sessions of one device", Detail: fmt.Sprintf("%d began in a row; one more each %v", sessionsBurst, sessionsEvery)}
}

func (p *pacer) set(pace Pace) {
	p.SetLimit(rate.Limit(pace.PerSecond))
	p.SetBurst(pace.Burst)
	p.burst.SetLimit(burstRate(pace))
	p.burst.SetBurst(burstAtOnce(pace.Burst))
	p.losses.SetLimit(rate.Limit(pace.PerSecond) / lossShare)
	p.losses.SetBurst(pace.Burst / lossShare)
}

// heldGap is how long a device must not have been held up to count as slowed down anew.
const heldGap = 5 * time.Second

// note keeps that the device was held up.
func (p *pacer) note(from, to time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() || from.Sub(p.last) > heldGap {
		p.since = from
	}
	p.last = to
	p.held += to.Sub(from)
}

// info tells since when the device is held up, zero: it is not, and for how long it was
// in all.
func (p *pacer) info(now time.Time) (since time.Time, held time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.last) <= heldGap {
		since = p.since
	}
	return since, p.held
}

// pacers are those of all devices of a server. A device that comes back finds its own.
type pacers struct {
	mu    sync.Mutex
	pace  Pace
	most  int
	by    map[netip.Addr]*pacer
	inUse func(dev netip.Addr) bool
}

func newPacers(p Pace, most int, inUse func(netip.Addr) bool) *pacers {
	return &pacers{pace: p.withDefaults(), most: most, by: map[netip.Addr]*pacer{}, inUse: inUse}
}

// of gives the pacer of a device.
func (ps *pacers) of(dev netip.Addr) *pacer {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.by[dev]
	if p == nil {
		if len(ps.by) >= ps.most {
			for id := range ps.by { // those without a session
				if !ps.inUse(id) {
					delete(ps.by, id)
				}
			}
		}
		p = newPacer(ps.pace)
		ps.by[dev] = p
	}
	return p
}

// burstRate is how many records of a burst are taken a second.
func burstRate(p Pace) rate.Limit { return rate.Limit(float64(p.Burst) / burstTime.Seconds()) }

// burstAtOnce is how many records of a burst are taken at once.
func burstAtOnce(burst int) int { return max(2*pieceRecords, burst/burstParts) }

// set changes the pace of all devices.
func (ps *pacers) set(p Pace) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.pace = p.withDefaults()
	for _, p := range ps.by {
		p.set(ps.pace)
	}
}

// slowest is how long a wait may be until the session looks whether it is to end.
const slowest = 50 * time.Millisecond

// slowDown waits until the device may send a keepalive, or what nobody knows: these are answered
// at once, or passed over, and never come to the Inbox, which holds back the rest.
func (c *conn) slowDown() error {
	if c.pace == nil {
		return nil
	}
	began := time.Now()
	due := c.pace.keepalives.ReserveN(began, 1).DelayFrom(began)
	if due <= 0 {
		return nil
	}
	for left := due; left > 0; left = due - time.Since(began) {
		if c.out.stopping.Load() {
			return ErrClosed
		}
		time.Sleep(min(left, slowest))
	}
	c.pace.note(began, time.Now())
	return nil
}

// workRecords is how many records that a message makes us look at, in tables or to tell them to
// its sender, weigh as much as one that it has.
const workRecords = 16

// Charge counts what a message of the peer made us do beside its own weight: who leaves a large
// zone and comes back without end makes work too.
func (p *Peer) Charge(work int) {
	if n := work / workRecords; n > 0 {
		p.c.pace.charge(n, time.Now())
	}
}

// take counts so many records of a message that is taken now, or of a piece, and reports whether
// the device was to rest.
func (p *pacer) take(n int, now time.Time) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	p.spared = p.rests.After(now)
	spared := p.spared
	p.mu.Unlock()
	p.charge(n, now)
	return spared
}

// charge counts so many records more. What is taken although the device was to rest is on the
// account of its losses too.
func (p *pacer) charge(n int, now time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spared {
		p.lossRests = reserve(p.losses, n, now)
	}
	p.rests = reserve(p.Limiter, n, now)
	if p.bursts = reserve(p.burst, n, now); p.bursts.After(p.rests) {
		p.rests = p.bursts
	}
}

// reserve takes n from a limiter, at most its burst, and gives when that is made up for; a time
// that is over, if it is.
func reserve(l *rate.Limiter, n int, now time.Time) time.Time {
	return now.Add(l.ReserveN(now, min(n, l.Burst())).DelayFrom(now))
}

// tellsLoss reports whether a message tells of a loss, which does not rest as what else its device
// has said.
func (p *pacer) tellsLoss(u *wire.Update, now time.Time) bool {
	if p == nil {
		return u.TellsLoss()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failing.tellsLoss(u, now)
}

// restsUntil is until when what the device has said waits; loss: if a loss is among it, last: if
// nothing follows in its session, which waits no longer than a burst does.
func (p *pacer) restsUntil(loss, last bool) time.Time {
	if p == nil {
		return time.Time{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.rests
	if last {
		until = p.bursts
	}
	if loss && p.lossRests.Before(until) {
		return p.lossRests
	}
	return until
}
