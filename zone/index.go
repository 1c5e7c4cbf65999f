package zone

import (
	"net/netip"
)

// matcher finds the zones of a host by hash for exact members and by tree for
// ranges; it never walks over zones.
type matcher struct {
	addrs postings[netip.Addr]
	nqns  postings[string]
	ports postings[portKey]
	bound boundMatcher
	spans spanTree
}

func newMatcher() matcher {
	return matcher{addrs: newPostings[netip.Addr](), nqns: newPostings[string](), ports: newPostings[portKey](), bound: newBoundMatcher(), spans: newSpanTree()}
}

func (m *matcher) add(zone uint32, p parts) {
	for _, a := range p.addrs {
		m.addrs.add(a, zone)
	}
	r := p.rest()
	for _, s := range r.spans {
		m.spans.add(s, zone)
	}
	for _, n := range r.nqns {
		m.nqns.add(n, zone)
	}
	for _, k := range r.ports {
		m.ports.add(k, zone)
	}
	for i := range r.bound {
		m.bound.add(zone, &r.bound[i])
	}
}

func (m *matcher) remove(zone uint32, p parts) {
	for _, a := range p.addrs {
		m.addrs.remove(a, zone)
	}
	r := p.rest()
	for _, s := range r.spans {
		m.spans.remove(s, zone)
	}
	for _, n := range r.nqns {
		m.nqns.remove(n, zone)
	}
	for _, k := range r.ports {
		m.ports.remove(k, zone)
	}
	for i := range r.bound {
		m.bound.remove(zone, &r.bound[i])
	}
}

// of appends what a matcher has for a host by what h says.
func (m *matcher) of(h Host, ids []uint32) []uint32 {
	addr := h.Addr.Unmap()
	ids = m.addrs.appendTo(ids, addr)
	ids = m.spans.appendTo(ids, addr)
	return m.said(ids, h.NQN, addr, portKey{h.Device.Unmap(), h.HostKey.Port})
}

// said appends what a matcher has for one attachment of an address, whatever the address is in.
func (m *matcher) said(ids []uint32, nqn string, addr netip.Addr, at portKey) []uint32 {
	if nqn != "" {
		ids = m.nqns.appendTo(ids, nqn)
		ids = m.bound.appendTo(ids, nqn, addr, at)
	}
	return m.ports.appendTo(ids, at)
}
