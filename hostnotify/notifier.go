package hostnotify

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/timerheap"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Notifier tells the local subscribers of one device what they should know. Create
// it with New. Inputs only change tables; Poll hands out the frames they led to.
type Notifier struct {
	cfg       Config
	dir       Directory
	fences    Fences // nil: nothing is fenced
	synced    bool
	observing bool // decide and record, send nothing
	recall    bool // the Directory has what was known before the start, until it is synced

	base time.Time // what stamps count from
	now  stamp     // the latest time given; time never runs backward here

	subs     map[netip.Addr]*subscriber
	order    []*subscriber // the same, in the order of their arrival
	subjects map[netip.Addr]*subject
	ports    map[string]*port
	portList []*port // sorted by name
	agents   map[agentKey]*agent

	retries  timerheap.Heap[agent, *agent] // with notices under way, by when some are to be repeated
	deferred []*subscriber                 // zone queries to be answered later
	graceEnd stamp                         // when the first subscriber.until is; never when there is none
	gone     pairList                      // pairs that are kept although their subject is gone, oldest first
	kept     int                           // how many they are

	seq      uint32
	pairs    int
	waiting  int // pairs in a list of new notices
	inFlight int
	unkept   []changedRow            // since Rows was last called
	rowKey   []byte                  // scratch
	value    []byte                  // scratch
	devices  map[netip.Addr]struct{} // scratch: those of which one was seen
	visit    uint32                  // marks the pairs that one run over a subscriber's peers has seen

	packer   snsd.Packer
	slab     []byte
	out      []Out
	detours  []*detour
	overdue  []*pair // told again and again that the old service of an address is gone, see orderTries
	packed   []*pair // whose new notices are in the frames of out
	history  history
	latency  Latencies
	counters Counters
}

// New makes a Notifier that asks dir about the truth. It starts not synced.
func New(cfg Config, dir Directory) *Notifier {
	cfg = cfg.withDefaults()
	return &Notifier{
		cfg: cfg, dir: dir, seq: cfg.FirstSeq, graceEnd: never,
		subs:     make(map[netip.Addr]*subscriber),
		subjects: make(map[netip.Addr]*subject),
		ports:    make(map[string]*port),
		agents:   make(map[agentKey]*agent),
		devices:  make(map[netip.Addr]struct{}),
		history:  history{limit: cfg.History},
	}
}

// Subscribe makes known that a host with this address, which wants notices, is on the
// port: it registered, or registered again. Calling it again changes nothing. A new host
// is told all its active peers. An address may be on several ports (a bond: one MAC);
// another MAC is ignored (and counted) as long as the first one holds the address.
func (n *Notifier) Subscribe(host netip.Addr, port string, mac fabric.MAC, now time.Time) {
	n.subscribe(host, port, mac, snsd.RoleUnknown, false, now)
}

// SubscribeAs is Subscribe of a host that the Directory does not know, but for whom it shares zones
// with, or whose peers it may not know yet. Until Settle a peer that is known no more, or shares no
// zone, is no news to it.
func (n *Notifier) SubscribeAs(host netip.Addr, port string, mac fabric.MAC, role snsd.Role, now time.Time) {
	n.subscribe(host, port, mac, role, true, now)
}

// Settle says that the Directory knows all about a host of SubscribeAs now.
func (n *Notifier) Settle(host netip.Addr, now time.Time) {
	n.touch(now)
	if s := n.subs[host.Unmap()]; s != nil && s.early {
		s.early = false
		n.recomputeAll(s, nil, false)
	}
}

