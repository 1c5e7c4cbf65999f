package zone

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// This file is about NQNs that count at a place only. What a host says of its NQN is a
// claim: any host can say it. A member bound to a place names the host that says it there.

// boundAt stands between the NQN and the place.
const boundAt = " at "

// placeForms is what may stand behind it.
const placeForms = "DEVICE, DEVICE/PORT (port:DEVICE/PORT where the port's name is a number) or a prefix ADDRESS/LENGTH"

// parseBound reads NQN at PLACE. An address alone is a device's, as in DEVICE/PORT; the one
// address of a host is a prefix of full length.
func parseBound(s, nqn, place string) (Member, error) {
	m := Member{Kind: MemberBound, NQN: nqn}
	at, behind, slash := strings.Cut(place, "/")
	switch {
	case strings.HasPrefix(place, portPrefix):
		p, err := parsePort(place)
		if err != nil {
			return Member{}, ofWhole(s, err)
		}
		m.Device, m.Port = p.Device, p.Port
	case slash && isNumber(behind):
		p, err := parsePrefix(place)
		if err != nil {
			return Member{}, ofWhole(s, err)
		}
		m.First, m.Last = p.First, p.Last
		if p.Kind == MemberAddr {
			m.Last = p.First
		}
	default:
		a, err := parseAddr(at)
		if err != nil || slash && behind == "" {
			return Member{}, badMember(s, fmt.Sprintf("%.80q is no place", place), placeForms)
		}
		m.Device, m.Port = a, behind
	}
	return m, m.wellFormed(s)
}

// ofWhole is what is wrong with the place, said of the member.
func ofWhole(s string, err error) error {
	var of *MemberError
	if errors.As(err, &of) {
		return badMember(s, "behind at: "+of.Problem, placeForms)
	}
	return err
}

// Prefix is the place of a bound member, if it is a prefix.
func (m *Member) Prefix() (netip.Prefix, bool) {
	if m.Kind != MemberBound {
		return netip.Prefix{}, false
	}
	return asPrefix(m.First, m.Last)
}

// PrefixEnds gives the first and the last address of a prefix; none of one that is not valid.
func PrefixEnds(p netip.Prefix) (first, last netip.Addr) {
	if !p.IsValid() {
		return netip.Addr{}, netip.Addr{}
	}
	return p.Addr(), lastOf(p)
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// place is the inverse of what parseBound does with what is behind the NQN.
func (m Member) place() string {
	switch {
	case m.First.IsValid():
		if p, ok := asPrefix(m.First, m.Last); ok {
			return p.String()
		}
		return m.First.String() + "-" + m.Last.String()
	case m.Port == "":
		return m.Device.String()
	case isNumber(m.Port):
		return portPrefix + m.Device.String() + "/" + m.Port
	}
	return m.Device.String() + "/" + m.Port
}

// wellBound checks a bound member: its name, and that there is one place.
func (m Member) wellBound(text string) error {
	if err := m.wellNamed(text); err != nil {
		return err
	}
	if m.First.IsValid() || m.Last.IsValid() {
		if _, ok := asPrefix(m.First, m.Last); !ok || m.First.Zone() != "" || m.Last.Zone() != "" || m.Device.IsValid() || m.Port != "" {
			return badMember(text, "no one place", placeForms)
		}
		return nil
	}
	if m.Port == "" {
		if !m.Device.IsValid() || m.Device.Zone() != "" {
			return badMember(text, "no valid device id", placeForms)
		}
		return nil
	}
	return m.wellPlaced(text)
}

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

// Says reports whether an attachment is known to say an NQN.
func (d *Directory) Says(k HostKey, nqn string) bool {
	id, ok := d.byAddr[k.Addr.Unmap()]
	if !ok {
		return false
	}
	i := d.attachmentAt(id, k)
	return i >= 0 && d.hosts[id].atts[i].service.NQN == nqn
}

// mostAlike is how many addresses that say one NQN are looked at: a device may say it of all its
// hosts.
const mostAlike = 64

// OtherByNQN gives another known machine, by its MAC address, that says the NQN of h. Ports
// and planes of one host are such too. Of more than 64 addresses that say it, it looks at 64.
func (d *Directory) OtherByNQN(h Host) (Host, bool) {
	if h.NQN == "" {
		return Host{}, false
	}
	var one [1]uint32
	ids := d.byNQN.view(h.NQN, &one)
	for _, id := range ids[:min(len(ids), mostAlike)] {
		o := &d.hosts[id]
		for i := range o.atts {
			if a := &o.atts[i]; a.service.NQN == h.NQN && a.mac != h.MAC {
				return d.hostOf(o.addr, a), true
			}
		}
	}
	return Host{}, false
}

// BoundElsewhere reports whether zones bind the NQN of h to places, of which h is at none.
func (d *Directory) BoundElsewhere(h Host) bool {
	if d.match.bound.names[h.NQN] == 0 {
		return false
	}
	return len(d.match.bound.appendTo(nil, h.NQN, h.Addr.Unmap(), portKey{h.Device.Unmap(), h.HostKey.Port})) == 0
}
