package zone

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

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

func badMember(text, problem, want string) error {
	const most = 300
	if len(text) > most {
		text = text[:most]
	}
	return &MemberError{Member: text, Problem: problem, Want: want}
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

// isWord reports whether s is printable text without any space.
func isWord(s string) bool {
	return isPrintable(s) && !strings.ContainsFunc(s, isSpace)
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

func isPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func isSpace(r rune) bool { return unicode.IsSpace(r) }
