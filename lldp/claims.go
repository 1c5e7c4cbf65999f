package lldp

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// This file reconciles the neighbours of one port that announce the same address.

// settle completes a change for the addresses that a neighbour had before it: those
// that nobody announces any more are gone, those that another neighbour of the port
// announces are that one's now.
func (t *Table) settle(ch *Change, before []HostInfo, why snsd.Reason) {
	for i := range before {
		a := before[i].Addr
		if ch.Kind != Removed && announces(ch.Neighbour.Known, a) {
			continue
		}
		if h, ok := t.owner(ch.Neighbour.Port, a); ok {
			ch.Put = append(ch.Put, h)
			continue
		}
		ch.Gone = append(ch.Gone, a)
		ch.Reason = why
	}
}

// puts gives the hosts of e's addresses as the port knows them.
func (t *Table) puts(e *entry) []HostInfo {
	if len(e.n.Known) == 0 {
		return nil
	}
	put := make([]HostInfo, 0, len(e.n.Known))
	for i := range e.n.Known {
		if h, ok := t.owner(e.n.Port, e.n.Known[i].Addr); ok {
			put = append(put, h)
		}
	}
	return put
}

// owner decides which of the neighbours that announce an address on one port
// describes it: a registration before plain LLDP, then the earlier one. The host is
// there since the first announcement with the same MAC.
func (t *Table) owner(port string, a netip.Addr) (HostInfo, bool) {
	p := t.ports[port]
	if p == nil || len(p.claims[a]) == 0 {
		return HostInfo{}, false
	}
	var best *entry
	var host HostInfo
	for _, e := range p.claims[a] {
		h := e.host(a)
		if best == nil || betterClaim(e, best, h, host) {
			best, host = e, h
		}
	}
	for _, e := range p.claims[a] {
		if h := e.host(a); h.MAC == host.MAC && h.Since.Before(host.Since) {
			host.Since = h.Since
		}
	}
	return host, true
}

// sameMachine finds addresses that the source of n has announced on the port before, under the same
// port id and another chassis id: a machine whose chassis id changes stays the one it was.
func (t *Table) sameMachine(n *Neighbour) {
	p := t.ports[n.Port]
	if p == nil {
		return
	}
	for i := range n.Known {
		h := &n.Known[i]
		for _, e := range p.claims[h.Addr] {
			if e.n.MAC == n.MAC && e.n.PortID == n.PortID && (e.n.Registration != nil) == (n.Registration != nil) {
				was := e.host(h.Addr)
				h.MAC, h.Since = was.MAC, was.Since
			}
		}
	}
}

func (e *entry) host(a netip.Addr) HostInfo {
	for i := range e.n.Known {
		if e.n.Known[i].Addr == a {
			return e.n.Known[i]
		}
	}
	return HostInfo{}
}

func betterClaim(e, best *entry, h, host HostInfo) bool {
	if h.Doubt != host.Doubt {
		return host.Doubt
	}
	if reg := e.n.Registration != nil; reg != (best.n.Registration != nil) {
		return reg
	}
	return cmp.Or(h.Since.Compare(host.Since), cmp.Compare(e.key, best.key)) < 0
}

// Claimants gives the MAC addresses by which neighbours of a port announce an address, that
// of the host it is known as first.
func (t *Table) Claimants(port string, a netip.Addr) []fabric.MAC {
	h, ok := t.owner(port, a)
	if !ok {
		return nil
	}
	macs := []fabric.MAC{h.MAC}
	for _, e := range t.ports[port].claims[a] {
		if m := e.host(a).MAC; !slices.Contains(macs, m) {
			macs = append(macs, m)
		}
	}
	return macs
}

// Speaks reports whether frames of this source are those of the host that has the address on the
// port: whether a neighbour that announces it as that host sends its LLDP frames from there.
func (t *Table) Speaks(port string, src fabric.MAC, a netip.Addr) bool {
	host, ok := t.owner(port, a)
	return ok && slices.ContainsFunc(t.ports[port].claims[a], func(e *entry) bool {
		return e.n.MAC == src && e.host(a).MAC == host.MAC
	})
}

// secondMAC is another MAC address from which frames came that only a host with an address of this
// neighbour could send: of its VLAN interface, say, or of its bond.
type secondMAC struct {
	mac    fabric.MAC
	proven bool // the neighbour was heard since: both are there
}

// SpeaksToo is Speaks for a source that sent what only the host could know. It is the host's own,
// too, once the neighbour was heard again since the first such frame, without a loss of carrier in
// between, and as long as no other machine is heard on the port.
func (t *Table) SpeaksToo(port string, src fabric.MAC, a netip.Addr) bool {
	p := t.ports[port]
	if p == nil || len(p.claims[a]) == 0 {
		return false
	}
	host := p.claims[a][0]
	for _, e := range p.byMSAP {
		if e.n.MAC != host.n.MAC {
			return false
		}
	}
	if !host.n.Confirmed {
		return false
	}
	if host.second.mac != src {
		host.second = secondMAC{mac: src}
	}
	return host.second.proven
}
