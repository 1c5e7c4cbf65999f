package inof

import (
	"slices"
	"time"

	"github.com/openinof/inof/zone"
)

// Who has an address that several hosts claim the reflectors say with each host. A client
// keeps the holder that it knows until every reflector with a session names another. Where they
// go on naming different ones the one with the lowest id decides, at every client alike: the
// claims' own devices follow it, and by what these flag the other reflectors do.

// disputeAfter is how long reflectors that are in step name different holders until one of them
// decides: longer than a change takes to go around.
const disputeAfter = 2 * time.Second

// dispute is that the reflectors with a session differ about a host's claim.
type dispute struct {
	since   time.Time
	decided bool // it has lasted: the first of them decides
}

// claims gives what the reflectors say of a host's claim together. While none has a session
// their last word stands.
func (l *learned) claims(e *learnedHost) zone.Claim {
	holder, rival, silent := l.voices(e)
	switch {
	case !holder && !rival && !silent:
		return e.rec.Claim
	case holder && rival:
		if s := l.disputes[e.rec.HostKey]; s != nil && s.decided {
			return l.firstVoice(e)
		}
	case rival:
		return zone.ClaimRival
	case holder && !silent:
		return zone.ClaimHolder
	}
	return zone.ClaimOpen
}

// voices tells what reflectors with a session say of a host's claim, and whether one of them
// says nothing of the host.
func (l *learned) voices(e *learnedHost) (holder, rival, silent bool) {
	for j := range l.sources {
		switch {
		case !l.sources[j].up:
		case e.said[j] == 0:
			silent = true
		case e.rival&(1<<j) != 0:
			rival = true
		default:
			holder = true
		}
	}
	return holder, rival, silent
}

// firstVoice is what the reflector with the lowest id says of a host's claim.
func (l *learned) firstVoice(e *learnedHost) zone.Claim {
	first := -1
	for j := range l.sources {
		if s := &l.sources[j]; s.up && (first < 0 || s.id.Less(l.sources[first].id)) {
			first = j
		}
	}
	switch {
	case e.said[first] == 0:
		return zone.ClaimOpen
	case e.rival&(1<<first) != 0:
		return zone.ClaimRival
	}
	return zone.ClaimHolder
}

// hearClaim notes what reflector i says of a host's claim.
func (e *learnedHost) hearClaim(i int, c zone.Claim) {
	e.rival &^= 1 << i
	if c == zone.ClaimRival {
		e.rival |= 1 << i
	}
}

// claim tells of a host's claim if the reflectors say something else of it now.
func (l *learned) claim(e *learnedHost, a *Applied, now time.Time) {
	k := e.rec.HostKey
	switch holder, rival, _ := l.voices(e); {
	case !holder || !rival:
		delete(l.disputes, k)
	case l.disputes[k] == nil:
		l.disputes[k] = &dispute{since: now}
	}
	if c := l.claims(e); c != e.rec.Claim && !e.void {
		e.rec.Claim = c
		a.Claims = append(a.Claims, e.rec)
	}
}

// recount is claim for all hosts, when a reflector has come or gone.
func (l *learned) recount(a *Applied, now time.Time) {
	for _, e := range l.hosts {
		l.claim(e, a, now)
	}
	a.sortClaims()
}

// disputeAt is when the next dispute has lasted; zero: there is none, or not all reflectors with a
// session are in step.
func (l *learned) disputeAt() (due time.Time) {
	for i := range l.sources {
		if s := &l.sources[i]; s.up && !s.synced {
			return time.Time{}
		}
	}
	for _, s := range l.disputes {
		if at := s.since.Add(disputeAfter); !s.decided && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}

// endDisputes has the first reflector decide where they have differed for so long.
func (l *learned) endDisputes(a *Applied, now time.Time) {
	for k, s := range l.disputes { // the claims are sorted
		if !s.decided && !now.Before(s.since.Add(disputeAfter)) {
			s.decided = true
			l.claim(l.hosts[k], a, now)
		}
	}
	a.sortClaims()
}

func (a *Applied) sortClaims() {
	slices.SortFunc(a.Claims, func(x, y zone.Host) int { return compareKeys(x.HostKey, y.HostKey) })
}
