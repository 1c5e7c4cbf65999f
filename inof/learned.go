package inof

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/zone"
)

// source is a reflector of a client.
type source struct {
	id     netip.Addr
	up     bool
	gen    uint32 // number of its session, from 1: what it says now is marked with it
	valid  uint32 // words of sessions before this one do not hold a record against another reflector
	since  uint32 // session of its last full sync
	synced bool   // its sync is complete in this session
	heard  bool   // it has completed a sync since the start: it has a word
	// What it said; kept while it is silent.
	settings *Settings
	placed   map[zone.HostKey]placement // own hosts that it has taken in

	// faults are those it says, as it says them: what a Change refers to.
	faults map[portKey]FaultRecord
	// states is the latest state of each device of which it said something.
	states map[netip.Addr]Stamp

	pos   Stamp      // of its log: what was received last
	clean bool       // pos covers all that was said
	kind  ResumeKind // how the present session began
	bulk  time.Time  // of the last message of its full sync, or the begin of the session

	cluster ClusterStamp // state of a cluster of which its word is
	next    ClusterStamp // the same, once its sync is complete
	partly  bool         // it has begun to say a later state
	fellows []netip.Addr // members of that cluster
}

// placement is an own host as a reflector placed it, and in which session.
type placement struct {
	host zone.Host
	gen  uint32
}

type learnedHost struct {
	claim
	rec   zone.Host
	rival uint8 // the reflectors that say another host has the address, by their numbers
}

type learnedFault struct {
	claim
	rec FaultRecord
}

type portKey struct {
	device netip.Addr
	port   string
}

// learned is what a client has learned from its reflectors. A record is gone when
// its device says so, or no reflector with a session says it any more; that a
// reflector is silent, lost or still in its sync withdraws nothing.
type learned struct {
	self       netip.Addr
	agreement  Agreement
	expected   int // reflectors that are configured
	wait       time.Duration
	waitUntil  time.Time // zero: nobody was heard yet
	waited     bool      // who was not heard until now is not waited for
	late       bool      // neither is who has not answered
	live       bool      // it was complete once
	everything bool      // interest: all

	most    room
	members int // of all words about zones

	sources    []source
	settings   *Settings // in force
	zones      map[string]*learnedZone
	differing  map[string]struct{}
	split      map[string]struct{} // zones about which the members of a cluster differ
	addrs      []netip.Addr        // of the configured reflectors; may be empty
	doubt      map[zone.HostKey]struct{}
	hosts      map[zone.HostKey]*learnedHost
	disputes   map[zone.HostKey]*dispute // hosts of whose claim the reflectors differ
	faults     map[portKey]*learnedFault
	goneHosts  tombs[zone.HostKey]
	goneFaults tombs[portKey]
	released   map[zone.HostKey]struct{} // own hosts told as placed
	ask        asking
}

// faultAfter gives what a reflector says of a fault after a record, as a whole.
func (s *source) faultAfter(r *FaultRecord) FaultRecord {
	said := s.faults[portKey{r.Device, r.Port}]
	return said.then(*r)
}

// says keeps what a reflector says of a fault.
func (s *source) says(whole *FaultRecord) {
	k := portKey{whole.Device, whole.Port}
	if whole.Op != Put {
		delete(s.faults, k)
		return
	}
	if s.faults == nil {
		s.faults = map[portKey]FaultRecord{}
	}
	s.faults[k] = *whole
}

func newLearned(self netip.Addr) learned {
	return learned{
		self: self, expected: 1, wait: DefaultReflectorWait, most: fullRoom,
		zones: map[string]*learnedZone{}, differing: map[string]struct{}{}, split: map[string]struct{}{}, hosts: map[zone.HostKey]*learnedHost{}, disputes: map[zone.HostKey]*dispute{},
		faults: map[portKey]*learnedFault{}, released: map[zone.HostKey]struct{}{},
		ask: newAsking(),
	}
}

func (l *learned) index(id netip.Addr) (int, bool) {
	for i := range l.sources {
		if l.sources[i].id == id {
			return i, l.sources[i].up
		}
	}
	return -1, false
}

