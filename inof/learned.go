package inof

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// source is a reflector of a client.
type source struct {
	id  netip.Addr
	up  bool
	gen uint32 // number of its session, from 1: what it says now is marked with it
}

// words is who said a record: for each reflector the session in which it last did,
// 0 if it does not say it.
type words [MaxReflectors]uint32

type learnedZone struct {
	said words
	rec  zone.Zone
}

type learnedHost struct {
	said words
	rec  zone.Host
}

type learnedFault struct {
	said words
	rec  FaultRecord
}

type portKey struct {
	device netip.Addr
	port   string
}

// learned is what a client has learned from its reflectors. A record is gone when
// no reflector with a session says it any more; that a reflector is silent, lost or
// still in its sync withdraws nothing.
type learned struct {
	sources  []source
	settings *Settings
	zones    map[string]*learnedZone
	hosts    map[zone.HostKey]*learnedHost
	faults   map[portKey]*learnedFault
	synced   bool
}

func newLearned() learned {
	return learned{zones: map[string]*learnedZone{}, hosts: map[zone.HostKey]*learnedHost{}, faults: map[portKey]*learnedFault{}}
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
// when its sync ends.
func (l *learned) begin(id netip.Addr) error {
	i, _ := l.index(id)
	if i < 0 {
		if len(l.sources) == MaxReflectors {
			return &LimitError{What: "reflectors", Key: "reflector " + id.String(), Limit: MaxReflectors}
		}
		l.sources = append(l.sources, source{id: id})
		i = len(l.sources) - 1
	}
	l.sources[i].up = true
	l.sources[i].gen++
	return nil
}

func (l *learned) end(id netip.Addr) {
	if i, ok := l.index(id); ok {
		l.sources[i].up = false
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

// unsay takes back reflector i's word and tells whether nobody with a session
// holds the record any more.
func (l *learned) unsay(w *words, i int) bool {
	w[i] = 0
	return !l.said(w)
}

// said tells whether a reflector with a session has said the record in it.
func (l *learned) said(w *words) bool {
	for j := range l.sources {
		if s := &l.sources[j]; s.up && w[j] == s.gen {
			return true
		}
	}
	return false
}

func (l *learned) setSettings(s *Settings) *Settings {
	if s == nil || (l.settings != nil && *l.settings == *s) {
		return nil
	}
	v := *s
	l.settings = &v
	return &v
}

func (l *learned) zone(i int, r *ZoneRecord, a *Applied) {
	e := l.zones[r.Zone.Name]
	switch {
	case r.Op == Put && e == nil:
		e = &learnedZone{rec: r.Zone}
		l.zones[r.Zone.Name] = e
		e.said[i] = l.sources[i].gen
		a.Zones = append(a.Zones, *r)
	case r.Op == Put:
		e.said[i] = l.sources[i].gen
		if !slices.Equal(e.rec.Members, r.Zone.Members) {
			e.rec = r.Zone
			a.Zones = append(a.Zones, *r)
		}
	case e != nil && l.unsay(&e.said, i):
		delete(l.zones, r.Zone.Name)
		a.Zones = append(a.Zones, ZoneRecord{Op: Withdraw, Zone: zone.Zone{Name: r.Zone.Name}})
	}
}

func (l *learned) host(i int, r *HostRecord, a *Applied) {
	k := r.Host.HostKey
	e := l.hosts[k]
	switch {
	case r.Op == Put && e == nil:
		e = &learnedHost{rec: r.Host}
		l.hosts[k] = e
		e.said[i] = l.sources[i].gen
		a.Hosts = append(a.Hosts, *r)
		a.Placed = append(a.Placed, k)
	case r.Op == Put:
		if gen := l.sources[i].gen; e.said[i] != gen {
			e.said[i] = gen
			a.Placed = append(a.Placed, k)
		}
		if !sameHost(&e.rec, &r.Host) {
			e.rec = r.Host
			a.Hosts = append(a.Hosts, *r)
		}
	case e != nil && l.unsay(&e.said, i):
		delete(l.hosts, k)
		a.Hosts = append(a.Hosts, HostRecord{Op: Withdraw, Host: zone.Host{HostKey: k}, Why: r.Why})
	}
}

func (l *learned) fault(i int, r *FaultRecord, a *Applied) {
	k := portKey{r.Device, r.Port}
	e := l.faults[k]
	switch {
	case r.Op == Put && e == nil:
		e = &learnedFault{rec: *r}
		l.faults[k] = e
		e.said[i] = l.sources[i].gen
		a.Faults = append(a.Faults, *r)
	case r.Op == Put:
		e.said[i] = l.sources[i].gen
		if !sameFault(&e.rec, r) {
			e.rec = *r
			a.Faults = append(a.Faults, *r)
		}
	case e != nil && l.unsay(&e.said, i):
		delete(l.faults, k)
		a.Faults = append(a.Faults, FaultRecord{Op: Withdraw, Device: r.Device, Port: r.Port})
	}
}

// sweep ends the full sync of reflector i: its word stands only for what it said
// in this session. Hosts that go with it have the reason "aged out", as nobody
// told another one.
func (l *learned) sweep(i int, a *Applied) {
	l.synced = true
	gen := l.sources[i].gen
	stale := func(w *words) bool { return w[i] != 0 && w[i] != gen }
	for _, e := range l.zones {
		if stale(&e.said) {
			l.zone(i, &ZoneRecord{Op: Withdraw, Zone: e.rec}, a)
		}
	}
	for _, e := range l.hosts {
		if stale(&e.said) {
			l.host(i, &HostRecord{Op: Withdraw, Host: e.rec, Why: snsd.ReasonAgedOut}, a)
		}
	}
	for _, e := range l.faults {
		if stale(&e.said) {
			l.fault(i, &FaultRecord{Op: Withdraw, Device: e.rec.Device, Port: e.rec.Port}, a)
		}
	}
	b := batch{Zones: a.Zones, Hosts: a.Hosts, Faults: a.Faults}
	b.sort()
}
