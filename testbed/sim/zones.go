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

// queried notes that a host asks for the zones of addresses, before it has registered them perhaps:
// its switch takes the host for what it registered there last of all that arrived.
func (w *world) queried(h *host, addrs []netip.Addr) {
	if h.link == nil {
		return
	}
	for _, c := range h.link.dev.seen {
		if c.link != h.link || c.mac != h.mac {
			continue
		}
		for _, a := range addrs {
			if is := (claim{h, c.svc.NQN, zone.Member{Device: h.link.dev.id, Port: h.link.port}}); !slices.Contains(w.asked[a], is) {
				w.asked[a] = append(w.asked[a], is)
			}
		}
	}
}

// known gives an address as it may be known: under any of its claims, or as the host that asked.
func (w *world) known(a netip.Addr) (out []truth.Known) {
	for _, c := range slices.Concat(w.claims[a], w.asked[a]) {
		out = append(out, truth.Known{Addr: a, NQNs: []string{c.nqn}, Ports: []zone.Member{c.port}})
	}
	return out
}

// holds notes that a device has heard all of the reflector's zones up to version v.
func (d *device) holds(r *device, v int) { d.held[r.id] = max(d.held[r.id], v) }
