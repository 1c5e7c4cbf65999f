package zone

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// MemberError says why a text or a value is no member of a zone.
type MemberError struct {
	Member  string // as written, cut at 300 bytes
	Problem string
	Want    string // what is allowed instead; may be empty
}

func (e *MemberError) Error() string {
	s := fmt.Sprintf("member %q: %s", e.Member, e.Problem)
	if e.Want != "" {
		s += "; want " + e.Want
	}
	return s
}

// memberForms is what an operator may write, for error texts.
const memberForms = "an address, a range FIRST-LAST, a prefix ADDRESS/LENGTH, an NQN, NQN at PLACE, or port:DEVICE/PORT"

func badMember(text, problem, want string) error {
	const most = 300
	if len(text) > most {
		text = text[:most]
	}
	return &MemberError{Member: text, Problem: problem, Want: want}
}

// ParseMember reads one member as the operator writes it:
//
//	192.0.2.1                   an address
//	192.0.2.1-192.0.2.9         a range, both ends included
//	2001:db8::/64               a prefix, which is a range
//	nqn.2026-01.org.example:a   a qualified name (also iqn., eui., naa.), exact
//	port:192.0.2.250/Ethernet1  an access port: device id and port name
//
// and a name that counts only where it may be, see parseBound:
//
//	nqn.2026-01.org.example:a at 192.0.2.250            behind a device
//	nqn.2026-01.org.example:a at 192.0.2.250/Ethernet1  behind a port of it
//	nqn.2026-01.org.example:a at 198.51.100.0/24        with an address of a prefix
//
// The result is canonical. Which addresses are allowed is for Rules to say.
func ParseMember(s string) (Member, error) {
	switch {
	case s == "":
		return Member{}, badMember(s, "empty", memberForms)
	case strings.HasPrefix(s, portPrefix):
		return parsePort(s)
	case isQualifiedName(s):
		if nqn, place, bound := strings.Cut(s, boundAt); bound {
			return parseBound(s, nqn, place)
		}
		return parseNQN(s)
	case strings.Contains(s, "/"):
		return parsePrefix(s)
	case strings.Contains(s, "-"):
		return parseRange(s)
	}
	a, err := parseAddr(s)
	if err != nil {
		return Member{}, badMember(s, "not an IP address", memberForms)
	}
	return Member{Kind: MemberAddr, First: a}, nil
}

const portPrefix = "port:"

func parsePort(s string) (Member, error) {
	const want = "port:DEVICE/PORT, for example port:192.0.2.250/Ethernet1"
	dev, port, ok := strings.Cut(s[len(portPrefix):], "/")
	if !ok {
		return Member{}, badMember(s, "no / between device and port", want)
	}
	a, err := parseAddr(dev)
	if err != nil {
		return Member{}, badMember(s, "the device id is not an IP address", want)
	}
	m := Member{Kind: MemberPort, Device: a, Port: port}
	return m, m.wellFormed(s)
}

func parseNQN(s string) (Member, error) {
	m := Member{Kind: MemberNQN, NQN: s}
	return m, m.wellFormed(s)
}

func parsePrefix(s string) (Member, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return Member{}, badMember(s, "not a prefix", memberForms)
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return Member{}, badMember(s, "an IPv4-mapped prefix shorter than /96 holds more than IPv4", "the IPv4 form")
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if m := p.Masked(); m != p {
		return Member{}, badMember(s, "bits beyond the prefix length are set", fmt.Sprintf("%v for the prefix or %v for the address", m, p.Addr()))
	}
	m := Member{Kind: MemberRange, First: p.Addr(), Last: lastOf(p)}.Canonical()
	return m, m.wellFormed(s)
}

func parseRange(s string) (Member, error) {
	first, last, _ := strings.Cut(s, "-")
	a, errA := parseAddr(first)
	b, errB := parseAddr(last)
	if errA != nil || errB != nil {
		return Member{}, badMember(s, "not a range of IP addresses", memberForms)
	}
	m := Member{Kind: MemberRange, First: a, Last: b}.Canonical()
	return m, m.wellFormed(s)
}

func parseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, err
	}
	if a.Zone() != "" {
		return a, fmt.Errorf("address %q has a zone index", s)
	}
	return a.Unmap(), nil
}

