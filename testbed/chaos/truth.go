package chaos

import (
	"net/netip"
	"slices"
	"time"
)

// Place is where an address is.
type Place struct {
	Addr   netip.Addr
	Node   string     // the host
	Agent  string     // the process of the host that registers it
	Switch string     // access switch, a node
	Port   string     // access port
	Device netip.Addr // device id of the access switch
	Role   string     // of the host: initiator, target or both
	Like   bool       // its agent has the habits of the existing one: see Judge.Hear
}

// concern tells whether hosts of two roles are told of each other.
func concern(a, b string) bool { return a != b || a != "initiator" && a != "target" }

// Reasons as they appear in notices.
const (
	linkDown = "link-down"
	zoneGone = "zone-changed"
	agedOut  = "aged-out"
	bfdDown  = "bfd-down"
	damaged  = "packet-error"
)

// cause is one of the independent things that must be well for a subject to be
// active to a host.
type cause uint8

const (
	byZone  cause = iota // the two share a zone, and their roles concern each other
	byLink               // the subject's port has carrier
	byAgent              // the subject is registered
	byPath               // the two access devices reach each other
	byPort               // the subject's port is not shut because of damaged frames
	causes
)

// reasonOf is what a notice says when a cause makes a subject inactive.
var reasonOf = [causes]string{byZone: zoneGone, byLink: linkDown, byAgent: agedOut, byPath: bfdDown, byPort: damaged}

// cond tells for each cause whether it is bad.
type cond [causes]bool

func (c cond) active() bool { return c == cond{} }

// word is what a notice says of a subject.
type word struct {
	active bool
	reason string // of one that is inactive
}

// says tells whether the word is true during a stretch of time.
func (s stretch) says(w word) bool {
	for x, doubt := range s.doubt {
		if !doubt {
			continue
		}
		if !w.active && w.reason == reasonOf[x] {
			return true
		}
		s.cond[x] = false
	}
	return s.cond.says(w)
}

// says tells whether the word is true when this is how things are.
func (c cond) says(w word) bool {
	if w.active {
		return c.active()
	}
	for x, bad := range c {
		if bad && reasonOf[x] == w.reason {
			return true
		}
	}
	return false
}

// Pair is a host address and an address that it may be told of.
type Pair struct{ Host, Subject netip.Addr }

// stretch is a time during which nothing changed for a pair; it ends where the next
// one begins.
type stretch struct {
	from  time.Time
	cond  cond
	doubt cond // causes that may be good or bad
	trip  int  // number of the port's fault, while it is in doubt whether the switch has found it
}

// same tells whether nothing but the time is different.
func (s stretch) same(o stretch) bool {
	return s.cond == o.cond && s.doubt == o.doubt && s.trip == o.trip
}

// phase is how far a port is with damaged frames.
type phase uint8

const (
	portWell    phase = iota
	portDamaged       // they arrive: once they are found the others are told, and then the port is shut
	portShut          // by its switch
	portOpening       // it has no carrier yet
)

// Truth is what is true of every pair and when it was: it follows what is done to the lab.
// Changes are entered right before they are made, in the order of time.
type Truth struct {
	places []Place
	zones  map[string][]netip.Addr
	link   map[netip.Addr]bool    // false: the cable is pulled
	agent  map[netip.Addr]bool    // false: withdrawn
	paths  map[[2]netip.Addr]bool // true: bad
	doubts map[[2]netip.Addr]int  // reasons to be in doubt about it
	ports  map[netip.Addr]phase   // of the port of an address
	trip   map[netip.Addr]int     // number of the last fault of that port
	lines  map[Pair][]stretch
	pairs  []Pair // sorted
}

// NewTruth begins with every cable plugged and nobody registered.
func NewTruth(places []Place, zones map[string][]netip.Addr, at time.Time) *Truth {
	t := &Truth{places: places, zones: map[string][]netip.Addr{}, link: map[netip.Addr]bool{}, agent: map[netip.Addr]bool{},
		paths: map[[2]netip.Addr]bool{}, doubts: map[[2]netip.Addr]int{}, ports: map[netip.Addr]phase{}, trip: map[netip.Addr]int{},
		lines: map[Pair][]stretch{}}
	for name, members := range zones {
		t.zones[name] = slices.Clone(members)
	}
	for _, p := range places {
		t.link[p.Addr] = true
		for _, q := range places {
			if p.Addr != q.Addr {
				t.pairs = append(t.pairs, Pair{p.Addr, q.Addr})
			}
		}
	}
	t.refresh(at)
	return t
}