func (n *Notifier) subscribe(host netip.Addr, port string, mac fabric.MAC, role snsd.Role, early bool, now time.Time) {
	n.touch(now)
	host = host.Unmap()
	s := n.subs[host]
	if s == nil {
		if snsd.CheckAddr(host) != nil || len(n.subs) >= n.cfg.MaxHosts && !n.makeRoom() {
			n.counters.HostsRefused++
			return
		}
		s = n.addSubscriber(host, mac)
	}
	s.early = s.early || early
	was := s.role
	s.role = cmp.Or(role, s.role)
	n.meet(s)
	if p := n.port(port); s.link(p) == nil && s.hasLost(mac) {
		s.owed = true
	}
	if news := n.confirm(s, n.port(port), mac); !n.payBack(s) && (news || s.role != was) {
		n.recomputeAll(s, nil, false)
	}
}

// payBack tells a host everything that its port was down for, if it is usable now.
// That answers a query of before, but not the one that the agent sends now: if the agent
// sent it before it heard this, everything is still under way when it comes, and is
// not told twice; if not, the agent may have forgotten since.
func (n *Notifier) payBack(s *subscriber) bool {
	if !s.owed || s.out == nil {
		return false
	}
	s.owed, s.asked, s.queryDue = false, n.now, never
	for _, l := range s.links {
		l.moved = false // it is told after that
	}
	n.deferred = slices.DeleteFunc(n.deferred, func(x *subscriber) bool { return x == s })
	n.keepHost(s)
	n.recomputeAll(s, nil, true)
	return true
}

// Unsubscribe makes known that the host left the port, or wants no notices any more.
// With its last port the host and everything it was told is given up.
func (n *Notifier) Unsubscribe(host netip.Addr, port string, now time.Time) {
	n.touch(now)
	if s := n.leave(host, port); s != nil && s.isNowhere() {
		n.drop(s)
	}
}

// leave takes a host off a port. It gives the host, nil if it is not known to be there.
func (n *Notifier) leave(host netip.Addr, port string) *subscriber {
	s := n.subs[host.Unmap()]
	if s == nil {
		return nil
	}
	if i := slices.Index(s.claims, port); i >= 0 {
		s.claims = slices.Delete(s.claims, i, i+1)
	} else if p := n.ports[port]; p == nil || s.link(p) == nil {
		return nil
	} else {
		n.detach(s, p)
	}
	if len(s.links) > 0 && !s.holds(s.mac) { // only rivals are left: the first of them has the address now
		n.takeOver(s, s.links[0].mac)
		n.recomputeAll(s, nil, false)
	}
	if len(s.claims) > 0 {
		n.stopTelling(s) // another claim has the address now
	}
	return s
}

// Yield makes known that another claim has the address of a host on the port. The host is told
// nothing meanwhile. What it was told stands, since it may be the same machine that others tell
// things, and it is told all again when it subscribes again, as after a link-up: what is active,
// and what is not any more.
func (n *Notifier) Yield(host netip.Addr, port string, now time.Time) {
	n.touch(now)
	s := n.subs[host.Unmap()]
	if s == nil {
		return
	}
	n.leave(host, port)
	s.claims = append(s.claims, port)
	s.until = never
	n.stopTelling(s)
}

// Withdraw is Unsubscribe of a host whose machine said nothing of the kind: it did not answer for
// an address that is claimed elsewhere, or an operator took it off. It may be there and hear
// nothing meanwhile: what it was told stands, as after Yield, for Config.Grace.
func (n *Notifier) Withdraw(host netip.Addr, port string, now time.Time) {
	n.touch(now)
	if s := n.leave(host, port); s != nil && s.isNowhere() {
		n.stopTelling(s)
		n.mayReturn(s)
	}
}

// MayReturn reports whether a host was withdrawn, or restored, and has not registered since.
func (n *Notifier) MayReturn(host netip.Addr) bool {
	s := n.subs[host.Unmap()]
	return s != nil && s.isAwaited()
}

// stopTelling takes back all that waits for a host that has no link any more. It is told all again
// when it has one.
func (n *Notifier) stopTelling(s *subscriber) {
	if len(s.links) > 0 {
		return
	}
	s.restored = false
	if !s.owed {
		s.owed = true
		n.keepHost(s)
	}
	for i := len(s.list) - 1; i >= 0; i-- { // backward: cancel may remove the pair
		p := s.list[i]
		n.cancel(p)
		n.supersede(p)
	}
}

