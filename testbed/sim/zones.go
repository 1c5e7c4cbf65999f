package sim

import (
	"net/netip"
	"slices"
	"strings"

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

// zonesOf says naively in which zones an address is, given every service and port
// under which it is known; sorted.
func zonesOf(s zone.Set, addr netip.Addr, nqns []string, ports []zone.Member) []string {
	var out []string
	for _, z := range s.Zones {
		if slices.ContainsFunc(z.Members, func(m zone.Member) bool {
			switch m.Kind {
			case zone.MemberAddr:
				return m.First == addr
			case zone.MemberRange:
				return m.First.Is4() == addr.Is4() && !addr.Less(m.First) && !m.Last.Less(addr)
			case zone.MemberNQN:
				return slices.Contains(nqns, m.NQN)
			}
			return slices.ContainsFunc(ports, func(p zone.Member) bool { return p.Device == m.Device && p.Port == m.Port })
		}) {
			out = append(out, z.Name)
		}
	}
	if len(out) == 0 && s.AutoJoin {
		out = []string{zone.DefaultName}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

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

// couldBe lists the zones of an address under any of its claims.
func (w *world) couldBe(set zone.Set, a netip.Addr) []string {
	var out []string
	for _, c := range w.claims[a] {
		for _, z := range zonesOf(set, a, []string{c.nqn}, []zone.Member{c.port}) {
			if !slices.Contains(out, z) {
				out = append(out, z)
			}
		}
	}
	return out
}

// holds notes that a device has heard all of the reflector's zones up to version v.
func (d *device) holds(r *device, v int) { d.held[r.id] = max(d.held[r.id], v) }
