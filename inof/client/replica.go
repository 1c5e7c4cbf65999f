package client

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// A client keeps of each reflector a table of its own: what that one says, and nothing else.
// A message changes the table of its sender; what is true is then decided by pure functions
// over all tables: of zones in zoneagree.go, of hosts in hostagree.go.

// replica is what one reflector says.
type replica struct {
	id      netip.Addr
	up      bool
	synced  bool   // its sync is complete in this session
	heard   bool   // it has completed a sync since the start
	session uint32 // number of its session, from 1
	whole   uint32 // of the last one in which a sync was complete

	zones   *zoneTable     // whole, and stands while the reflector is silent; nil: not whole yet
	staged  *zoneTable     // of a full sync whose zones are not all there yet
	pending []*wire.Update // zones and settings of a change whose end is not there yet

	hosts map[zone.HostKey]saidHost
	ended map[zone.HostKey]ending // hosts that their devices have withdrawn
	// endings are the same, and some that do not stand any more, in the order of their time.
	endings []endedHost

	fences map[zone.HostKey]saidFence
	fenced int // peers of all of them

	pos     wire.Stamp      // of its log: what was received last
	clean   bool            // pos covers all that was said
	kind    wire.ResumeKind // how the present session began
	members []netip.Addr
}

// saidHost is a host as a reflector says it.
type saidHost struct {
	host    *zone.Host // replaced, never changed
	stamp   wire.Stamp // of its device: the state that this is of
	session uint32     // in which it was said last
	// overruled: the reflector was silent when another one withdrew the host, and was not
	// heard of it since.
	overruled bool
}

// ending is a host that its device has withdrawn. A reflector that has not heard of it yet
// must not bring the host back.
type ending struct {
	stamp wire.Stamp
	at    time.Time
}

type endedHost struct {
	key zone.HostKey
	at  time.Time
}

// endingTime is how long a withdrawal is remembered: longer than any reflector that
// lost the device keeps its records, unless its grace time is extraordinary.
const endingTime = 10 * time.Minute

// sure reports whether a reflector with a session says the host in that session, or resumed it.
func (s *replica) sure(h *saidHost) bool { return s.up && h.session == s.session }

// replicas are the tables of all reflectors, and what follows from them.
type replicas struct {
	self      netip.Addr
	agreement Agreement
	expected  int          // reflectors that are configured
	addrs     []netip.Addr // at these addresses; may be empty
	wait      time.Duration
	waitUntil time.Time // zero: nobody was heard yet
	waited    bool      // who was not heard until now is not waited for
	live      bool      // it was complete once
	most      room

	list []replica

	recalled recalled // what is in force of before the start

	// What is in force.
	voices    []int // replicas whose zones count
	settings  *wire.Settings
	hosts     map[zone.HostKey]knownHost
	disputes  map[zone.HostKey]*dispute         // hosts about whose claim they differ
	fences    map[zone.HostKey][]wire.FencePeer // without those that are empty
	unfenced  map[zone.HostKey]struct{}         // of which fences is to be decided anew
	differing map[string]struct{}               // zones about which the voices differ
	split     map[string]struct{}               // zones about which members of one cluster differ
}

// knownHost is a host in force.
type knownHost struct {
	host  *zone.Host // but for its claim
	claim zone.Claim
}

func (h knownHost) record() *zone.Host { return h.said(h.claim) }

// said is the host with a claim.
func (h knownHost) said(c zone.Claim) *zone.Host {
	out := *h.host
	out.Claim = c
	return &out
}

func newReplicas(self netip.Addr) replicas {
	return replicas{
		self: self, expected: 1, wait: DefaultReflectorWait, most: fullRoom,
		hosts: map[zone.HostKey]knownHost{}, disputes: map[zone.HostKey]*dispute{},
		differing: map[string]struct{}{}, split: map[string]struct{}{},
	}
}

func (l *replicas) index(id netip.Addr) (i int, up bool) {
	for i := range l.list {
		if l.list[i].id == id {
			return i, l.list[i].up
		}
	}
	return -1, false
}

// begin opens a new session of a reflector.
func (l *replicas) begin(id netip.Addr) error {
	i, _ := l.index(id)
	if i < 0 {
		if len(l.list) == wire.MaxReflectors {
			return &wire.LimitError{What: "reflectors", Key: "reflector " + id.String(), Limit: wire.MaxReflectors}
		}
		l.list = append(l.list, replica{id: id, hosts: map[zone.HostKey]saidHost{}, ended: map[zone.HostKey]ending{}})
		i = len(l.list) - 1
	}
	s := &l.list[i]
	s.up, s.synced, s.kind = true, false, wire.ResumeKind{}
	s.session++
	return nil
}

// up are the reflectors with a session, sorted.
func (l *replicas) up() []netip.Addr {
	var out []netip.Addr
	for i := range l.list {
		if l.list[i].up {
			out = append(out, l.list[i].id)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// missing reports whether a reflector was never heard since the start.
func (l *replicas) missing() bool {
	n := 0
	for i := range l.list {
		if l.list[i].heard {
			n++
		}
	}
	return l.expected > 1 && n < l.expected && n+l.spokenFor() < l.expected
}

// spokenFor is how many of the configured reflectors were never heard themselves, but are
// members of a cluster of which another one was.
func (l *replicas) spokenFor() int {
	n := 0
	for _, addr := range l.addrs {
		if i, _ := l.index(addr); i >= 0 && l.list[i].heard {
			continue
		}
		if slices.ContainsFunc(l.list, func(s replica) bool { return s.heard && slices.Contains(s.members, addr) }) {
			n++
		}
	}
	return n
}

// synced reports whether everybody who is waited for was heard. It stays so.
func (l *replicas) synced() bool {
	if !l.live {
		l.live = slices.ContainsFunc(l.list, func(s replica) bool { return s.heard }) && (l.waited || !l.missing())
	}
	return l.live
}
