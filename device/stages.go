package device

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/latency"
)

// stages are the distributions of what a change of this or another device takes, as
// far as the notifier does not know them. Those between devices' clocks are recorded
// with RecordBetween, those of another device's clock, which may have been set in between,
// with RecordSet: however long they are, they are no difference of clocks.
type stages struct {
	// Of own events: seen to taken up; from there to handed to the sessions.
	ownDecided, ownSent latency.Series
	// Of clients' events at a reflector: read to taken up; read to handed to the
	// sessions of all clients that it concerns.
	taken, reflected latency.Series
	// Of other devices' events, by the stamps that came with them.
	decided, sent, atReflector, passedOn, received, applied latency.Series
	handing                                                 []time.Time // when the clients' events were read that still wait to be handed on
	// What was measured of reflectors' clocks.
	clocks map[netip.Addr]clockSample
}

// clockSample is one exchange with a reflector, as in RFC 5905 section 8: an own
// message that came back.
type clockSample struct {
	ahead     time.Duration // of the reflector's clock
	roundTrip time.Duration // without what the reflector took
	at        time.Time
}

// clockAge is how long a sample counts before one with a longer round trip replaces it.
const clockAge = time.Minute

// measureOwn follows messages of this device that were just handed over.
func (c *Core) measureOwn(ds []wire.Delivery, now time.Time) {
	for _, d := range ds {
		u, ok := d.Msg.(*wire.Update)
		if !ok || u.FaultAt.IsZero() || u.DecidedAt.IsZero() {
			continue
		}
		c.stages.ownDecided.Record(u.DecidedAt.Sub(u.FaultAt))
		if slices.ContainsFunc(d.To, func(to netip.Addr) bool { return to != c.self }) {
			c.stages.ownSent.Record(c.later(now).Sub(u.DecidedAt))
		}
	}
}

// measureReflected follows a client's message through this reflector.
func (c *Core) measureReflected(m wire.Message, told bool, now time.Time) {
	u, ok := m.(*wire.Update)
	if !ok || u.FaultAt.IsZero() || u.ReceivedAt.IsZero() || !told {
		return
	}
	c.stages.taken.Record(now.Sub(u.ReceivedAt))
	c.stages.handing = append(c.stages.handing, u.ReceivedAt)
	if c.stopwatch == nil {
		c.HandedOn(now)
	}
}

// HandedOn says that all messages for clients were handed to their sessions.
func (c *Core) HandedOn(at time.Time) {
	for _, read := range c.stages.handing {
		c.stages.reflected.Record(at.Sub(read))
	}
	c.stages.handing = c.stages.handing[:0]
}

// causeOf is the event behind what a reflector said.
func (c *Core) causeOf(a *client.Applied) hostnotify.Cause {
	by := hostnotify.Cause{Origin: a.Origin, FaultAt: a.FaultAt, DecidedAt: a.DecidedAt, SentAt: a.SentAt,
		ReflectorAt: a.ReflectorAt, ReflectedAt: a.ReflectedAt, ReceivedAt: a.ReceivedAt}
	if a.Origin == c.self {
		by.Origin = netip.Addr{}
	}
	return by
}

// measureApplied follows what a reflector said: the way up to here.
func (c *Core) measureApplied(a *client.Applied, now time.Time) {
	if a.Origin == c.self {
		c.measureClock(a)
		return
	}
	if a.FaultAt.IsZero() {
		return
	}
	step := func(record func(time.Duration) bool, from, to time.Time) {
		if !from.IsZero() && !to.IsZero() {
			record(to.Sub(from))
		}
	}
	s := &c.stages
	step(s.decided.RecordSet, a.FaultAt, a.DecidedAt)
	step(s.sent.RecordSet, a.DecidedAt, a.SentAt)
	step(s.atReflector.RecordBetween, a.SentAt, a.ReflectorAt)
	step(s.passedOn.RecordSet, a.ReflectorAt, a.ReflectedAt)
	step(s.received.RecordBetween, a.ReflectedAt, a.ReceivedAt)
	if !a.ReceivedAt.IsZero() {
		s.applied.Record(now.Sub(a.ReceivedAt))
	}
}

// measureClock compares a reflector's clock with ours by an own message that came back.
func (c *Core) measureClock(a *client.Applied) {
	if a.From == c.self || a.SentAt.IsZero() || a.ReflectorAt.IsZero() || a.ReflectedAt.IsZero() || a.ReceivedAt.IsZero() {
		return
	}
	there, back := a.ReflectorAt.Sub(a.SentAt), a.ReceivedAt.Sub(a.ReflectedAt)
	n := clockSample{ahead: (there - back) / 2, roundTrip: there + back, at: a.ReceivedAt}
	old, had := c.stages.clocks[a.From]
	if n.roundTrip < 0 || n.roundTrip > latency.MostSkew { // a clock was set meanwhile
		return
	}
	if had && n.roundTrip > old.roundTrip && n.at.Sub(old.at) < clockAge {
		return
	}
	if c.stages.clocks == nil {
		c.stages.clocks = make(map[netip.Addr]clockSample)
	}
	c.stages.clocks[a.From] = n
}
