package nvmetcp

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// pduType is the first byte of a PDU (NVMe/TCP 3.6.2).
type pduType uint8

const (
	pduICReq       pduType = 0
	pduICResp      pduType = 1
	pduH2CTerm     pduType = 2
	pduC2HTerm     pduType = 3
	pduCapsuleCmd  pduType = 4
	pduCapsuleResp pduType = 5
	pduH2CData     pduType = 6
	pduC2HData     pduType = 7
	pduR2T         pduType = 9
)

// headerLen is the length that HLEN must have for each type.
var headerLen = map[pduType]uint8{
	pduICReq: 128, pduICResp: 128, pduH2CTerm: 24, pduC2HTerm: 24, pduCapsuleCmd: 72, pduCapsuleResp: 24, pduH2CData: 24, pduC2HData: 24, pduR2T: 24,
}

var pduNames = map[pduType]string{
	pduICReq: "ICReq", pduICResp: "ICResp", pduH2CTerm: "H2CTermReq", pduC2HTerm: "C2HTermReq", pduCapsuleCmd: "CapsuleCmd",
	pduCapsuleResp: "CapsuleResp", pduH2CData: "H2CData", pduC2HData: "C2HData", pduR2T: "R2T",
}

func (t pduType) String() string {
	if n, ok := pduNames[t]; ok {
		return n
	}
	return fmt.Sprintf("PDU type %#x", uint8(t))
}

// Flags of the common header.
const (
	flagHeaderDigest = 1
	flagDataDigest   = 2
	flagLastData     = 4 // the last data PDU of a command
	flagSuccess      = 8 // of C2HData: the command succeeded, no response capsule follows
)

