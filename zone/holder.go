package zone

import (
	"cmp"
	"slices"
	"strings"

	"github.com/openinof/inof/fabric"
)

// This file decides which host has an address that several claim. A claim is an attachment;
// the attachments that count as one host (see MultiPort) are one claimant. The rule is the
// same everywhere, at a reflector and at its clients; the first that tells two claims apart counts:
//
//  1. A claim in doubt, of a host whose frames do not come from where it says they do, comes
//     after any that is not: the port of that one alone decides, also when it is dead.
//  2. A claim that is alive, on a port without a fault of a device that is there, comes
//     before one that is dead; but one that was named a rival takes the address from none that
//     the reflectors name the holder. (A client has the zones of that one from them.)
//  3. A claim that was named the holder comes first, one that was named a rival, by its own
//     device or by the reflectors, last.
//  4. Who has the address keeps it.
//  5. The claim that arrived here first comes first.
//
// A reflector names exactly one holder by it, and its device, which follows, names its own
// host a rival when it takes another for the holder. No clock of a sender counts: Host.Since
// is for people.

// Claim is what is said of an attachment whose address may be claimed elsewhere too: by its
// device towards a reflector, by the reflectors towards a client.
type Claim uint8

const (
	ClaimHolder Claim = iota // the reflectors say that it has the address
	ClaimOpen                // nobody has decided, or the speakers differ; never on the wire
	ClaimRival               // another claim has the address
)

func (c Claim) String() string {
	switch c {
	case ClaimHolder:
		return "holder"
	case ClaimOpen:
		return "open"
	case ClaimRival:
		return "rival"
	}
	return "unknown"
}

// MultiPort says on how many ports one host (one MAC address) may be with one address and
// count as one: when one of the ports fails, the others keep it reachable. On ports of several
// devices it has to say the same NQN too, as a bond does, which sends one LLDPDU on all its ports.
type MultiPort uint8

const (
	MultiPortDevice MultiPort = iota // on several ports of one device: a bond
	MultiPortNever                   // on one port; another one is a rival claim
	MultiPortFabric                  // on ports of several devices too
)

// claimant is what several attachments have in common that are one claim; the zero value
// is nobody.
type claimant struct {
	known bool
	mac   fabric.MAC
	dev   uint32
	port  string
	nqn   string
	doubt bool // it is no port more of one that is not
}

func (d *Directory) claimantOf(a *attachment) claimant {
	switch d.multiPort {
	case MultiPortNever:
		return claimant{known: true, mac: a.mac, dev: a.dev, port: a.port, doubt: a.doubt}
	case MultiPortFabric:
		return claimant{known: true, mac: a.mac, nqn: a.service.NQN, doubt: a.doubt}
	}
	return claimant{known: true, mac: a.mac, dev: a.dev, doubt: a.doubt}
}

// counts reports whether attachment i is of the host that has the address.
func (d *Directory) counts(h *host, i int) bool {
	return i == 0 || d.claimantOf(&h.atts[i]) == d.claimantOf(&h.atts[0])
}

// standing is how strong a claimant is by the rules above.
type standing struct {
	doubt bool
	alive bool
	claim Claim
}

func (s standing) beats(o standing) bool { return s.rank() < o.rank() }

// rank is lower for a stronger claimant.
func (s standing) rank() int {
	rank := 3 + int(s.claim)
	switch {
	case s.alive && s.claim != ClaimRival:
		rank = int(s.claim)
	case s.claim == ClaimHolder:
		rank = 2
	case s.alive:
		rank = 3
	}
	if s.doubt {
		return rank + 10
	}
	return rank
}

// contend applies the rule to an address after one of its attachments, or what is known of
// it, has changed. Had is the claimant that had the address before. The attachment that
// has it is put first, the others are in the order of their arrival.
func (d *Directory) contend(h *host, had claimant) {
	if len(h.atts) > 1 {
		first := d.strongest(h, had)
		slices.SortStableFunc(h.atts, func(a, b attachment) int {
			switch x, y := a.order == first, b.order == first; {
			case x:
				return -1
			case y:
				return 1
			case a.order < b.order:
				return -1
			}
			return 1
		})
	}
	if had.known && len(h.atts) > 0 && d.claimantOf(&h.atts[0]) != had {
		h.moves++
	}
}

// strongest gives the order of the attachment that is to be first.
func (d *Directory) strongest(h *host, had claimant) uint64 {
	all := make(map[claimant]standing, 2)
	for i := range h.atts {
		a := &h.atts[i]
		c := d.claimantOf(a)
		s, known := all[c]
		if !known {
			s.claim = ClaimRival
		}
		all[c] = standing{a.doubt, s.alive || d.alive(a), min(s.claim, a.claim)}
	}
	best, was := 0, d.claimantOf(&h.atts[0])
	for i := range h.atts {
		is := d.claimantOf(&h.atts[i])
		switch {
		case is == was: // of one claimant the one that stands first, unless that is dead
			if d.alive(&h.atts[best]) || !d.alive(&h.atts[i]) {
				continue
			}
		case all[was].beats(all[is]):
			continue
		case all[is].beats(all[was]), is == had:
		case was == had, h.atts[best].order < h.atts[i].order:
			continue
		}
		best, was = i, is
	}
	return h.atts[best].order
}

// CompareKeys orders attachments by address, device and port.
func CompareKeys(a, b HostKey) int {
	return cmp.Or(a.Addr.Compare(b.Addr), a.Device.Compare(b.Device), strings.Compare(a.Port, b.Port))
}

func (d *Directory) alive(a *attachment) bool {
	return !a.down.Is() && !d.devs[a.dev].away
}
