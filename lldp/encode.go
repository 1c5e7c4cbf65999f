package lldp

import (
	"encoding/binary"
	"net/netip"

	"github.com/openinof/inof/fabric"
)

// Append appends the LLDPDU: mandatory TLVs, basic TLVs in the order of their
// types, organizational ones, the registration, End. On an error b is as it was.
func (p *PDU) Append(b []byte) ([]byte, error) {
	start := len(b)
	out, err := p.appendAll(b)
	if err != nil {
		return b, err
	}
	if n := len(out) - start; n > maxPDU {
		return b, refuse(tlvEnd, ErrLength, "would end at byte %d, at most %d", n, maxPDU)
	}
	return out, nil
}

func (p *PDU) appendAll(b []byte) ([]byte, error) {
	b, err := appendID(b, tlvChassisID, p.Chassis)
	if err != nil {
		return b, err
	}
	if b, err = appendID(b, tlvPortID, p.Port); err != nil {
		return b, err
	}
	b = append(b, tlvTTL<<1, 2, byte(p.TTL>>8), byte(p.TTL))
	if p.TTL == 0 { // a shutdown LLDPDU has nothing else (clause 9.1.2.2)
		return append(b, 0, 0), nil
	}
	for _, t := range []struct {
		typ  uint8
		text *string
	}{{tlvPortDesc, p.PortDesc}, {tlvSysName, p.SysName}, {tlvSysDesc, p.SysDesc}} {
		if b, err = appendText(b, t.typ, t.text); err != nil {
			return b, err
		}
	}
	if c := p.Capabilities; c != nil {
		b = append(b, tlvCapabilities<<1, 4, byte(c.System>>8), byte(c.System), byte(c.Enabled>>8), byte(c.Enabled))
	}
	for i := range p.Mgmt {
		if b, err = p.Mgmt[i].append(b); err != nil {
			return b, err
		}
	}
	for i := range p.Org {
		o := &p.Org[i]
		if b, err = appendTLV(b, tlvOrg, []byte{o.OUI[0], o.OUI[1], o.OUI[2], o.Subtype}, o.Value); err != nil {
			return b, err
		}
	}
	if p.Registration != nil {
		at := len(b)
		if b, err = p.Registration.AppendTLV(append(b, tlvOrg<<1, 0)); err != nil {
			return b, err
		}
		n := len(b) - at - tlvHeader
		b[at] |= byte(n >> 8)
		b[at+1] = byte(n)
	}
	return append(b, 0, 0), nil
}

func appendID(b []byte, typ uint8, id ID) ([]byte, error) {
	if len(id.Value) < 1 || len(id.Value) > maxID {
		return b, refuse(typ, ErrLength, "of %d bytes, want 1..%d", len(id.Value), maxID)
	}
	return appendTLV(b, typ, []byte{id.Subtype}, id.Value)
}

func appendText(b []byte, typ uint8, s *string) ([]byte, error) {
	if s == nil {
		return b, nil
	}
	if len(*s) > maxText {
		return b, refuse(typ, ErrLength, "of %d bytes, at most %d", len(*s), maxText)
	}
	return appendTLV(b, typ, nil, *s)
}

func (m *MgmtAddr) append(b []byte) ([]byte, error) {
	family, addr := m.Family, m.Raw
	if m.Addr.IsValid() {
		family, addr = familyOf(m.Addr), string(m.Addr.AsSlice())
	}
	if len(addr) < 1 || len(addr) > 31 || len(m.OID) > maxOID {
		return b, refuse(tlvMgmtAddr, ErrLength, "with an address of %d and an object identifier of %d bytes", len(addr), len(m.OID))
	}
	if !m.Addr.IsValid() && (family == ianaIPv4 || family == ianaIPv6) {
		return b, refuse(tlvMgmtAddr, ErrValue, "without an address of family %d", family)
	}
	info := append([]byte{byte(1 + len(addr)), family}, addr...)
	info = append(info, m.IfSubtype)
	info = binary.BigEndian.AppendUint32(info, m.IfNumber)
	info = append(info, byte(len(m.OID)))
	return appendTLV(b, tlvMgmtAddr, info, m.OID)
}

func familyOf(a netip.Addr) uint8 {
	if a.Is4() {
		return ianaIPv4
	}
	return ianaIPv6
}

// MACID is the chassis id (ChassisMAC) or port id (PortMAC) that a MAC gives.
func MACID(subtype uint8, m fabric.MAC) ID { return ID{subtype, string(m[:])} }
