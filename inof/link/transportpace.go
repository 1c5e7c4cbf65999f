package link

import (
	"cmp"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/openinof/inof/inof/wire"
)

// Pace is how fast a device may send records; zero values mean the defaults. A sync or a
// change of many hosts is a burst; what goes on and on is not read faster than this.
type Pace struct {
	PerSecond int // records a second, DefaultRecordsPerSecond
	Burst     int // records at once, DefaultRecordsBurst
}

const (
	DefaultRecordsPerSecond = 2000
	DefaultRecordsBurst     = 20_000
)

func (p Pace) withDefaults() Pace {
	return Pace{cmp.Or(p.PerSecond, DefaultRecordsPerSecond), cmp.Or(p.Burst, DefaultRecordsBurst)}
}

// pacer slows one device down, whatever its session.
type pacer struct {
	*rate.Limiter

	mu    sync.Mutex
	since time.Time     // it is held up without a pause; zero: it is not
	last  time.Time     // end of the last time it was held up
	held  time.Duration // all in all
	rests time.Time     // until when what it has said waits: it made too much work
}

// heldGap is how long a device must not have been held up to count as slowed down anew.
const heldGap = 5 * time.Second

// note keeps that the device was held up.
func (p *pacer) note(from, to time.Time) {
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
		p = &pacer{Limiter: rate.NewLimiter(rate.Limit(ps.pace.PerSecond), ps.pace.Burst)}
		ps.by[dev] = p
	}
	return p
}

// set changes the pace of all devices.
func (ps *pacers) set(p Pace) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.pace = p.withDefaults()
	for _, p := range ps.by {
		p.SetLimit(rate.Limit(ps.pace.PerSecond))
		p.SetBurst(ps.pace.Burst)
	}
}

// slowest is how long a wait may be until the session looks whether it is to end.
const slowest = 50 * time.Millisecond

// slowDown waits until the device may send what it has sent. Nothing of it is read
// meanwhile, so that TCP holds it back.
func (c *conn) slowDown(m wire.Message) error {
	if c.pace == nil {
		return nil
	}
	began := time.Now()
	var due time.Duration
	for n := wire.Weight(m); n > 0; { // one message may be more than a burst
		part := max(1, min(n, c.pace.Burst()))
		if r := c.pace.ReserveN(began, part); r.OK() {
			due = max(due, r.DelayFrom(began))
		}
		n -= part
	}
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
// zone and comes back without end makes work too. What makes more than the peer may is not
// taken from the Inbox until that is made up for.
func (p *Peer) Charge(work int) {
	if n := work / workRecords; n > 0 && p.c.pace != nil {
		p.c.pace.charge(n, time.Now())
	}
}

func (p *pacer) charge(n int, now time.Time) {
	due := p.ReserveN(now, min(n, p.Burst())).DelayFrom(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := now.Add(due); due > 0 && until.After(p.rests) {
		p.rests = until
	}
}

// restsUntil is until when what the device has said waits; zero: it does not. There may be no pacer.
func (p *pacer) restsUntil() time.Time {
	if p == nil {
		return time.Time{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rests
}
