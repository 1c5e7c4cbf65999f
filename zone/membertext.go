package zone

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

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
	case isQualifiedName(strings.ToLower(s)):
		return Member{}, badMember(s, "a name begins with nqn., iqn., eui. or naa. in small letters", memberForms)
	case strings.HasPrefix(s, "alias:"):
		return Member{}, badMember(s, "an alias stands in the zones of a file or candidate only", memberForms)
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

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// boundAt stands between the NQN and the place.
const boundAt = " at "

// placeForms is what may stand behind it.
const placeForms = "DEVICE, DEVICE/PORT (port:DEVICE/PORT where the port's name is a number) or a prefix ADDRESS/LENGTH"

const portPrefix = "port:"

// memberForms is what an operator may write, for error texts.
const memberForms = "an address, a range FIRST-LAST, a prefix ADDRESS/LENGTH, an NQN, NQN at PLACE, or port:DEVICE/PORT"
