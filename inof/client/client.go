package client

import (
	"math"
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// Counters count what a Client did.
type Counters struct {
	UpdatesOut        uint64 `json:"updates_out"`
	RecordsOut        uint64 `json:"records_out"`
	UpdatesIn         uint64 `json:"updates_in"`
	RecordsIn         uint64 `json:"records_in"`
	OwnIgnored        uint64 `json:"own_records_ignored"` // records about this device that came back
	UnknownPeer       uint64 `json:"unknown_reflector"`   // messages of a reflector that is not up
	UnexpectedTypes   uint64 `json:"unexpected_types"`
	Syncs             uint64 `json:"syncs"`
	Resumed           uint64 `json:"resumed"`       // sessions in which a reflector got only what it had missed
	Swept             uint64 `json:"records_swept"` // withdrawn because a full sync did not repeat them
	TooLarge          uint64 `json:"records_too_large"`
	OverLimit         uint64 `json:"records_over_limit"` // of reflectors, for which there is no room
	ReflectorsRefused uint64 `json:"reflectors_refused"` // beyond MaxReflectors
	EpochsRaised      uint64 `json:"epochs_raised"`      // a reflector knew a later epoch of this device
}

// Client is the client side of a device: what it tells its reflectors of its own
// hosts, and what it has learned from them.
type Client struct {
	self  netip.Addr
	epoch uint64
	seq   uint64

	hosts map[zone.HostKey]zone.Host
	// What has changed since the last Flush, by key: only the latest state of a
	// record leaves, however often it changed.
	dirty map[zone.HostKey]change
	// fences are the hosts that are fenced at own hosts; fencesDirty: where these are others now.
	fences      map[zone.HostKey][]wire.FencePeer
	fencesDirty map[zone.HostKey]struct{}
	faultAt     time.Time

	refusals map[netip.Addr]wire.Refusal // by reflector that has no room for all own hosts
	bound    map[netip.Addr]*wire.Bound  // what reflectors bind this device to
	again    map[netip.Addr]time.Time    // reflectors that have room again: everything is to be said
	log      ownLog
	sent     map[netip.Addr]wire.ResumeKind // how the present session to a reflector began
	holdBack time.Time                      // own records may be incomplete before; zero: they are not
	relies   bool                           // hosts were told things before the start that a first sync may end
	before   map[netip.Addr]uint64          // epochs of the reflectors that they followed from
	learned  replicas
	counters Counters
}

// New gives a client for the device self. Epoch is a new value at each start
// of the process, never zero.
func New(self netip.Addr, epoch uint64) *Client {
	return &Client{
		self: self, epoch: epoch,
		hosts:    map[zone.HostKey]zone.Host{},
		refusals: map[netip.Addr]wire.Refusal{},
		bound:    map[netip.Addr]*wire.Bound{},
		again:    map[netip.Addr]time.Time{},
		dirty:    map[zone.HostKey]change{},
		fences:   map[zone.HostKey][]wire.FencePeer{}, fencesDirty: map[zone.HostKey]struct{}{},
		log:     newOwnLog(),
		sent:    map[netip.Addr]wire.ResumeKind{},
		learned: newReplicas(self),
	}
}

// SetReflectors says how many reflectors are configured, what is to be done where
// their zones differ, and how long after the first sync one that was never heard is
// waited for. It is to be called before the first session; without it there is one.
func (c *Client) SetReflectors(n int, a Agreement, wait time.Duration) {
	c.learned.expected, c.learned.agreement, c.learned.wait = n, a, wait
}

// Up says that the session to a reflector (its device id) is established: Resume
// with nothing to resume from.
func (c *Client) Up(reflector netip.Addr, now time.Time) []wire.Delivery {
	return c.Resume(reflector, nil, now)
}

// Resume says that the session to a reflector is established; seen is what the
// reflector's Open says it has seen of this device. It gets the latest state of all
// that changed since, or all own records, and an EndOfSync. Changes that wait for
// Flush are not lost: they leave with the Flush.
func (c *Client) Resume(reflector netip.Addr, seen *wire.Resume, now time.Time) []wire.Delivery {
	if err := c.learned.begin(reflector); err != nil {
		c.counters.ReflectorsRefused++
		return []wire.Delivery{{To: []netip.Addr{reflector}, Msg: &wire.Notification{Code: wire.CodeLimit, Text: err.Error()}}}
	}
	c.outlive(seen)
	kind := wire.CheckResume(seen, c.epoch, c.log.base, c.seq)
	c.sent[reflector] = kind
	var b wire.Batch
	if kind.Resumed {
		c.counters.Resumed++
		b = c.log.after(seen.Seq, c)
		c.fenceRecords(&b, false) // a reflector forgets them with the session
	} else {
		b = c.everything()
	}
	to := []netip.Addr{reflector}
	out := c.deliver(&b, to, time.Time{}, now, false)
	return append(out, wire.Delivery{To: to, Msg: &wire.EndOfSync{Epoch: c.epoch, Seq: c.seq, Resumed: kind.Resumed || !c.holdBack.IsZero()}})
}

// Down says that the session ended. What was learned of zones and hosts stays in force; what is
// fenced does not, unless another reflector says it.
func (c *Client) Down(reflector netip.Addr, now time.Time) Applied {
	a := Applied{From: reflector, Origin: reflector}
	if i, up := c.learned.index(reflector); up {
		c.learned.endFences(i)
	}
	c.learned.end(reflector, &a, now)
	c.learned.decideFences(&a)
	delete(c.sent, reflector)
	delete(c.refusals, reflector)
	delete(c.again, reflector)
	return a
}

// Next is when Flush or Tick has something to do; zero: nothing.
func (c *Client) Next() time.Time {
	next := c.holdBack
	if l := &c.learned; !l.waited && !l.waitUntil.IsZero() && (next.IsZero() || l.waitUntil.Before(next)) {
		next = l.waitUntil
	}
	if due := c.learned.disputeAt(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
		next = due
	}
	for _, at := range c.again {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// Tick does what is due: a reflector that was not heard since the start is no
// longer waited for.
func (c *Client) Tick(now time.Time) Applied {
	var a Applied
	l := &c.learned
	a.From, a.Origin = c.self, c.self
	if due := l.disputeAt(); !due.IsZero() && !now.Before(due) {
		l.endDisputes(&a, now)
	}
	if l.waited || l.waitUntil.IsZero() || now.Before(l.waitUntil) {
		return a
	}
	l.waited = true
	l.revote(&a)
	l.endRecall(&a, now)
	return a
}

// ResumePoint is what the next Open to a reflector says was seen of it; nil when
// nothing was. From an epoch that no process has nothing can be resumed, but the
// reflector knows that an End-of-Sync has consequences here.
func (c *Client) ResumePoint(reflector netip.Addr) *wire.Resume {
	i, _ := c.learned.index(reflector)
	if i < 0 {
		switch epoch := c.before[reflector]; {
		case !c.relies || c.Synced():
			return nil
		case epoch != 0:
			return &wire.Resume{Epoch: epoch, Seq: math.MaxUint64} // what is held is of that start, and all is needed
		}
		return &wire.Resume{Epoch: noEpoch}
	}
	s := &c.learned.list[i]
	at := wire.Resume{Epoch: noEpoch}
	if s.clean && s.pos.Known() {
		at = wire.Resume{Epoch: s.pos.Epoch, Seq: s.pos.Seq}
	}
	if s.zones != nil && s.zones.settings != nil {
		at.Zones = s.zones.digest
	}
	return &at
}

// Sessions tells how the present session with a reflector began: what it sent to us,
// and what we sent.
func (c *Client) Sessions(reflector netip.Addr) (in, out wire.ResumeKind) {
	if i, up := c.learned.index(reflector); up {
		in = c.learned.list[i].kind
	}
	return in, c.sent[reflector]
}

// Synced reports whether every reflector has completed a sync since the start, or one
// has and the others are no longer waited for. It never becomes false again: what was
// learned stays known.
func (c *Client) Synced() bool { return c.learned.synced() }

// Counters returns a copy.
func (c *Client) Counters() Counters { return c.counters }
