package lldp

import "fmt"

// TLV types (IEEE 802.1AB-2016 table 8-1).
const (
	tlvEnd          uint8 = 0
	tlvChassisID    uint8 = 1
	tlvPortID       uint8 = 2
	tlvTTL          uint8 = 3
	tlvPortDesc     uint8 = 4
	tlvSysName      uint8 = 5
	tlvSysDesc      uint8 = 6
	tlvCapabilities uint8 = 7
	tlvMgmtAddr     uint8 = 8
	tlvOrg          uint8 = 127
)

const (
	tlvHeader = 2   // type 7 bits, length 9 bits (clause 8.4)
	maxTLV    = 511 // bytes of an information string (clause 8.4.2)
	maxText   = 255 // bytes of a name or description (clauses 8.5.5 to 8.5.7)
	maxID     = 255 // bytes of a chassis or port id without its subtype (clauses 8.5.2, 8.5.3)
	maxPDU    = 1500
)

// cutTLV splits the first TLV off b.
func cutTLV(b []byte) (typ uint8, info, rest []byte, err error) {
	if len(b) < tlvHeader {
		return 0, nil, nil, refuse(tlvEnd, ErrTruncated, "header in the last %d byte", len(b))
	}
	typ = b[0] >> 1
	n := int(b[0]&1)<<8 | int(b[1])
	if n > len(b)-tlvHeader {
		return typ, nil, nil, refuse(typ, ErrTruncated, "of %d bytes where %d are left", n, len(b)-tlvHeader)
	}
	return typ, b[tlvHeader : tlvHeader+n], b[tlvHeader+n:], nil
}

// appendTLV appends a TLV whose information string is prefix and value.
func appendTLV(b []byte, typ uint8, prefix []byte, value string) ([]byte, error) {
	n := len(prefix) + len(value)
	if n > maxTLV {
		return b, refuse(typ, ErrLength, "of %d bytes, at most %d", n, maxTLV)
	}
	b = append(b, typ<<1|byte(n>>8), byte(n))
	b = append(b, prefix...)
	return append(b, value...), nil
}

// peekMSAP gives the length of the first two TLVs, which name the neighbour (chassis
// id and port id: its MSAP identifier), without looking at anything else. 0 when the
// LLDPDU does not begin with them.
func peekMSAP(b []byte) int {
	if len(b) < tlvHeader || b[0]>>1 != tlvChassisID {
		return 0
	}
	n := tlvHeader + int(b[0]&1)<<8 + int(b[1])
	if len(b) < n+tlvHeader || b[n]>>1 != tlvPortID {
		return 0
	}
	n += tlvHeader + int(b[n]&1)<<8 + int(b[n+1])
	if len(b) < n {
		return 0
	}
	return n
}

// trimPDU cuts everything after the End TLV (Ethernet padding). It gives b itself,
// and ended is false, when there is none.
func trimPDU(b []byte) (pdu []byte, ended bool) {
	for i := 0; i+tlvHeader <= len(b); {
		n := int(b[i]&1)<<8 | int(b[i+1])
		if b[i]>>1 == tlvEnd {
			return b[:i+tlvHeader], true
		}
		i += tlvHeader + n
	}
	return b, false
}

// ID is a chassis id or a port id.
type ID struct {
	Subtype uint8  // table 8-2 or 8-3
	Value   string // raw bytes, 1..255
}

// Subtypes of chassis ids (table 8-2) and port ids (table 8-3) that we read or write.
const (
	ChassisMAC       uint8 = 4
	ChassisNetAddr   uint8 = 5
	ChassisLocal     uint8 = 7
	PortMAC          uint8 = 3
	PortNetAddr      uint8 = 4
	PortInterface    uint8 = 5
	PortLocal        uint8 = 7
	chassisIfName    uint8 = 6
	chassisAlias     uint8 = 2
	chassisComponent uint8 = 1
	chassisPort      uint8 = 3
	portAlias        uint8 = 1
	portComponent    uint8 = 2
)

// Capabilities are the two bitmaps of the System Capabilities TLV.
type Capabilities struct {
	System  uint16 `json:"system"`
	Enabled uint16 `json:"enabled"`
}

// Bits of Capabilities (table 8-4).
const (
	CapOther      uint16 = 1 << 0
	CapRepeater   uint16 = 1 << 1
	CapBridge     uint16 = 1 << 2
	CapAccess     uint16 = 1 << 3 // WLAN access point
	CapRouter     uint16 = 1 << 4
	CapTelephone  uint16 = 1 << 5
	CapDOCSIS     uint16 = 1 << 6
	CapStation    uint16 = 1 << 7 // station only
	CapCVLAN      uint16 = 1 << 8
	CapSVLAN      uint16 = 1 << 9
	CapTwoPortMAC uint16 = 1 << 10

	capForwards = CapRepeater | CapBridge | CapAccess | CapRouter | CapCVLAN | CapSVLAN | CapTwoPortMAC
)

// Forwards reports whether the sender passes other stations' traffic on, so that it
// is not a plain host.
func (c Capabilities) Forwards() bool {
	return c.Enabled&capForwards != 0 && c.Enabled&CapStation == 0
}

func (c Capabilities) String() string {
	return fmt.Sprintf("system 0x%04x enabled 0x%04x", c.System, c.Enabled)
}
