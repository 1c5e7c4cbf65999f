package sim

import (
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/truth"
)

// This file checks that why a host is told that another one is inactive has been so. A switch may
// hear of it late, and of what is over already: but when the fabric was at rest all knew all there
// was, so that what is told later has been so since the last rest before the word that it follows.

// fate is when something became of an address last.
type fate struct {
	// down is when a host with it was not heard since its port was down, or heard before its switch
	// knew that the port is up again.
	down    time.Duration
	gone    time.Duration // a switch dropped a registration
	claimed time.Duration // a switch heard one that was new, or of another service
}

func (w *world) fate(a netip.Addr) *fate {
	if w.fates[a] == nil {
		w.fates[a] = &fate{-1, -1, -1}
	}
	return w.fates[a]
}

// turned notes what becomes of the addresses in the table of a switch.
func (w *world) turned(before, after table) {
	is := func(c claimant) func(claimant) bool {
		return func(o claimant) bool { return o.link == c.link && o.key == c.key && o.addr == c.addr }
	}
	for _, c := range before {
		if !c.confirmed || !c.link.seen {
			w.fate(c.addr).down = w.now
		}
		if !slices.ContainsFunc(after, is(c)) {
			w.fate(c.addr).gone = w.now
		}
	}
	for _, c := range after {
		if !c.confirmed || !c.link.seen {
			w.fate(c.addr).down = w.now
		}
		if i := slices.IndexFunc(before, is(c)); i < 0 || before[i].svc != c.svc || before[i].mac != c.mac {
			w.fate(c.addr).claimed = w.now
		}
	}
}

// unfounded reports whether the reason for which a subject is told to be inactive has not been true
// since the last rest before the word that it follows.
func (w *world) unfounded(n snsd.Notice, last *spoken) bool {
	follows := time.Duration(0)
	if last != nil {
		if follows = last.at; n.Reason == snsd.ReasonIPChanged { // a host told to keep trying heard nothing of a move
			follows = last.active
		}
	}
	var since time.Duration
	for _, rest := range w.rests {
		if rest <= follows {
			since = rest
		}
	}
	t := w.truth() // what has run out is gone, and known to be
	if w.haunted(n.Subject) || w.haunted(n.Host) {
		return false // what was said before a switch lost its state is taken for true
	}
	// One that registers is another machine perhaps, of another role, and in other zones.
	registered := false
	for _, a := range []netip.Addr{n.Host, n.Subject} {
		f := w.fate(a)
		registered = registered || max(f.gone, f.claimed) >= since || len(t.claims[a]) > 1
	}
	zoned := w.zoned >= since || w.differ() || !truth.Common(t.zones[n.Host], t.zones[n.Subject])
	switch n.Reason {
	case snsd.ReasonLinkDown:
		return w.fate(n.Subject).down < since && !slices.ContainsFunc(t.claims[n.Subject], func(p place) bool { return !p.reachable })
	case snsd.ReasonIPChanged:
		return !registered
	case snsd.ReasonAgedOut, snsd.ReasonZoneChanged: // who was away cannot tell the one from the other
		return !registered && !zoned && !w.without(n.Subject)
	}
	return true // nothing causes it here
}

// without reports whether a switch that has an address is not there: a reflector that lost its state
// meanwhile does not know of it, and says so when it has waited long enough.
func (w *world) without(a netip.Addr) bool {
	return slices.ContainsFunc(w.devices, func(d *device) bool {
		return !(d.running && d.hearsAll()) && slices.ContainsFunc(d.seen, func(c claimant) bool { return c.addr == a })
	})
}