// PortUp makes known that frames can pass the port, and its MAC for their source. Its
// hosts are told at once what is active, and what is not any more of what they were told:
// the agent does not register when its link comes back, and another machine that is there
// now ignores what is said to addresses that are not its own.
func (n *Notifier) PortUp(port string, mac fabric.MAC, now time.Time) {
	n.touch(now)
	p := n.port(port)
	p.mac = mac
	if p.up {
		return
	}
	p.up, p.isDown = true, false
	for _, s := range p.subs {
		n.choose(s)
		n.payBack(s)
	}
}

// SetMTU makes known how long the payload of a frame may be that leaves the port, in bytes.
func (n *Notifier) SetMTU(port string, mtu int) { n.port(port).mtu = mtu }

// PortDown makes known that frames cannot pass the port. What its hosts were told stands; they wait
// until it is up. That it is down is known of a port without hosts too: one may have its address
// there again, after another claim had it for a while.
func (n *Notifier) PortDown(port string) {
	p := n.port(port)
	p.up, p.isDown = false, true
	for _, s := range p.subs {
		s.link(p).agent.ext = 0
		if n.choose(s); s.isCutOff() && !s.owed {
			s.owed = true
			n.keepHost(s)
			n.payBack(s) // another port is up, that had moved
		}
	}
}

// PortGone makes known that there is no such port any more, nor a host behind it.
func (n *Notifier) PortGone(port string) {
	n.PortDown(port)
	if p := n.ports[port]; len(p.subs) == 0 && !p.leaving && p.pace.idle(n.now) {
		n.removePort(p)
	}
}

// Changed recomputes what the named addresses are to others, and others to them. The
// work is in proportion to the local hosts that were told of an address or share a
// zone with it. faultAt is when the cause happened (zero when not known); it is
// carried through to the history.
func (n *Notifier) Changed(c zone.Changes, faultAt, now time.Time) {
	n.ChangedBy(c, Cause{FaultAt: faultAt}, now)
}

// ChangedBy is Changed with all that is known of the event's way to this device.
func (n *Notifier) ChangedBy(c zone.Changes, by Cause, now time.Time) {
	n.touch(now)
	cause := n.cause(by, now)
	for _, ch := range c {
		n.changed(ch, cause)
	}
}

// Ack takes a host's ack that came in through the port. Acks that belong to nothing
// are counted and ignored.
func (n *Notifier) Ack(port string, a snsd.Ack, now time.Time) bool {
	return n.AckAt(port, a, now, now)
}

// AckAt is Ack of one that was received, by the kernel say, some time before now. It
// reports whether this is the first ack of what the host was told last of the subject: then
// the host is there. It is also when another claim has had the address since the notice left: a
// host that moved back behind a port is known again by nothing else before it registers.
func (n *Notifier) AckAt(port string, a snsd.Ack, at, now time.Time) bool {
	n.touch(now)
	s := n.subs[a.Host.Unmap()]
	var via *link
	if s != nil {
		via = s.link(n.ports[port])
	}
	if via == nil && (s == nil || !s.yields()) {
		n.counters.AcksUnknown++
		return false
	}
	p := s.pairs[a.Subject.Unmap()]
	switch {
	case p == nil || p.told.none():
		n.counters.AcksUnknown++
		return false
	case p.told.seq != a.Seq:
		n.counters.AcksStale++
		return false
	case p.told.acked:
		n.counters.AcksRepeated++
		if a := p.flight.with; a != nil { // it works off what was repeated in vain
			a.acked = n.now
		}
		return false
	}
	if via != nil {
		via.moved = false
	}
	n.acked(p, at)
	n.decideOverdue()
	return true
}

