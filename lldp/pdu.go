package lldp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/openinof/inof/snsd"
)

// PDU is one LLDPDU. Strings hold the bytes as they were sent; Neighbour has them
// printable.
type PDU struct {
	Chassis, Port ID
	TTL           uint16 // seconds; 0 = shutdown, the rest does not count (clause 9.1.2)

	PortDesc, SysName, SysDesc *string // 0..255 bytes, nil = TLV absent
	Capabilities               *Capabilities
	Mgmt                       []MgmtAddr
	Org                        []OrgTLV           // in order, without the registration
	Registration               *snsd.Registration // the SNSD TLV, when there is a valid one

	// RegistrationErr is why an SNSD TLV that was there is not in Registration.
	RegistrationErr error
	// Odd is what was tolerated in the registration.
	Odd snsd.Oddity
	// Skipped counts the optional TLVs that were left out (clause 9.2.7.7.2), and
	// SkippedErr tells about the first of them.
	Skipped    Skipped
	SkippedErr error
}

// Skipped counts TLVs of one LLDPDU that were not taken.
type Skipped struct {
	Bad       int // contents against the standard
	Duplicate int // further occurrences of a TLV that may be there once; the first counts
	Unknown   int // reserved types
}

// MgmtAddr is one Management Address TLV (clause 8.5.9).
type MgmtAddr struct {
	Addr      netip.Addr // invalid when Family is neither IPv4 nor IPv6
	Family    uint8      // IANA address family number: 1 IPv4, 2 IPv6
	Raw       string     // the address as sent, 1..31 bytes; used when Addr is invalid
	IfSubtype uint8      // interface numbering: 1 unknown, 2 ifIndex, 3 system port number
	IfNumber  uint32
	OID       string // 0..128 bytes
}

// OrgTLV is an organizational TLV that is kept as it came (clause 8.6).
type OrgTLV struct {
	OUI     [3]byte
	Subtype uint8
	Value   string // 0..507 bytes
}

const (
	ianaIPv4 = 1
	ianaIPv6 = 2

	minMgmt = 9   // string length 1, family 1, address 1, numbering 5, OID length 1
	maxMgmt = 167 // clause 8.5.9
	maxOID  = 128
)

// Parse reads an LLDPDU (the payload of a frame). Bytes after the End Of LLDPDU
// TLV are padding. A fault of a mandatory TLV refuses the whole LLDPDU with an
// *Error; a fault of an optional one drops that TLV, told in Skipped (clause 9.2.7.7).
func Parse(payload []byte) (*PDU, error) {
	p := new(PDU)
	rest, err := p.mandatory(payload)
	if err != nil {
		return nil, err
	}
	if p.TTL == 0 {
		return p, nil
	}
	for len(rest) > 0 && rest[0]>>1 != tlvEnd { // whatever follows End is ignored (clause 8.5.1)
		typ, info, next, err := cutTLV(rest)
		if err != nil {
			// Where the next TLV would begin is unknown: what came before is good.
			p.skip(err)
			return p, nil
		}
		rest = next
		if typ >= tlvChassisID && typ <= tlvTTL {
			return nil, refuse(typ, ErrDuplicate, "after the first three")
		}
		if err := p.optional(typ, info); err != nil {
			p.skip(err)
		}
	}
	return p, nil
}

// mandatory reads the three TLVs that must come first, in this order (clause 8.2).
func (p *PDU) mandatory(b []byte) (rest []byte, err error) {
	for want := tlvChassisID; want <= tlvTTL; want++ {
		if len(b) < tlvHeader { // name what is missing, not what might have been there
			return nil, refuse(want, ErrTruncated, "of which %d bytes are there", len(b))
		}
		typ, info, next, err := cutTLV(b)
		if err != nil {
			return nil, err
		}
		if typ != want {
			return nil, refuse(want, ErrOrder, "where type %d is", typ)
		}
		switch typ {
		case tlvChassisID:
			p.Chassis, err = parseID(typ, info)
		case tlvPortID:
			p.Port, err = parseID(typ, info)
		case tlvTTL:
			if len(info) < 2 { // a longer one is for later versions (clause 8.5.4)
				err = refuse(typ, ErrLength, "of %d bytes, want 2", len(info))
			} else {
				p.TTL = binary.BigEndian.Uint16(info)
			}
		}
		if err != nil {
			return nil, err
		}
		b = next
	}
	return b, nil
}

