package zone

import (
	"net/netip"
)

// This file is about NQNs that count at a place only. What a host says of its NQN is a
// claim: any host can say it. A member bound to a place names the host that says it there.

// holds reports whether a canonical bound member names who says this NQN with this address
// at this port.
func (m *Member) holds(nqn string, addr, device netip.Addr, port string) bool {
	switch {
	case m.NQN != nqn || nqn == "":
		return false
	case m.First.IsValid():
		return addr.BitLen() == m.First.BitLen() && m.First.Compare(addr) <= 0 && addr.Compare(m.Last) <= 0
	}
	return m.Device == device && (m.Port == "" || m.Port == port)
}

// nqnAtPort is an NQN behind a device (port "") or a port of it.
type nqnAtPort struct {
	nqn  string
	port portKey
}

// nqnAtPrefix is an NQN with an address of a prefix.
type nqnAtPrefix struct {
	nqn    string
	prefix netip.Prefix
}

// boundMatcher finds the zones of an NQN at a place by hash: one look for the device, one
// for the port, and one for each length of prefix that is in use.
type boundMatcher struct {
	ports    postings[nqnAtPort]
	prefixes postings[nqnAtPrefix]
	lengths  map[int]int    // how many members have a prefix of this length; IPv6: 1000 more
	names    map[string]int // how many members bind this NQN
}

func newBoundMatcher() boundMatcher {
	return boundMatcher{ports: newPostings[nqnAtPort](), prefixes: newPostings[nqnAtPrefix](), lengths: map[int]int{}, names: map[string]int{}}
}

// ofIPv6 is added to the lengths of IPv6 prefixes, to tell them from those of IPv4.
const ofIPv6 = 1000

func lengthOf(p netip.Prefix) int {
	if p.Addr().Is4() {
		return p.Bits()
	}
	return p.Bits() + ofIPv6
}

func (b *boundMatcher) add(zone uint32, m *Member) {
	b.names[m.NQN]++
	if p, ok := asPrefix(m.First, m.Last); ok {
		b.prefixes.add(nqnAtPrefix{m.NQN, p}, zone)
		b.lengths[lengthOf(p)]++
		return
	}
	b.ports.add(nqnAtPort{m.NQN, portKey{m.Device, m.Port}}, zone)
}

func (b *boundMatcher) remove(zone uint32, m *Member) {
	if b.names[m.NQN]--; b.names[m.NQN] == 0 {
		delete(b.names, m.NQN)
	}
	if p, ok := asPrefix(m.First, m.Last); ok {
		b.prefixes.remove(nqnAtPrefix{m.NQN, p}, zone)
		if n := lengthOf(p); b.lengths[n] == 1 {
			delete(b.lengths, n)
		} else {
			b.lengths[n]--
		}
		return
	}
	b.ports.remove(nqnAtPort{m.NQN, portKey{m.Device, m.Port}}, zone)
}

// appendTo appends the zones that have a member for this NQN with this address at this port.
func (b *boundMatcher) appendTo(dst []uint32, nqn string, addr netip.Addr, at portKey) []uint32 {
	if b.names[nqn] == 0 {
		return dst
	}
	if len(b.ports.m) > 0 {
		dst = b.ports.appendTo(dst, nqnAtPort{nqn, portKey{device: at.device}})
		dst = b.ports.appendTo(dst, nqnAtPort{nqn, at})
	}
	for n := range b.lengths {
		if (n >= ofIPv6) != addr.Is6() {
			continue
		}
		if p, err := addr.Prefix(n % ofIPv6); err == nil {
			dst = b.prefixes.appendTo(dst, nqnAtPrefix{nqn, p})
		}
	}
	return dst
}

// Bare gives the members of a zone that name whoever says an NQN, wherever it is.
func (z *Zone) Bare() (list []Member) {
	for _, m := range z.Members {
		if m.Kind == MemberNQN {
			list = append(list, m)
		}
	}
	return list
}

// mostAlike is how many addresses that say one NQN are looked at: a device may say it of all its
// hosts.
const mostAlike = 64