// SetSynced reports whether the Directory is complete. While it is not, a subject that is
// not there, or shares no zone, is no news: it may not have been learned yet. (A
// withdrawal with a reason is news at any time.) Once it is, everything that was
// told is compared with the truth.
func (n *Notifier) SetSynced(on bool) {
	if on && !n.synced {
		held := n.recall
		n.synced, n.recall = true, false
		for _, s := range n.order {
			if held {
				n.recomputeAll(s, nil, false) // with the active peers that were held back
			} else {
				n.recomputeTold(s, nil)
			}
		}
	}
	n.synced = on
}

// Recall says that the Directory has what was known before the start: until SetSynced a loss is
// told, and that a peer is active is not.
func (n *Notifier) Recall() { n.recall = !n.synced }

// Counters returns a copy of the totals.
func (n *Notifier) Counters() Counters {
	c := n.counters
	c.Hosts, c.Pairs, c.Gone = uint64(len(n.subs)), uint64(n.pairs), uint64(n.kept)
	c.Waiting, c.InFlight = uint64(n.waiting), uint64(n.inFlight)
	return c
}

// Notices returns the recent notices, oldest first.
func (n *Notifier) Notices() []Notice { return n.history.list() }

// Latencies gives the distributions; to be read only, by the owner of the Notifier.
func (n *Notifier) Latencies() *Latencies { return &n.latency }

// acked takes the ack of what was told last.
func (n *Notifier) acked(p *pair, at time.Time) {
	if sent := n.time(p.told.at); p.told.at != never && at.Before(sent) {
		at = sent // the clock was set between the two stamps
	}
	p.told.acked = true
	p.sub.heard = n.now
	n.counters.Acked++
	n.keepPair(p)
	n.heard(p)
	n.stopRetry(p)
	n.history.ack(p.told.rec, at)
	by := p.told.by
	n.measureAck(p, n.stamp(at))
	n.settle(p)
	if removes(p.told.verdict) && !p.ended {
		n.recompute(p, by, false) // an active notice may have waited for this, see wantActive
	}
}

// Poll returns the frames that are due now, in the order to send them. The slice is
// valid until the next Poll; the frames belong to the caller. Notices in them count as
// sent at now.
func (n *Notifier) Poll(now time.Time) []Out {
	n.touch(now)
	n.answerDeferred()
	if n.graceEnd != never && n.now >= n.graceEnd {
		n.endGrace()
	}
	n.collectRetries()
	n.decideOverdue()
	n.out = n.out[:0]
	clear(n.packed)
	n.packed = n.packed[:0]
	for _, p := range n.portList {
		if p.up {
			n.drain(p)
		}
	}
	if n.observing {
		for _, p := range n.packed {
			n.observed(p)
		}
		return nil
	}
	if len(n.detours) > 0 {
		n.sendDetours()
	}
	return n.out
}

// Next is the moment from which Poll has something to do; in the past or present if it
// has now, zero if nothing is expected.
func (n *Notifier) Next() time.Time {
	next := never
	sooner := func(s stamp) {
		if next == never || s < next {
			next = s
		}
	}
	if n.retries.Len() > 0 {
		_, due := n.retries.First()
		sooner(stamp(due))
	}
	for _, p := range n.portList {
		if p.up && p.waits() {
			sooner(max(n.now, p.pace.ready(len(p.rings[newInactive]) > 0)))
		}
	}
	for _, s := range n.deferred {
		sooner(s.queryDue)
	}
	if due := n.detoursDue(); due != never {
		sooner(due)
	}
	if n.graceEnd != never {
		sooner(n.graceEnd)
	}
	return n.time(next)
}

// decideOverdue decides anew about active notices that have waited long enough for the ack
// of what came before them.
func (n *Notifier) decideOverdue() {
	for _, p := range n.overdue {
		n.recompute(p, p.told.by, false)
	}
	clear(n.overdue)
	n.overdue = n.overdue[:0]
}