// begin opens a new session of a reflector: only what it says from now on counts
// when a full sync ends.
func (l *learned) begin(id netip.Addr) error {
	i, _ := l.index(id)
	if i < 0 {
		if len(l.sources) == MaxReflectors {
			return &LimitError{What: "reflectors", Key: "reflector " + id.String(), Limit: MaxReflectors}
		}
		l.sources = append(l.sources, source{id: id, states: map[netip.Addr]Stamp{}})
		i = len(l.sources) - 1
	}
	s := &l.sources[i]
	s.up, s.synced, s.kind = true, false, ResumeKind{}
	s.gen++
	s.valid = s.gen
	s.next = ClusterStamp{}
	clear(l.released) // until it has placed them anew
	return nil
}

// reached notes of which state of a device a reflector speaks; host tells that it says
// a host there.
func (l *learned) reached(i int, dev netip.Addr, at Stamp, host bool) {
	states := l.sources[i].states
	if was, known := states[dev]; known && was.Before(at) || !known && host && at.Known() {
		states[dev] = at
	}
}

func (l *learned) end(id netip.Addr) {
	if i, ok := l.index(id); ok {
		l.sources[i].up, l.sources[i].synced = false, false
	}
}

// up are the reflectors with a session, sorted.
func (l *learned) up() []netip.Addr {
	var out []netip.Addr
	for _, s := range l.sources {
		if s.up {
			out = append(out, s.id)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// complete ends the sync of reflector i. After a full one its word stands only for
// what it said in this session; hosts that go with it have no reason, as nobody
// told one. After a resumed one everything it said before stands.
func (l *learned) complete(i int, m *EndOfSync, own map[zone.HostKey]zone.Host, a *Applied, now time.Time) {
	s := &l.sources[i]
	s.synced, s.heard = true, true
	if l.waitUntil.IsZero() {
		l.waitUntil = now.Add(l.wait)
	}
	if !l.waited && (!l.missing() || l.wait <= 0) {
		l.waited = true
	}
	if m.Resumed {
		s.valid = s.since
		l.revive(i, a)
	} else {
		s.since = s.gen
		l.sweep(i, m.Short, a, now)
		l.infer(i, a)
	}
	l.correct(i, a)
	for k := range s.placed {
		if _, ok := own[k]; !ok {
			delete(s.placed, k)
		}
	}
	l.judgeAll(a)
	l.releaseAll(own, a)
	l.reaskAll(now, -1)
	for _, d := range l.disputes {
		d.since = now
	}
	l.recount(a, now)
	a.sort()
}

// sweep takes back what reflector i did not repeat in this session, but nothing of devices of
// which it may know more than it has room for: that stands until another word ends it.
func (l *learned) sweep(i int, short []netip.Addr, a *Applied, now time.Time) {
	gen := l.sources[i].gen
	w := word{from: i, at: now}
	for name, z := range l.zones {
		if g := z.said[i].gen; g != 0 && g != gen {
			l.zone(i, &ZoneRecord{Op: Withdraw, Zone: zone.Zone{Name: name}}, a)
		}
	}
	for _, e := range l.hosts {
		if g := e.said[i]; g != 0 && g != gen && !slices.Contains(short, e.rec.Device) {
			l.host(w, &HostRecord{Op: Withdraw, Host: e.rec}, a)
		}
	}
	for _, e := range l.faults {
		if g := e.said[i]; g != 0 && g != gen && !slices.Contains(short, e.rec.Device) {
			l.fault(w, &FaultRecord{Op: Withdraw, Device: e.rec.Device, Port: e.rec.Port}, a)
		}
	}
	s := &l.sources[i]
	for k := range s.faults {
		if e := l.faults[k]; e == nil || e.said[i] == 0 {
			delete(s.faults, k)
		}
	}
}

func (a *Applied) sort() {
	(&batch{Zones: a.Zones, Hosts: a.Hosts, Faults: a.Faults}).sort()
	(&batch{Zones: a.Reserved}).sort()
}
