package link

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
)

// Limits of wrong passwords from one source: an IPv4 address or an IPv6 /64.
const (
	guessBurst      = 20              // at once
	guessEvery      = 2 * time.Second // one more; a device that dials in good faith needs longer
	maxGuessSources = 4096            // all others share one allowance
)

// Guesses limits how often a source may try a wrong password. The zero value is ready.
type Guesses struct {
	sources map[netip.Prefix]*guesser
}

// guesser is what is known of a source.
type guesser struct {
	clear time.Time // when all its wrong passwords are forgiven
	told  bool      // that it is refused
}

// sourceOf is what counts as one source of connections from an address with its port;
// what is no address of a network is one too.
func sourceOf(from string) netip.Prefix {
	ap, err := netip.ParseAddrPort(from)
	if err != nil {
		return netip.Prefix{}
	}
	bits := 64
	ip := ap.Addr().Unmap().WithZone("")
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits)
	return p
}

// at gives the entry of a source, that of all others, or nil.
func (g *Guesses) at(p netip.Prefix) *guesser {
	if e := g.sources[p]; e != nil {
		return e
	}
	return g.sources[netip.Prefix{}] // nil but while the table is full
}

// Check reports whether a source may try. The error is for the peer; first says that it
// is the first since the source could.
func (g *Guesses) Check(from string, now time.Time) (first bool, err error) {
	e := g.at(sourceOf(from))
	if e == nil || e.clear.Sub(now) <= (guessBurst-1)*guessEvery {
		return false, nil
	}
	first, e.told = !e.told, true
	return first, &wire.ProtocolError{Code: wire.CodeLimit, Where: "password", Detail: fmt.Sprintf("%d wrong ones came from this address; one more try each %v", guessBurst, guessEvery)}
}

// Failed counts a wrong password.
func (g *Guesses) Failed(from string, now time.Time) {
	p := sourceOf(from)
	if g.sources[p] == nil && len(g.sources) >= maxGuessSources-1 {
		g.prune(now)
		if len(g.sources) >= maxGuessSources-1 {
			p = netip.Prefix{}
		}
	}
	if g.sources == nil {
		g.sources = map[netip.Prefix]*guesser{}
	}
	e := g.sources[p]
	if e == nil {
		e = &guesser{}
		g.sources[p] = e
	}
	if e.clear.Before(now) {
		e.clear, e.told = now, false
	}
	e.clear = e.clear.Add(guessEvery)
}

// prune forgets the forgiven.
func (g *Guesses) prune(now time.Time) {
	for p, e := range g.sources {
		if !e.clear.After(now) {
			delete(g.sources, p)
		}
	}
}

// Right forgives a source that knows the password.
func (g *Guesses) Right(from string) {
	delete(g.sources, sourceOf(from))
}

// guessed reports whether a session ended because its peer does not know the password.
func guessed(err error) bool {
	p, ok := errors.AsType[*wire.ProtocolError](err)
	return ok && p.Code == wire.CodeAuthFailed
}