func parseID(typ uint8, info []byte) (ID, error) {
	if len(info) < 2 || len(info) > 1+maxID {
		return ID{}, refuse(typ, ErrLength, "of %d bytes, want 2..%d", len(info), 1+maxID)
	}
	return ID{Subtype: info[0], Value: string(info[1:])}, nil
}

func (p *PDU) optional(typ uint8, info []byte) error {
	switch typ {
	case tlvPortDesc:
		return setText(&p.PortDesc, typ, info)
	case tlvSysName:
		return setText(&p.SysName, typ, info)
	case tlvSysDesc:
		return setText(&p.SysDesc, typ, info)
	case tlvCapabilities:
		return p.capabilities(info)
	case tlvMgmtAddr:
		m, err := parseMgmt(info)
		if err == nil {
			p.Mgmt = append(p.Mgmt, m)
		}
		return err
	case tlvOrg:
		return p.org(info)
	}
	p.Skipped.Unknown++ // types 9..126 are for later versions of the standard
	return nil
}

func (p *PDU) skip(err error) {
	if e, ok := err.(*Error); ok && e.Err == ErrDuplicate {
		p.Skipped.Duplicate++
	} else {
		p.Skipped.Bad++
	}
	if p.SkippedErr == nil {
		p.SkippedErr = err
	}
}

func setText(dst **string, typ uint8, info []byte) error {
	if *dst != nil {
		return refuse(typ, ErrDuplicate, "")
	}
	if len(info) > maxText {
		return refuse(typ, ErrLength, "of %d bytes, at most %d", len(info), maxText)
	}
	s := string(info)
	*dst = &s
	return nil
}

func (p *PDU) capabilities(info []byte) error {
	if p.Capabilities != nil {
		return refuse(tlvCapabilities, ErrDuplicate, "")
	}
	if len(info) != 4 {
		return refuse(tlvCapabilities, ErrLength, "of %d bytes, want 4", len(info))
	}
	p.Capabilities = &Capabilities{binary.BigEndian.Uint16(info), binary.BigEndian.Uint16(info[2:])}
	return nil
}

func parseMgmt(info []byte) (m MgmtAddr, err error) {
	if len(info) < minMgmt || len(info) > maxMgmt {
		return m, refuse(tlvMgmtAddr, ErrLength, "of %d bytes, want %d..%d", len(info), minMgmt, maxMgmt)
	}
	n := int(info[0]) // family and address
	if n < 2 || n > 32 || 1+n+6 > len(info) {
		return m, refuse(tlvMgmtAddr, ErrLength, "with an address string of %d bytes in %d", n, len(info))
	}
	m.Family = info[1]
	addr, tail := info[2:1+n], info[1+n:]
	switch {
	case m.Family == ianaIPv4 && len(addr) == 4:
		m.Addr = netip.AddrFrom4([4]byte(addr))
	case m.Family == ianaIPv6 && len(addr) == 16:
		m.Addr = netip.AddrFrom16([16]byte(addr))
	case m.Family == ianaIPv4 || m.Family == ianaIPv6:
		return MgmtAddr{}, refuse(tlvMgmtAddr, ErrLength, "with family %d and an address of %d bytes", m.Family, len(addr))
	default:
		m.Raw = string(addr)
	}
	m.IfSubtype, m.IfNumber = tail[0], binary.BigEndian.Uint32(tail[1:])
	oid := int(tail[5])
	if oid > maxOID || 6+oid > len(tail) {
		return MgmtAddr{}, refuse(tlvMgmtAddr, ErrLength, "with an object identifier of %d bytes", oid)
	}
	m.OID = string(tail[6 : 6+oid])
	return m, nil
}

func (p *PDU) org(info []byte) error {
	if len(info) < 4 {
		return refuse(tlvOrg, ErrLength, "of %d bytes, want 4..%d", len(info), maxTLV)
	}
	if !snsd.IsRegistration(info) {
		p.Org = append(p.Org, OrgTLV{[3]byte(info[:3]), info[3], string(info[4:])})
		return nil
	}
	if p.Registration != nil || p.RegistrationErr != nil {
		return refuse(tlvOrg, ErrDuplicate, "SNSD registration")
	}
	r, odd, err := snsd.InspectRegistration(info)
	if err != nil {
		p.RegistrationErr = fmt.Errorf("%w: %w", ErrRegistration, err)
		return p.RegistrationErr
	}
	p.Registration, p.Odd = &r, odd
	return nil
}
