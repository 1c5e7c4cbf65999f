package snsd

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The organizational TLV of a registration. Layout of its value, in bytes:
//
//	0 OUI (3), subtype (1), version (1), family and service type (1), reserved (2),
//	8 address (16), role (1), protocol (1), protocol version (2), service port (2),
//	30 NQN length (1), NQN
const (
	registrationSubtype = 101
	registrationVersion = 1
	registrationFixed   = 30 // bytes before the NQN length
	regAddrOffset       = 8
	regAddrLen          = 16
	regRoleOffset       = regAddrOffset + regAddrLen

	familyIPv4     = 1
	familyIPv6     = 2
	familyMask     = 0x0f
	flagSubscribes = 0x80 // bit 7 of the family and service type byte

	// DefaultProtoVer is the protocol version that the existing agent registers with.
	DefaultProtoVer uint16 = 0x0101
	// MaxRegistrationTLV is the longest value of a registration TLV in bytes.
	MaxRegistrationTLV = registrationFixed + 1 + MaxNQN
)

// OUI of the registration TLV, IEEE order.
var OUI = [3]byte{0x00, 0x18, 0x82}

// IsRegistration reports whether the value of an organizational TLV (127) is an SNSD
// registration, well-formed or not.
func IsRegistration(value []byte) bool {
	return len(value) >= 4 && [3]byte(value[:3]) == OUI && value[3] == registrationSubtype
}

// Oddity is a set of things in a message that are tolerated but worth counting.
type Oddity uint8

const (
	OddRole     Oddity = 1 << iota // a role value we do not know, read as RoleUnknown
	OddProtocol                    // a protocol value we do not know, read as ProtocolUnknown
	OddNQN                         // an NQN that is not printable UTF-8, read as empty
	OddNoNQNLen                    // the NQN length byte is not there, NQN read as empty
	OddFence                       // sub-TLV 10 too short, or of a level that we do not know, read as FenceNone
)

// ParseRegistration reads the value of an organizational TLV (OUI and subtype
// included). Trailing bytes are ignored. Errors are of type *Error and wrap
// ErrForeign, ErrTruncated, ErrVersion, ErrFamily or ErrAddress.
func ParseRegistration(value []byte) (Registration, error) {
	r, _, err := InspectRegistration(value)
	return r, err
}

// InspectRegistration is ParseRegistration that also tells what it tolerated.
func InspectRegistration(value []byte) (Registration, Oddity, error) {
	const where = "registration"
	if !IsRegistration(value) {
		return Registration{}, 0, refuse(where, "TLV", fmt.Sprintf("% x", value[:min(4, len(value))]), ErrForeign)
	}
	if len(value) < registrationFixed {
		return Registration{}, 0, refuse(where, "TLV", fmt.Sprintf("of %d bytes", len(value)), ErrTruncated)
	}
	if value[4] != registrationVersion {
		return Registration{}, 0, refuse(where, "version", value[4], ErrVersion)
	}
	r := Registration{
		Subscribes: value[5]&flagSubscribes != 0,
		ProtoVer:   binary.BigEndian.Uint16(value[26:]),
	}
	area := value[regAddrOffset:regRoleOffset]
	switch value[5] & familyMask {
	case familyIPv4:
		r.Addr = netip.AddrFrom4([4]byte(area[:4]))
	case familyIPv6:
		r.Addr = netip.AddrFrom16([16]byte(area)).Unmap()
	default:
		return Registration{}, 0, refuse(where, "address family", value[5]&familyMask, ErrFamily)
	}
	if err := CheckAddr(r.Addr); err != nil {
		return Registration{}, 0, refuse(where, "address", r.Addr, err)
	}
	var odd Oddity
	r.Role, r.Protocol, odd = roleAndProtocol(value[24], value[25])
	r.Service.Port = binary.BigEndian.Uint16(value[28:])
	if len(value) == registrationFixed {
		return r, odd | OddNoNQNLen, nil
	}
	nqn := value[registrationFixed+1:]
	n := int(value[registrationFixed])
	if n > len(nqn) {
		return Registration{}, 0, refuse(where, "NQN", fmt.Sprintf("of %d bytes where %d are left", n, len(nqn)), ErrTruncated)
	}
	var ok bool
	if r.NQN, ok = readNQN(nqn[:n]); !ok {
		odd |= OddNQN
	}
	return r, odd, nil
}

// AppendTLV appends the value of the organizational TLV, OUI and subtype included.
// It refuses what ParseRegistration would not give back.
func (r Registration) AppendTLV(b []byte) ([]byte, error) {
	const where = "registration"
	if err := CheckAddr(r.Addr); err != nil {
		return b, refuse(where, "address", r.Addr, err)
	}
	if err := CheckNQN(r.NQN); err != nil {
		return b, refuse(where, "NQN", fmt.Sprintf("%q", r.NQN), err)
	}
	family := byte(familyIPv4)
	if r.Addr.Is6() {
		family = familyIPv6
	}
	if r.Subscribes {
		family |= flagSubscribes
	}
	b = append(b, OUI[0], OUI[1], OUI[2], registrationSubtype, registrationVersion, family, 0, 0)
	var area [regAddrLen]byte
	if r.Addr.Is4() {
		a := r.Addr.As4()
		copy(area[:], a[:])
	} else {
		area = r.Addr.As16()
	}
	b = append(b, area[:]...)
	b = append(b, byte(r.Role), byte(r.Protocol))
	b = binary.BigEndian.AppendUint16(b, r.ProtoVer)
	b = binary.BigEndian.AppendUint16(b, r.Service.Port)
	b = append(b, byte(len(r.NQN)))
	return append(b, r.NQN...), nil
}

// roleAndProtocol reads two bytes that a newer peer may fill with values unknown here.
func roleAndProtocol(role, protocol byte) (Role, Protocol, Oddity) {
	var odd Oddity
	r, p := Role(role), Protocol(protocol)
	if r > RoleBoth {
		r, odd = RoleUnknown, odd|OddRole
	}
	if p > ProtocolISCSI {
		p, odd = ProtocolUnknown, odd|OddProtocol
	}
	return r, p, odd
}

// readNQN reads an NQN; trailing zero bytes (a C string's end) are dropped. An NQN
// that cannot be shown or stored as text is read as empty: the address it came
// with is still good.
func readNQN(b []byte) (string, bool) {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		return "", true
	}
	s := string(b)
	if CheckNQN(s) != nil {
		return "", false
	}
	return s, true
}

// CheckNQN reports whether a name fits the formats here: at most MaxNQN bytes of
// printable UTF-8 (NVMe Base Specification 2.0, clause 4.5). Empty is fine.
func CheckNQN(s string) error {
	if len(s) > MaxNQN {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLong, len(s), MaxNQN)
	}
	if printableASCII(s) { // all names that follow the standard
		return nil
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ErrNQN
	}
	return nil
}

func printableASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
