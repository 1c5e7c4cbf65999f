package sim

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/testbed/truth"
	"github.com/openinof/inof/zone"
)

// history is every zone configuration there was, by version.
type history []zone.Set

type version struct {
	zone.Set
	n int
}

func (h history) at(n int) version { return version{h[n], n} }
func (h history) now() version     { return h.at(len(h) - 1) }

// claim is an address once registered: with what and where. Claims are kept for
// the whole run, since nobody can say how long somebody remembers them.
type claim struct {
	host *host
	nqn  string
	port zone.Member
}

func (w *world) claimed(h *host, r *registration) {
	c := claim{h, r.svc.NQN, zone.Member{Device: h.link.dev.id, Port: h.link.port}}
	if !slices.Contains(w.claims[r.addr], c) {
		w.claims[r.addr] = append(w.claims[r.addr], c)
	}
}

// known gives an address as it may be known: under any of its claims.
func (w *world) known(a netip.Addr) (out []truth.Known) {
	for _, c := range w.claims[a] {
		out = append(out, truth.Known{Addr: a, NQNs: []string{c.nqn}, Ports: []zone.Member{c.port}})
	}
	return out
}

// holds notes that a device has heard all of the reflector's zones up to version v.
func (d *device) holds(r *device, v int) { d.held[r.id] = max(d.held[r.id], v) }
