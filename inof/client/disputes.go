package client

import (
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
func (l *replicas) claims(k zone.HostKey) zone.Claim {
	holder, rival, silent := l.claimed(k)
	switch {
	case !holder && !rival && !silent:
		if h, known := l.hosts[k]; known {
			return h.claim
		}
	case holder && rival:
		if d := l.disputes[k]; d != nil && d.decided {
			return l.firstClaim(k)
		}
	case rival:
		return zone.ClaimRival
	case holder && !silent:
		return zone.ClaimHolder
	}
	return zone.ClaimOpen
}

// claimed tells what reflectors with a session say of a host's claim, and whether one of them
// says nothing of the host.
func (l *replicas) claimed(k zone.HostKey) (holder, rival, silent bool) {
	for j := range l.list {
		s := &l.list[j]
		switch h, says := s.hosts[k]; {
		case !s.up:
		case !says:
			silent = true
		case h.host.Claim == zone.ClaimRival:
			rival = true
		default:
			holder = true
		}
	}
	return holder, rival, silent
}

// firstClaim is what the reflector with the lowest id says of a host's claim.
func (l *replicas) firstClaim(k zone.HostKey) zone.Claim {
	var first *replica
	for j := range l.list {
		if s := &l.list[j]; s.up && (first == nil || s.id.Less(first.id)) {
			first = s
		}
	}
	switch h, says := first.hosts[k]; {
	case !says:
		return zone.ClaimOpen
	case h.host.Claim == zone.ClaimRival:
		return zone.ClaimRival
	}
	return zone.ClaimHolder
}

// claim is claims, and notes whether the reflectors differ.
func (l *replicas) claim(k zone.HostKey, now time.Time) zone.Claim {
	switch holder, rival, _ := l.claimed(k); {
	case !holder || !rival:
		delete(l.disputes, k)
	case l.disputes[k] == nil:
		l.disputes[k] = &dispute{since: now}
	}
	return l.claims(k)
}

// reclaim tells of the claim of a host if it is another one now.
func (l *replicas) reclaim(k zone.HostKey, a *Applied, now time.Time) {
	h := l.hosts[k]
	if c := l.claim(k, now); c != h.claim {
		h.claim = c
		l.hosts[k] = h
		a.Claims = append(a.Claims, *h.record())
	}
}

// recount is reclaim for all hosts, when a reflector has come or gone.
func (l *replicas) recount(a *Applied, now time.Time) {
	if len(l.list) < 2 {
		return
	}
	for k := range l.hosts {
		if _, is := l.recalled.hosts[k]; !is {
			l.reclaim(k, a, now)
		}
	}
	a.sort()
}

// disputeAt is when the next dispute has lasted; zero: there is none, or not all reflectors with a
// session are in step.
func (l *replicas) disputeAt() (due time.Time) {
	for i := range l.list {
		if s := &l.list[i]; s.up && !s.synced {
			return time.Time{}
		}
	}
	for _, d := range l.disputes {
		if at := d.since.Add(disputeAfter); !d.decided && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}

// endDisputes has the first reflector decide where they have differed for so long.
func (l *replicas) endDisputes(a *Applied, now time.Time) {
	for k, d := range l.disputes { // the claims are sorted
		if !d.decided && !now.Before(d.since.Add(disputeAfter)) {
			d.decided = true
			l.reclaim(k, a, now)
		}
	}
	a.sort()
}
