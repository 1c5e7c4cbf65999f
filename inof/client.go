package inof

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Applied is what a received message changes in the device's Directory, in the
// order of the fields; with the stamps of the Update that caused it. Records about
// the client's own device never appear in it.
type Applied struct {
	From        netip.Addr // the reflector
	Origin      netip.Addr // device whose change it is
	FaultAt     time.Time
	SentAt      time.Time
	ReflectedAt time.Time
	DecidedAt   time.Time
	ReflectorAt time.Time
	ReceivedAt  time.Time

	Settings *Settings // nil: unchanged
	// Reserved are members that some reflector names but that are not in force: a
	// Put keeps these hosts out of the default zone (before Zones are applied), a
	// Withdraw ends it (after).
	Reserved []ZoneRecord
	Zones    []ZoneRecord
	Hosts    []HostRecord // a Withdraw without a reason: a full sync left the host out
	// Claims are hosts that are as before, but for what the reflectors say of their claim
	// to the address.
	Claims []zone.Host
	Faults []FaultRecord

	// Taken are own hosts that the reflector has taken in: what follows from them for this
	// device it has said.
	Taken []zone.HostKey

	// Bound: a reflector binds this device to other hosts than before, see Client.Outside.
	Bound bool

	Synced bool // an End-of-Sync was handled: the reflector's view is complete
}

// Empty tells whether there is nothing to apply.
func (a *Applied) Empty() bool {
	return a.Settings == nil && len(a.Zones) == 0 && len(a.Reserved) == 0 && len(a.Hosts) == 0 && len(a.Faults) == 0
}

