package lldp

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
)

// Hosts gives the host addresses known behind a port, each once and as the port
// knows it (see Change.Put), sorted by address.
func (t *Table) Hosts(port string) []HostInfo {
	p := t.ports[port]
	if p == nil {
		return nil
	}
	hosts := make([]HostInfo, 0, len(p.claims))
	for a := range p.claims {
		if h, ok := t.owner(port, a); ok {
			hosts = append(hosts, h)
		}
	}
	slices.SortFunc(hosts, func(a, b HostInfo) int { return a.Addr.Compare(b.Addr) })
	return hosts
}

// Registered gives the hosts registered on a port, and heard since its carrier came, by
// frames of this source: those heard last first, and by address where they were heard at once.
func (t *Table) Registered(port string, src fabric.MAC) (hosts []HostInfo) {
	p := t.ports[port]
	if p == nil {
		return nil
	}
	var list []*entry
	for _, e := range p.byMSAP {
		if e.n.MAC == src && e.n.Confirmed && e.n.Registration != nil && len(e.n.Known) > 0 {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(b.n.LastHeard.Compare(a.n.LastHeard), a.n.Known[0].Addr.Compare(b.n.Known[0].Addr))
	})
	for _, e := range list {
		hosts = append(hosts, e.n.Known...)
	}
	return hosts
}

// Count is the number of neighbours on a port.
func (t *Table) Count(port string) int {
	if p := t.ports[port]; p != nil {
		return len(p.byMSAP)
	}
	return 0
}

// Present takes other evidence than an LLDPDU that the host with this MAC is there with this
// address: it answered something that was sent to it since the port was last down. Its
// registration counts as heard again, but lives no longer for it.
func (t *Table) Present(port string, mac fabric.MAC, a netip.Addr, at time.Time) (changes []Change) {
	p := t.ports[port]
	if p == nil {
		return nil
	}
	for _, e := range p.claims[a] {
		if e.n.MAC == mac && !e.n.Confirmed {
			e.n.Confirmed = true
			t.count.Confirmed++
			changes = append(changes, Change{Kind: Confirmed, Neighbour: e.n, Put: t.puts(e), At: at})
		}
	}
	return changes
}

// Unheard lists the addresses behind a port that no neighbour has announced since
// the port was down, sorted.
func (t *Table) Unheard(port string) []netip.Addr {
	p := t.ports[port]
	if p == nil {
		return nil
	}
	var addrs []netip.Addr
	for a, claims := range p.claims {
		if !slices.ContainsFunc(claims, func(e *entry) bool { return e.n.Confirmed }) {
			addrs = append(addrs, a)
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return addrs
}