// SetLink enters that the cable of an address is plugged or pulled.
func (t *Truth) SetLink(addr netip.Addr, up bool, at time.Time) {
	t.link[addr] = up
	t.refresh(at)
}

// SetAgent enters that an address registers, or is withdrawn.
func (t *Truth) SetAgent(addr netip.Addr, here bool, at time.Time) {
	t.agent[addr] = here
	t.refresh(at)
}

// SetPath enters that two access devices reach each other, or not: then each one's
// hosts are unreachable (bfd-down) to the hosts of the other one.
func (t *Truth) SetPath(a, b netip.Addr, good bool, at time.Time) {
	t.paths[path(a, b)] = !good
	t.refresh(at)
}

// DoubtPath enters that packets between two access devices may or may not get
// through, as of some that are lost, or of all for a short time. Every call with true
// is ended by one with false.
func (t *Truth) DoubtPath(a, b netip.Addr, on bool, at time.Time) {
	if on {
		t.doubts[path(a, b)]++
	} else {
		t.doubts[path(a, b)]--
	}
	t.refresh(at)
}

// SetPort enters how far the port of an address is with damaged frames. When its
// switch finds them is its own affair: from portDamaged on the others may be told that
// it fails, and it must be so once the switch has shut the port.
func (t *Truth) SetPort(addr netip.Addr, is phase, at time.Time) {
	if is == portDamaged {
		t.trip[addr]++
	}
	t.ports[addr] = is
	t.refresh(at)
}

// path names the path between two devices, whichever comes first.
func path(a, b netip.Addr) [2]netip.Addr {
	if b.Less(a) {
		a, b = b, a
	}
	return [2]netip.Addr{a, b}
}

// SetZone enters the members of a zone.
func (t *Truth) SetZone(name string, members []netip.Addr, at time.Time) {
	t.zones[name] = slices.Clone(members)
	t.refresh(at)
}

// Members gives the members of a zone.
func (t *Truth) Members(zone string) []netip.Addr { return slices.Clone(t.zones[zone]) }

// Place finds where an address is.
func (t *Truth) Place(addr netip.Addr) (Place, bool) {
	i := slices.IndexFunc(t.places, func(p Place) bool { return p.Addr == addr })
	if i < 0 {
		return Place{}, false
	}
	return t.places[i], true
}

func (t *Truth) share(a, b netip.Addr) bool {
	for _, members := range t.zones {
		if slices.Contains(members, a) && slices.Contains(members, b) {
			return true
		}
	}
	return false
}

// refresh notes what has changed for each pair.
func (t *Truth) refresh(at time.Time) {
	for _, p := range t.pairs {
		h, _ := t.Place(p.Host)
		s, _ := t.Place(p.Subject)
		way, is := path(h.Device, s.Device), t.ports[p.Subject]
		next := stretch{from: at,
			cond: cond{byZone: !t.share(p.Host, p.Subject) || !concern(h.Role, s.Role), byLink: !t.link[p.Subject] || is == portOpening, byAgent: !t.agent[p.Subject],
				byPath: t.paths[way], byPort: is == portShut},
			doubt: cond{byPath: t.doubts[way] > 0, byPort: is == portDamaged}}
		if is == portDamaged {
			next.trip = t.trip[p.Subject]
		}
		line := t.lines[p]
		if n := len(line); n > 0 && line[n-1].same(next) {
			continue
		}
		t.lines[p] = append(line, next)
	}
}

// now gives how things are for a pair.
func (t *Truth) now(p Pair) stretch { return t.lines[p][len(t.lines[p])-1] }

// since gives the stretches of a pair that end after a moment.
func (t *Truth) since(p Pair, at time.Time) []stretch {
	line := t.lines[p]
	i := len(line) - 1
	for i > 0 && line[i].from.After(at) {
		i--
	}
	return line[max(i, 0):]
}

// trim forgets what ended before a moment.
func (t *Truth) trim(at time.Time) {
	for _, p := range t.pairs {
		t.lines[p] = slices.Clone(t.since(p, at))
	}
}