// isQualifiedName tells an NVMe or iSCSI name by its type prefix (NVMe base
// specification 4.7; RFC 7143 section 4.2.7.4 for the others).
func isQualifiedName(s string) bool {
	for _, p := range [...]string{"nqn.", "iqn.", "eui.", "naa."} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// wellFormed checks what does not depend on Rules; text is what errors quote.
func (m Member) wellFormed(text string) error {
	switch m.Kind {
	case MemberAddr:
		if !m.First.IsValid() || m.First.Zone() != "" {
			return badMember(text, "no valid address", memberForms)
		}
	case MemberRange:
		switch {
		case !m.First.IsValid() || !m.Last.IsValid() || m.First.Zone() != "" || m.Last.Zone() != "":
			return badMember(text, "no valid address at an end of the range", memberForms)
		case m.First.BitLen() != m.Last.BitLen():
			return badMember(text, "the ends of the range are of two address families", "both IPv4 or both IPv6")
		case m.Last.Less(m.First):
			return badMember(text, "the range ends before it begins", fmt.Sprintf("%v-%v", m.Last, m.First))
		}
	case MemberNQN:
		return m.wellNamed(text)
	case MemberPort:
		return m.wellPlaced(text)
	case MemberBound:
		return m.wellBound(text)
	default:
		return badMember(text, fmt.Sprintf("unknown kind %d", m.Kind), memberForms)
	}
	return nil
}

// wellNamed checks the NQN.
func (m Member) wellNamed(text string) error {
	if len(m.NQN) > snsd.MaxNQN || !isQualifiedName(m.NQN) || !isWord(m.NQN) {
		return badMember(text, "not a qualified name", fmt.Sprintf("nqn., iqn., eui. or naa. and up to %d bytes in all, without spaces", snsd.MaxNQN))
	}
	return nil
}

// wellPlaced checks device and port.
func (m Member) wellPlaced(text string) error {
	if !m.Device.IsValid() || m.Device.Zone() != "" {
		return badMember(text, "no valid device id", "an IP address")
	}
	if m.Port == "" || len(m.Port) > fabric.MaxPortName || !isWord(m.Port) {
		return badMember(text, "no valid port name", fmt.Sprintf("1..%d bytes without spaces", fabric.MaxPortName))
	}
	return nil
}

// Canonical gives the one form of equal members: IPv4-mapped addresses become
// IPv4, a range of one address becomes that address, fields that do not count
// for the kind are cleared.
func (m Member) Canonical() Member {
	switch m.Kind {
	case MemberAddr:
		return Member{Kind: MemberAddr, First: m.First.Unmap()}
	case MemberRange:
		first, last := m.First.Unmap(), m.Last.Unmap()
		if first == last {
			return Member{Kind: MemberAddr, First: first}
		}
		return Member{Kind: MemberRange, First: first, Last: last}
	case MemberNQN:
		return Member{Kind: MemberNQN, NQN: m.NQN}
	case MemberPort:
		return Member{Kind: MemberPort, Device: m.Device.Unmap(), Port: m.Port}
	case MemberBound:
		return Member{Kind: MemberBound, NQN: m.NQN, First: m.First.Unmap(), Last: m.Last.Unmap(), Device: m.Device.Unmap(), Port: m.Port}
	}
	return m
}

// String is the inverse of ParseMember. A range that is exactly a prefix is
// written as one.
func (m Member) String() string {
	switch m.Kind {
	case MemberAddr:
		return m.First.String()
	case MemberRange:
		if p, ok := asPrefix(m.First, m.Last); ok {
			return p.String()
		}
		return m.First.String() + "-" + m.Last.String()
	case MemberNQN:
		return m.NQN
	case MemberPort:
		return portPrefix + m.Device.String() + "/" + m.Port
	case MemberBound:
		return m.NQN + boundAt + m.place()
	}
	return fmt.Sprintf("unknown member kind %d", m.Kind)
}

// MarshalText gives the form of String, and an error for a member that has none.
func (m Member) MarshalText() ([]byte, error) {
	m = m.Canonical()
	if err := m.wellFormed(m.String()); err != nil {
		return nil, err
	}
	return []byte(m.String()), nil
}

// UnmarshalText is ParseMember.
func (m *Member) UnmarshalText(b []byte) error {
	v, err := ParseMember(string(b))
	if err != nil {
		return err
	}
	*m = v
	return nil
}

// Matches reports whether h is what the member names.
func (m Member) Matches(h Host) bool {
	switch m.Kind {
	case MemberAddr:
		return m.First.Unmap() == h.Addr.Unmap()
	case MemberRange:
		a := h.Addr.Unmap()
		first, last := m.First.Unmap(), m.Last.Unmap()
		return a.BitLen() == first.BitLen() && first.Compare(a) <= 0 && a.Compare(last) <= 0
	case MemberNQN:
		return m.NQN != "" && m.NQN == h.NQN
	case MemberPort:
		return m.Device.Unmap() == h.Device.Unmap() && m.Port == h.HostKey.Port
	case MemberBound:
		m = m.Canonical()
		return m.holds(h.NQN, h.Addr.Unmap(), h.Device.Unmap(), h.HostKey.Port)
	}
	return false
}

// CompareMembers orders members by kind, then as text or addresses: the canonical order.
func CompareMembers(a, b Member) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		strings.Compare(a.NQN, b.NQN),
		a.First.Compare(b.First),
		a.Last.Compare(b.Last),
		a.Device.Compare(b.Device),
		strings.Compare(a.Port, b.Port),
	)
}

// lastOf is the highest address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := range b {
		switch host := (i+1)*8 - p.Bits(); {
		case host >= 8:
			b[i] = 0xff
		case host > 0:
			b[i] |= 1<<host - 1
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// asPrefix reports whether first..last is exactly one prefix, and which.
func asPrefix(first, last netip.Addr) (netip.Prefix, bool) {
	if first.BitLen() != last.BitLen() || first.BitLen() == 0 {
		return netip.Prefix{}, false
	}
	a, b := first.AsSlice(), last.AsSlice()
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same += 8
			continue
		}
		for bit := byte(0x80); a[i]&bit == b[i]&bit; bit >>= 1 {
			same++
		}
		break
	}
	p := netip.PrefixFrom(first, same)
	return p, p.Masked() == p && bytes.Equal(lastOf(p).AsSlice(), b)
}

// isWord reports whether s is printable text without any space.
func isWord(s string) bool {
	return isPrintable(s) && !strings.ContainsFunc(s, isSpace)
}
