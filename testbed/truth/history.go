package truth

import (
	"net/netip"
	"slices"
	"time"
)

// says reports whether the word is true during a stretch of time.
func (s stretch) says(w Word) bool {
	for x, doubt := range s.doubt {
		if !doubt {
			continue
		}
		if !w.Active && w.Reason == reasonOf[x] {
			return true
		}
		s.cond[x] = false
	}
	return s.cond.says(w)
}

// says reports whether the word is true when this is how things are.
func (c cond) says(w Word) bool {
	if w.Active {
		return c.active()
	}
	for x, bad := range c {
		if bad && reasonOf[x] == w.Reason {
			return true
		}
	}
	return false
}

// stretch is a time during which nothing changed for a pair; it ends where the next
// one begins.
type stretch struct {
	from  time.Time
	cond  cond
	doubt cond // causes that may be good or bad
	trip  int  // number of the port's fault, while it is in doubt whether the switch has found it
}

// same reports whether nothing but the time is different.
func (s stretch) same(o stretch) bool {
	return s.cond == o.cond && s.doubt == o.doubt && s.trip == o.trip
}

// History is how the facts came about: what was true of every pair, and when. Changes are
// entered right before they are made, in the order of time.
type History struct {
	*Facts
	doubts map[[2]netip.Addr]int // reasons to be in doubt about a path
	trip   map[netip.Addr]int    // number of the last fault of an address's port
	lines  map[Pair][]stretch
}

// NewHistory begins with every cable plugged and nobody registered.
func NewHistory(places []Place, zones map[string][]netip.Addr, at time.Time) *History {
	t := &History{Facts: NewFacts(places, zones), doubts: map[[2]netip.Addr]int{}, trip: map[netip.Addr]int{}, lines: map[Pair][]stretch{}}
	t.refresh(at)
	return t
}

// SetLink enters that the cable of an address is plugged or pulled.
func (t *History) SetLink(addr netip.Addr, up bool, at time.Time) {
	t.Facts.SetLink(addr, up)
	t.refresh(at)
}

// SetAgent enters that an address registers, or is withdrawn.
func (t *History) SetAgent(addr netip.Addr, here bool, at time.Time) {
	t.Facts.SetAgent(addr, here)
	t.refresh(at)
}

// SetPath enters that two access devices reach each other, or not.
func (t *History) SetPath(a, b netip.Addr, good bool, at time.Time) {
	t.Facts.SetPath(a, b, good)
	t.refresh(at)
}

// DoubtPath enters that packets between two access devices may or may not get
// through, as of some that are lost, or of all for a short time. Every call with true
// is ended by one with false.
func (t *History) DoubtPath(a, b netip.Addr, on bool, at time.Time) {
	if on {
		t.doubts[path(a, b)]++
	} else {
		t.doubts[path(a, b)]--
	}
	t.refresh(at)
}

// SetPort enters how far the port of an address is with damaged frames. When its
// switch finds them is its own affair: from PortDamaged on the others may be told that
// it fails, and it must be so once the switch has shut the port.
func (t *History) SetPort(addr netip.Addr, is Phase, at time.Time) {
	if is == PortDamaged {
		t.trip[addr]++
	}
	t.Facts.SetPort(addr, is)
	t.refresh(at)
}

// SetZone enters the members of a zone.
func (t *History) SetZone(name string, members []netip.Addr, at time.Time) {
	t.Facts.SetZone(name, members)
	t.refresh(at)
}

// refresh notes what has changed for each pair.
func (t *History) refresh(at time.Time) {
	for _, p := range t.pairs {
		h, _ := t.Place(p.Host)
		s, _ := t.Place(p.Subject)
		next := stretch{from: at, cond: t.of(p), doubt: cond{byPath: t.doubts[path(h.Device, s.Device)] > 0, byPort: t.ports[p.Subject] == PortDamaged}}
		if next.doubt[byPort] {
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
func (t *History) now(p Pair) stretch { return t.lines[p][len(t.lines[p])-1] }

// since gives the stretches of a pair that end after a moment.
func (t *History) since(p Pair, at time.Time) []stretch {
	line := t.lines[p]
	i := len(line) - 1
	for i > 0 && line[i].from.After(at) {
		i--
	}
	return line[max(i, 0):]
}

// trim forgets what ended before a moment.
func (t *History) trim(at time.Time) {
	for _, p := range t.pairs {
		t.lines[p] = slices.Clone(t.since(p, at))
	}
}