const (
	commonLen = 8 // type, flags, HLEN, PDO, PLEN
	digestLen = 4
	// maxPDU is the longest PDU that is taken: an answer of maxData with its header and digests.
	maxPDU = maxData + 128
	// maxData is the most data that one command asks for or sends, in bytes.
	maxData = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// digest is CRC32C, as NVMe/TCP computes header and data digests (3.3.1.1).
func digest(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// ProtocolError says what in a PDU of the controller breaks the protocol.
type ProtocolError struct {
	PDU   string // its name
	Field string
	Value uint64
	Want  string
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("nvme/tcp: %s: %s is %d (%#x), want %s", e.PDU, e.Field, e.Value, e.Value, e.Want)
}

func broken[T ~uint8 | ~uint16 | ~uint32 | ~int](t pduType, field string, value T, want string) error {
	return &ProtocolError{PDU: t.String(), Field: field, Value: uint64(value), Want: want}
}

// digests are what both sides agreed on when the connection began.
type digests struct {
	header, data bool
}

// pdu is one PDU without its digests: a header of HLEN bytes and the data.
type pdu struct {
	kind   pduType
	flags  uint8
	header []byte
	data   []byte
}

// encode appends the PDU to b. Data begins at a multiple of align bytes.
func (p *pdu) encode(b []byte, d digests, align int) []byte {
	start := len(b)
	plain := p.kind == pduICReq || p.kind == pduICResp || p.kind == pduH2CTerm || p.kind == pduC2HTerm // never with digests
	b = append(b, p.header...)
	h := b[start:]
	h[0], h[1], h[2] = byte(p.kind), p.flags, byte(len(p.header))
	size, at := len(p.header), 0
	if d.header && !plain {
		h[1] |= flagHeaderDigest
		size += digestLen
	}
	if len(p.data) > 0 {
		at = (size + align - 1) / align * align
		size = at + len(p.data)
		if d.data && !plain {
			h[1] |= flagDataDigest
			size += digestLen
		}
	}
	h[3] = byte(at)
	binary.LittleEndian.PutUint32(h[4:], uint32(size))
	if h[1]&flagHeaderDigest != 0 {
		b = binary.LittleEndian.AppendUint32(b, digest(b[start:]))
	}
	if len(p.data) > 0 {
		for len(b)-start < at {
			b = append(b, 0)
		}
		b = append(b, p.data...)
		if b[start+1]&flagDataDigest != 0 {
			b = binary.LittleEndian.AppendUint32(b, digest(p.data))
		}
	}
	return b
}

// pduSize gives the length of the PDU that begins with b, at least commonLen bytes.
func pduSize(b []byte) (int, error) {
	kind, n := pduType(b[0]), binary.LittleEndian.Uint32(b[4:])
	hlen, known := headerLen[kind]
	switch {
	case !known:
		return 0, broken(kind, "type", b[0], "a PDU type of NVMe/TCP")
	case b[2] != hlen:
		return 0, broken(kind, "HLEN", b[2], fmt.Sprint(hlen))
	case n < uint32(hlen) || n > maxPDU:
		return 0, broken(kind, "PLEN", n, fmt.Sprintf("%d..%d", hlen, maxPDU))
	}
	return int(n), nil
}

// decode takes one whole PDU apart and checks its digests. The parts share b's memory.
func decode(b []byte, d digests) (pdu, error) {
	p := pdu{kind: pduType(b[0]), flags: b[1], header: b[:b[2]]}
	switch p.kind {
	case pduICReq, pduICResp:
		if len(b) != int(b[2]) {
			return p, broken(p.kind, "PLEN", len(b), "128")
		}
		return p, nil
	case pduH2CTerm, pduC2HTerm:
		p.data = b[b[2]:]
		return p, nil
	}
	if has := p.flags&flagHeaderDigest != 0; has != d.header {
		return p, broken(p.kind, "flags", p.flags, fmt.Sprintf("the header digest as agreed (%t)", d.header))
	}
	rest := int(b[2])
	if d.header {
		if len(b) < rest+digestLen {
			return p, broken(p.kind, "PLEN", len(b), "room for the header digest")
		}
		if got := binary.LittleEndian.Uint32(b[rest:]); got != digest(p.header) {
			return p, broken(p.kind, "header digest", got, fmt.Sprintf("%#x", digest(p.header)))
		}
		rest += digestLen
	}
	at := int(b[3])
	if at == 0 {
		if len(b) != rest {
			return p, broken(p.kind, "PLEN", len(b), fmt.Sprintf("%d: there is no data", rest))
		}
		return p, nil
	}
	end := len(b)
	if p.flags&flagDataDigest != 0 {
		end -= digestLen
	}
	if at < rest || at > end {
		return p, broken(p.kind, "PDO", at, fmt.Sprintf("%d..%d", rest, end))
	}
	p.data = b[at:end]
	if has := p.flags&flagDataDigest != 0; has != (d.data && len(p.data) > 0) {
		return p, broken(p.kind, "flags", p.flags, fmt.Sprintf("the data digest as agreed (%t)", d.data))
	}
	if end < len(b) {
		if got := binary.LittleEndian.Uint32(b[end:]); got != digest(p.data) {
			return p, broken(p.kind, "data digest", got, fmt.Sprintf("%#x", digest(p.data)))
		}
	}
	return p, nil
}

// icReq is the first PDU of a connection: version 0, no alignment asked, one R2T at a time.
func icReq(d digests) *pdu {
	p := &pdu{kind: pduICReq, header: make([]byte, 128)}
	if d.header {
		p.header[11] |= 1
	}
	if d.data {
		p.header[11] |= 2
	}
	return p
}

// icResp takes the controller's answer: how data in our capsules is to be aligned, in bytes.
func icResp(p *pdu, d digests) (align int, err error) {
	h := p.header
	want := icReq(d).header[11]
	switch v := binary.LittleEndian.Uint16(h[8:]); {
	case p.kind != pduICResp:
		return 0, broken(p.kind, "type", uint8(p.kind), "ICResp first")
	case v != 0:
		return 0, broken(p.kind, "PFV", v, "0")
	case h[10] > 31:
		return 0, broken(p.kind, "CPDA", h[10], "0..31")
	case h[11] != want:
		return 0, broken(p.kind, "DGST", h[11], fmt.Sprintf("%d, as asked for", want))
	}
	return 4 * (int(h[10]) + 1), nil
}

// TermError is the controller's word for why it ends the connection (NVMe/TCP 3.6.2.3).
type TermError struct {
	Status uint16 // FES
	Info   uint32 // FEI: the offset of a bad header field
}

var termReasons = map[uint16]string{1: "bad header field", 2: "PDU out of sequence", 3: "header digest", 4: "data out of range", 5: "data or R2T limit", 6: "unsupported parameter"}

func (e *TermError) Error() string {
	why := termReasons[e.Status]
	if why == "" {
		why = "unknown reason"
	}
	return fmt.Sprintf("nvme/tcp: the controller ends the connection: %s (FES %d, FEI %d)", why, e.Status, e.Info)
}

func termError(p *pdu) error {
	return &TermError{Status: binary.LittleEndian.Uint16(p.header[8:]), Info: binary.LittleEndian.Uint32(p.header[10:])}
}
