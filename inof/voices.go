package inof

import (
	"slices"

	"github.com/openinof/inof/zone"
)

// Who has an address that several hosts claim the reflectors say with each host. A client
// keeps the holder that it knows until every reflector with a session names another.

// claims gives what the reflectors say of a host's claim together.
func (l *learned) claims(e *learnedHost) zone.Claim {
	holder, rival, silent := false, false, false
	for j := range l.sources {
		switch {
		case e.said[j] == 0:
			silent = silent || l.sources[j].up
		case !l.sources[j].up:
		case e.rival&(1<<j) != 0:
			rival = true
		default:
			holder = true
		}
	}
	switch {
	case rival && !holder:
		return zone.ClaimRival
	case holder && !rival && !silent:
		return zone.ClaimHolder
	}
	return zone.ClaimOpen
}

// hearClaim notes what reflector i says of a host's claim.
func (e *learnedHost) hearClaim(i int, c zone.Claim) {
	e.rival &^= 1 << i
	if c == zone.ClaimRival {
		e.rival |= 1 << i
	}
}

// claim tells of a host's claim if the reflectors say something else of it now.
func (l *learned) claim(e *learnedHost, a *Applied) {
	if c := l.claims(e); c != e.rec.Claim && !e.void {
		e.rec.Claim = c
		a.Claims = append(a.Claims, e.rec)
	}
}

// recount is claim for all hosts, when a reflector has come or gone.
func (l *learned) recount(a *Applied) {
	for _, e := range l.hosts {
		l.claim(e, a)
	}
	slices.SortFunc(a.Claims, func(x, y zone.Host) int { return compareKeys(x.HostKey, y.HostKey) })
}
