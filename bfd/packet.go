package bfd

import (
	"encoding/binary"
)

const (
	version = 1 // RFC 5880 section 4.1

	headerLen = 24                  // mandatory section, section 4.1
	maxPacket = headerLen + sha1Len // longest packet we send

	bitPoll       = 1 << 5
	bitFinal      = 1 << 4
	bitCPI        = 1 << 3
	bitAuth       = 1 << 2
	bitDemand     = 1 << 1
	bitMultipoint = 1 << 0
)

// Packet is a BFD Control packet (RFC 5880 section 4.1). Intervals are in
// microseconds, as on the wire.
type Packet struct {
	Diag       Diag
	State      State
	Poll       bool
	Final      bool
	CPI        bool // Control Plane Independent
	Demand     bool
	Multipoint bool
	DetectMult uint8

	MyDiscr   uint32
	YourDiscr uint32 // zero while unknown

	DesiredMinTx      uint32
	RequiredMinRx     uint32
	RequiredMinEchoRx uint32

	Auth AuthSection // Type is AuthNone when the A bit is clear
}

// Parse decodes a UDP payload. It checks what RFC 5880 section 6.8.6 asks for before
// a session is chosen, in the order given there; bytes behind Length are ignored.
// Errors are *PacketError.
func Parse(b []byte) (p Packet, err error) {
	if len(b) < headerLen {
		return Packet{}, &PacketError{ErrLength, "payload length", int64(len(b)), "24 or more"}
	}
	if v := b[0] >> 5; v != version {
		return Packet{}, &PacketError{ErrVersion, "Vers", int64(v), "1"}
	}
	least := headerLen
	if b[1]&bitAuth != 0 {
		least += 2
	}
	length := int(b[3])
	if length < least {
		return Packet{}, &PacketError{ErrLength, "Length", int64(length), "24 or more, 26 or more with the A bit"}
	}
	if length > len(b) {
		return Packet{}, &PacketError{ErrLength, "Length", int64(length), "no more than the payload"}
	}
	p.Diag, p.State = Diag(b[0]&0x1f), State(b[1]>>6)
	f := b[1]
	p.Poll, p.Final, p.CPI = f&bitPoll != 0, f&bitFinal != 0, f&bitCPI != 0
	p.Demand, p.Multipoint = f&bitDemand != 0, f&bitMultipoint != 0
	p.DetectMult = b[2]
	p.MyDiscr, p.YourDiscr = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	p.DesiredMinTx, p.RequiredMinRx = binary.BigEndian.Uint32(b[12:]), binary.BigEndian.Uint32(b[16:])
	p.RequiredMinEchoRx = binary.BigEndian.Uint32(b[20:])
	switch {
	case p.DetectMult == 0:
		return Packet{}, &PacketError{ErrDetectMult, "Detect Mult", 0, "1 or more"}
	case p.Multipoint:
		return Packet{}, &PacketError{ErrMultipoint, "M bit", 1, "0"}
	case p.MyDiscr == 0:
		return Packet{}, &PacketError{ErrMyDiscr, "My Discriminator", 0, "not 0"}
	case p.Poll && p.Final: // section 6.5
		return Packet{}, &PacketError{ErrPollFinal, "P and F bits", 3, "one of them"}
	case p.YourDiscr == 0 && p.State > StateDown:
		return Packet{}, &PacketError{ErrYourDiscr, "State", int64(p.State), "Down or AdminDown"}
	}
	if f&bitAuth != 0 {
		if p.Auth, err = parseAuth(b[headerLen:length]); err != nil {
			return Packet{}, err
		}
	}
	return p, nil
}

// Append encodes p. The authentication section is appended when Auth.Type is one
// of the SHA1 types, with the hash as it stands in p; other types are left out.
func (p *Packet) Append(b []byte) []byte {
	flags := byte(p.State) << 6
	for _, f := range [...]struct {
		on  bool
		bit byte
	}{{p.Poll, bitPoll}, {p.Final, bitFinal}, {p.CPI, bitCPI}, {p.Auth.Type.sha1(), bitAuth}, {p.Demand, bitDemand}, {p.Multipoint, bitMultipoint}} {
		if f.on {
			flags |= f.bit
		}
	}
	length := headerLen
	if p.Auth.Type.sha1() {
		length += sha1Len
	}
	b = append(b, version<<5|byte(p.Diag)&0x1f, flags, p.DetectMult, byte(length))
	b = binary.BigEndian.AppendUint32(b, p.MyDiscr)
	b = binary.BigEndian.AppendUint32(b, p.YourDiscr)
	b = binary.BigEndian.AppendUint32(b, p.DesiredMinTx)
	b = binary.BigEndian.AppendUint32(b, p.RequiredMinRx)
	b = binary.BigEndian.AppendUint32(b, p.RequiredMinEchoRx)
	if p.Auth.Type.sha1() {
		b = p.Auth.append(b)
	}
	return b
}