// ClientCounters count what a Client did.
type ClientCounters struct {
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
// hosts and faults, and what it has learned from them.
type Client struct {
	self  netip.Addr
	epoch uint64
	seq   uint64

	hosts  map[zone.HostKey]zone.Host
	faults map[string]FaultRecord // by port
	told   map[string]FaultRecord // the same as of the last Flush, which the reflectors have
	// What has changed since the last Flush, by key: only the latest state of a
	// record leaves, however often it changed.
	dirtyHosts  map[zone.HostKey]snsd.Reason // the reason counts when the host is gone
	dirtyFaults map[string]struct{}
	faultAt     time.Time

	refusals map[netip.Addr]Refusal   // by reflector that has no room for all own hosts
	bound    map[netip.Addr]Binding   // what reflectors bind this device to
	again    map[netip.Addr]time.Time // reflectors that have room again: everything is to be said
	log      ownLog
	sent     map[netip.Addr]ResumeKind // how the present session to a reflector began
	holdBack time.Time                 // own records may be incomplete before; zero: they are not
	relies   bool                      // hosts were told things before the start that a first sync may end
	before   map[netip.Addr]uint64     // epochs of the reflectors that they followed from
	learned  replicas
	counters ClientCounters
}

// NewClient gives a client for the device self. Epoch is a new value at each start
// of the process, never zero.
func NewClient(self netip.Addr, epoch uint64) *Client {
	return &Client{
		self: self, epoch: epoch,
		hosts:       map[zone.HostKey]zone.Host{},
		faults:      map[string]FaultRecord{},
		told:        map[string]FaultRecord{},
		refusals:    map[netip.Addr]Refusal{},
		bound:       map[netip.Addr]Binding{},
		again:       map[netip.Addr]time.Time{},
		dirtyHosts:  map[zone.HostKey]snsd.Reason{},
		dirtyFaults: map[string]struct{}{},
		log:         newOwnLog(),
		sent:        map[netip.Addr]ResumeKind{},
		learned:     newReplicas(self),
	}
}

// PutHost adds or replaces a host of this device; its Device is set by the client.
// The change leaves with the next Flush; a host that is as before changes nothing.
func (c *Client) PutHost(h zone.Host) {
	h.Device = c.self
	old, known := c.hosts[h.HostKey]
	if _, dirty := c.dirtyHosts[h.HostKey]; known && !dirty && old.Same(&h) {
		return
	}
	c.hosts[h.HostKey] = h
	c.dirtyHosts[h.HostKey] = snsd.ReasonNone
}

// WithdrawHost removes a host of this device for a reason; one that is not there
// is passed over.
func (c *Client) WithdrawHost(k zone.HostKey, why snsd.Reason) {
	k.Device = c.self
	if _, known := c.hosts[k]; !known {
		return
	}
	delete(c.hosts, k)
	c.dirtyHosts[k] = why
}

// Hosts are the own hosts by key, with the changes that wait for Flush; not to be changed.
func (c *Client) Hosts() map[zone.HostKey]zone.Host { return c.hosts }

// Faults are the own faults by port, like Hosts.
func (c *Client) Faults() map[string]FaultRecord { return c.faults }

// RememberGone says how many own records that are gone are remembered for a reflector that
// was away, about; 8,192 if it is not called.
func (c *Client) RememberGone(most int) { c.log.most = most }

// PutFault adds or replaces the fault of one port of this device; Op and Device
// are set by the client.
func (c *Client) PutFault(f FaultRecord) {
	f.Op, f.Device = Put, c.self
	f.Addrs = sortedAddrs(slices.Clone(f.Addrs))
	old, known := c.faults[f.Port]
	if _, dirty := c.dirtyFaults[f.Port]; known && !dirty && sameFault(&old, &f) {
		return
	}
	c.faults[f.Port] = f
	c.dirtyFaults[f.Port] = struct{}{}
}

func sameFault(a, b *FaultRecord) bool {
	return a.Device == b.Device && a.Port == b.Port && a.Why == b.Why && a.Since.Equal(b.Since) && slices.Equal(a.Addrs, b.Addrs)
}

// WithdrawFault clears the fault of a port; one that is not there is passed over.
func (c *Client) WithdrawFault(port string) {
	if _, known := c.faults[port]; !known {
		return
	}
	delete(c.faults, port)
	c.dirtyFaults[port] = struct{}{}
}

// MarkFault stamps the next Flush with the time of the event that caused the
// changes; the earliest of several counts.
func (c *Client) MarkFault(at time.Time) {
	if c.faultAt.IsZero() || at.Before(c.faultAt) {
		c.faultAt = at
	}
}

// Flush gives the changes since the last one for every reflector that is up. The
// others get them when their session resumes, or with everything.
func (c *Client) Flush(now time.Time) []Delivery {
	b := c.pending()
	at := c.faultAt
	c.faultAt = time.Time{}
	var out []Delivery
	if !b.Empty() {
		out = c.deliver(&b, c.learned.up(), at, now, true)
	}
	return append(append(out, c.sayAgain(now)...), c.endHoldBack(now)...)
}

// sayAgain says everything to reflectors that had no room for all own hosts, and have now.
func (c *Client) sayAgain(now time.Time) (out []Delivery) {
	for id := range c.again {
		delete(c.again, id)
		if _, up := c.learned.index(id); !up {
			continue // a session that begins does so anyway
		}
		to, b := []netip.Addr{id}, c.everything()
		out = append(out, c.deliver(&b, to, time.Time{}, now, false)...)
		out = append(out, Delivery{To: to, Msg: &EndOfSync{Epoch: c.epoch, Seq: c.seq, Resumed: !c.holdBack.IsZero()}})
	}
	return out
}

// Refusals are what the reflectors have no room for, by reflector.
func (c *Client) Refusals() map[netip.Addr]Refusal { return c.refusals }

// HoldBack says that own records may be missing before until: the device started
// without knowing which hosts it had. Its syncs remove nothing at a reflector until
// then, because a host that has not registered yet is not gone. With the first Flush
// from then on every reflector gets a full sync. It is to be called before the first
// session.
func (c *Client) HoldBack(until time.Time) { c.holdBack = until }

// HeldBack is until when own records may be missing; zero: none is.
func (c *Client) HeldBack() time.Time { return c.holdBack }

// endHoldBack repeats all own records with an End-of-Sync that removes the others.
func (c *Client) endHoldBack(now time.Time) []Delivery {
	if c.holdBack.IsZero() || now.Before(c.holdBack) {
		return nil
	}
	c.holdBack = time.Time{}
	c.log.base = c.next() // who does not get this one resumes from nothing
	to := c.learned.up()
	if len(to) == 0 {
		return nil
	}
	for _, id := range to {
		c.sent[id] = full("the time to hear all hosts is over")
	}
	b := c.everything()
	return append(c.deliver(&b, to, time.Time{}, now, false), Delivery{To: to, Msg: &EndOfSync{Epoch: c.epoch, Seq: c.seq}})
}

// everything are all own records.
func (c *Client) everything() Batch {
	var b Batch
	for _, h := range c.hosts {
		b.Hosts = append(b.Hosts, HostRecord{Op: Put, Host: h})
	}
	for _, f := range c.faults {
		b.Faults = append(b.Faults, f)
	}
	b.Sort()
	return b
}

// pending empties the sets of changes into a batch, sorted by key.
func (c *Client) pending() Batch {
	var b Batch
	for k, why := range c.dirtyHosts {
		r := HostRecord{Op: Withdraw, Host: zone.Host{HostKey: k}, Why: why}
		if h, ok := c.hosts[k]; ok {
			r = HostRecord{Op: Put, Host: h}
		}
		b.Hosts = append(b.Hosts, r)
	}
	for port := range c.dirtyFaults {
		var was, is *FaultRecord
		if f, ok := c.told[port]; ok {
			was = &f
		}
		if f, ok := c.faults[port]; ok {
			is, c.told[port] = &f, f
		} else {
			delete(c.told, port)
		}
		if f, ok := difference(was, is); ok {
			b.Faults = append(b.Faults, f)
		}
	}
	clear(c.dirtyHosts)
	clear(c.dirtyFaults)
	b.Sort()
	return b
}

// deliver makes the Updates of a batch; changed: they are changes, each with a number
// of its own. A repetition has the number of the last change, whose state it is.
func (c *Client) deliver(b *Batch, to []netip.Addr, faultAt, now time.Time, changed bool) []Delivery {
	like := Update{Origin: c.self, Epoch: c.epoch, Seq: c.seq, Partial: !changed, FaultAt: faultAt, SentAt: now}
	if !faultAt.IsZero() {
		like.DecidedAt = now
	}
	us := b.Updates(&like, &c.counters.TooLarge)
	out := make([]Delivery, 0, len(us))
	for _, u := range us {
		if changed {
			u.Seq = c.next()
			c.log.note(u, c)
		}
		if len(to) == 0 {
			continue
		}
		out = append(out, Delivery{To: to, Msg: u})
		c.counters.UpdatesOut++
		c.counters.RecordsOut += uint64(len(u.Hosts) + len(u.Faults))
	}
	return out
}

func (c *Client) next() uint64 { c.seq++; return c.seq }

// SetReflectors says how many reflectors are configured, what is to be done where
// their zones differ, and how long after the first sync one that was never heard is
// waited for. It is to be called before the first session; without it there is one.
func (c *Client) SetReflectors(n int, a Agreement, wait time.Duration) {
	c.learned.expected, c.learned.agreement, c.learned.wait = n, a, wait
}

// Up says that the session to a reflector (its device id) is established: Resume
// with nothing to resume from.
func (c *Client) Up(reflector netip.Addr, now time.Time) []Delivery {
	return c.Resume(reflector, nil, now)
}

// Resume says that the session to a reflector is established; seen is what the
// reflector's Open says it has seen of this device. It gets the latest state of all
// that changed since, or all own records, and an EndOfSync. Changes that wait for
// Flush are not lost: they leave with the Flush.
func (c *Client) Resume(reflector netip.Addr, seen *Resume, now time.Time) []Delivery {
	if err := c.learned.begin(reflector); err != nil {
		c.counters.ReflectorsRefused++
		return []Delivery{{To: []netip.Addr{reflector}, Msg: &Notification{Code: CodeLimit, Text: err.Error()}}}
	}
	c.outlive(seen)
	kind := checkResume(seen, c.epoch, c.log.base, c.seq)
	c.sent[reflector] = kind
	var b Batch
	if kind.Resumed {
		c.counters.Resumed++
		b = c.log.after(seen.Seq, c)
	} else {
		b = c.everything()
	}
	to := []netip.Addr{reflector}
	out := c.deliver(&b, to, time.Time{}, now, false)
	return append(out, Delivery{To: to, Msg: &EndOfSync{Epoch: c.epoch, Seq: c.seq, Resumed: kind.Resumed || !c.holdBack.IsZero()}})
}

// Down says that the session ended. What was learned stays in force.
func (c *Client) Down(reflector netip.Addr, now time.Time) Applied {
	a := Applied{From: reflector, Origin: reflector}
	c.learned.end(reflector, &a, now)
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
	return a
}

// ResumePoint is what the next Open to a reflector says was seen of it; nil when
// nothing was. From an epoch that no process has nothing can be resumed, but the
// reflector knows that an End-of-Sync has consequences here.
func (c *Client) ResumePoint(reflector netip.Addr) *Resume {
	i, _ := c.learned.index(reflector)
	if i < 0 {
		switch epoch := c.before[reflector]; {
		case !c.relies || c.Synced():
			return nil
		case epoch != 0:
			return &Resume{Epoch: epoch, Seq: math.MaxUint64} // what is held is of that start, and all is needed
		}
		return &Resume{Epoch: noEpoch}
	}
	s := &c.learned.list[i]
	if !s.clean || !s.pos.Known() {
		return &Resume{Epoch: noEpoch}
	}
	return &Resume{Epoch: s.pos.Epoch, Seq: s.pos.Seq}
}

// Sessions tells how the present session with a reflector began: what it sent to us,
// and what we sent.
func (c *Client) Sessions(reflector netip.Addr) (in, out ResumeKind) {
	if i, up := c.learned.index(reflector); up {
		in = c.learned.list[i].kind
	}
	return in, c.sent[reflector]
}

// Receive takes a message of an established session. The error tells of a message
// that was not expected; it changes nothing.
func (c *Client) Receive(reflector netip.Addr, m Message, now time.Time) (Applied, error) {
	a := Applied{From: reflector, Origin: reflector}
	idx, ok := c.learned.index(reflector)
	if !ok {
		c.counters.UnknownPeer++
		return a, fmt.Errorf("%v of %v, which has no session", m.Type(), reflector)
	}
	s := &c.learned.list[idx]
	switch m := m.(type) {
	case *Update:
		c.counters.UpdatesIn++
		a.Origin, a.FaultAt, a.SentAt, a.ReflectedAt = m.Origin, m.FaultAt, m.SentAt, m.ReflectedAt
		a.DecidedAt, a.ReflectorAt, a.ReceivedAt = m.DecidedAt, m.ReflectorAt, m.ReceivedAt
		err := c.apply(idx, m, &a, now)
		switch {
		case m.Partial:
			s.clean = false
		case m.Pos.Known():
			s.pos, s.clean = m.Pos, s.clean || s.synced
		case m.Origin == reflector:
			s.pos, s.clean = Stamp{m.Epoch, m.Seq}, s.clean || s.synced
		}
		if err != nil {
			return a, err
		}
	case *EndOfSync:
		c.counters.Syncs++
		s.kind = ResumeKind{Done: true, Resumed: m.Resumed}
		c.learned.complete(idx, m, &a, now)
		if !m.Resumed {
			c.counters.Swept += uint64(len(a.Hosts) + len(a.Faults))
		}
		s.pos, s.clean = Stamp{m.Epoch, m.Seq}, true
		a.Synced = true
	case *Bound:
		a.Bound = c.bind(reflector, m)
	default:
		c.counters.UnexpectedTypes++
		return a, &ProtocolError{Code: CodeUnexpected, Where: m.Type().String(), Detail: "no message for a client"}
	}
	return a, nil
}

// apply takes the records of an Update. The error, a *RefusedError, tells of those for
// which there is no room.
func (c *Client) apply(idx int, u *Update, a *Applied, now time.Time) error {
	var refused RefusedError
	l, s := &c.learned, &c.learned.list[idx]
	c.counters.RecordsIn += uint64(len(u.Zones) + len(u.Hosts) + len(u.Faults))
	switch {
	case u.Refused == nil:
	default:
		if delete(c.refusals, s.id); !u.Refused.Empty() {
			c.refusals[s.id] = *u.Refused
		}
		if u.Refused.Again {
			c.again[s.id] = now
		}
	}
	s.anew = s.anew || u.Anew
	l.hearZones(idx, s.trim(u, l.most, &refused), a)
	t := newTouched()
	for i := range u.Hosts {
		h := &u.Hosts[i]
		k := h.Host.HostKey
		if k.Device == c.self {
			if _, ours := c.hosts[k]; ours && h.Op == Put {
				a.Taken = append(a.Taken, k)
			} else {
				c.counters.OwnIgnored++
			}
			continue
		}
		if refused.add(s.hostFits(h, l.most)) {
			continue
		}
		switch stamp := u.StampOf(k.Device); {
		case h.Op == Put:
			l.put(idx, &h.Host, stamp, t)
		case u.Origin == k.Device && h.Why != snsd.ReasonZoneChanged:
			l.endHost(idx, k, ending{stamp, now}, h.Why, t)
		default:
			l.withdraw(idx, k, stamp, h.Why, t)
		}
	}
	for i := range u.Faults {
		r := &u.Faults[i]
		if r.Device == c.self {
			c.counters.OwnIgnored++
			continue
		}
		said := s.faultAt(portKey{r.Device, r.Port})
		f := said.then(*r)
		if !refused.add(s.faultFits(&f, l.most)) {
			l.fault(idx, &f, u.StampOf(r.Device), t)
		}
	}
	l.decide(t, a, now)
	a.sort()
	c.counters.OverLimit += uint64(refused.Refused)
	if refused.Refused > 0 {
		return &refused
	}
	return nil
}

func (a *Applied) sort() {
	(&Batch{Zones: a.Zones, Hosts: a.Hosts, Faults: a.Faults}).Sort()
	(&Batch{Zones: a.Reserved}).Sort()
	slices.SortFunc(a.Claims, func(x, y zone.Host) int { return zone.CompareKeys(x.HostKey, y.HostKey) })
}

// Synced reports whether every reflector has completed a sync since the start, or one
// has and the others are no longer waited for. It never becomes false again: what was
// learned stays known.
func (c *Client) Synced() bool { return c.learned.synced() }

// Counters returns a copy.
func (c *Client) Counters() ClientCounters { return c.counters }
