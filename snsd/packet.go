package snsd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// Kind of a root TLV: the low five bits of its type.
type Kind uint8

const (
	KindNotify Kind = 1 // switch to host
	KindAck    Kind = 2 // host to switch
	KindQuery  Kind = 3 // host to switch
)

var kindNames = []string{"unknown", "notify", "ack", "query"}

func (k Kind) String() string {
	return name(k, kindNames)
}

const (
	// Version is the newest NTS version, the one we speak; version 0 is read and
	// written too.
	Version uint8 = 1

	headerLen  = 8
	tlvHeader  = 3    // type 1, length 2
	structured = 0x20 // bit of a root TLV's type: the value is sub-TLVs
	kindMask   = 0x1f

	// MaxPayload is the longest payload that is ever sent, in bytes: the existing
	// host agent reads into a buffer of 1514 bytes and takes a full one for cut.
	MaxPayload = 1499
)

// Sub-TLV types.
const (
	subSubject4 = 1
	subHost4    = 2
	subSubject6 = 3
	subHost6    = 4
	subSeq      = 5
	subState    = 6
	subReason   = 7
	subService  = 8
	subFence    = 10 // of an inactive notice, to agents that announced ExtFence
	subMax      = subFence

	serviceFixed = 7 // role 1, protocol 1, reserved 2, port 2, NQN length 1

	extensionsAt = 7 // the last of the header's four reserved bytes
)

// Packet is the payload of one NTS frame. Senders put one kind into a frame;
// receivers take any mix.
type Packet struct {
	Version uint8
	// Extensions are those that a switch offers, or that an agent understands of them.
	Extensions Extensions

	Notices []Notice
	Acks    []Ack
	Queries []netip.Addr // the asking host's own address
	Odd     Oddity       // what was tolerated, over all root TLVs
}

// ParsePacket reads the payload of an NTS frame (after the Ethernet header).
// Bytes past the header's length are padding. A root TLV that is refused is
// skipped: the rest is returned together with a *PartialError. Any other error
// (*Error: ErrTruncated, ErrVersion) comes with an empty packet.
func ParsePacket(payload []byte) (Packet, error) {
	if len(payload) < headerLen {
		return Packet{}, refuse("packet", "header", fmt.Sprintf("of %d bytes", len(payload)), ErrTruncated)
	}
	p := Packet{Version: payload[0], Extensions: Extensions(payload[extensionsAt])}
	if p.Version > Version {
		return Packet{}, refuse("packet", "version", p.Version, ErrVersion)
	}
	var bad *PartialError
	length := int(binary.BigEndian.Uint16(payload[2:]))
	rest := payload[headerLen:]
	if length > len(rest) {
		bad = bad.add(refuse("packet", "length", fmt.Sprintf("%d where %d bytes follow", length, len(rest)), ErrTruncated))
	} else {
		rest = rest[:length]
	}
	for len(rest) > 0 {
		typ, value, next, ok := cutTLV(rest)
		if !ok {
			if length <= len(payload)-headerLen { // else the cut was told above
				bad = bad.add(refuse("packet", "root TLV", fmt.Sprintf("in the last %d bytes", len(rest)), ErrTruncated))
			}
			break
		}
		rest = next
		if err := p.root(typ, value); err != nil {
			bad = bad.add(err)
		}
	}
	if bad != nil {
		return p, bad
	}
	return p, nil
}

// cutTLV splits the first TLV off b.
func cutTLV(b []byte) (typ byte, value, rest []byte, ok bool) {
	if len(b) < tlvHeader {
		return 0, nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(b[1:]))
	if n > len(b)-tlvHeader {
		return 0, nil, nil, false
	}
	return b[0], b[tlvHeader : tlvHeader+n], b[tlvHeader+n:], true
}

// root reads one root TLV into p.
func (p *Packet) root(typ byte, value []byte) error {
	kind := Kind(typ & kindMask)
	if typ&^kindMask != structured || kind < KindNotify || kind > KindQuery {
		return refuse("packet", "root TLV", fmt.Sprintf("0x%02x", typ), ErrKind)
	}
	var s subTLVs
	if err := s.read(kind, value); err != nil {
		return err
	}
	switch kind {
	case KindNotify:
		n, odd, err := s.notice(p.Version)
		if err != nil {
			return err
		}
		p.Odd |= odd
		p.Notices = append(p.Notices, n)
	case KindAck:
		a, err := s.ack()
		if err != nil {
			return err
		}
		p.Acks = append(p.Acks, a)
	case KindQuery:
		host, err := s.addr(kind, subHost4, subHost6)
		if err != nil {
			return err
		}
		p.Queries = append(p.Queries, host)
	}
	return nil
}

// subTLVs holds the values of the known sub-TLVs of one root TLV; nil = absent.
type subTLVs [subMax + 1][]byte

// read collects the sub-TLVs. Unknown ones are skipped; one that occurs twice makes
// the root TLV ambiguous and is refused.
func (s *subTLVs) read(kind Kind, value []byte) error {
	for len(value) > 0 {
		typ, v, rest, ok := cutTLV(value)
		if !ok {
			return refuse(kind.String(), "sub-TLV", fmt.Sprintf("in the last %d bytes", len(value)), ErrTruncated)
		}
		value = rest
		if typ == 0 || typ > subMax {
			continue
		}
		if s[typ] != nil {
			return refuse(kind.String(), "sub-TLV", typ, ErrDuplicate)
		}
		s[typ] = v
	}
	return nil
}

// fixed gives a sub-TLV that must be there with exactly n bytes.
func (s *subTLVs) fixed(kind Kind, typ, n int) ([]byte, error) {
	switch {
	case s[typ] == nil:
		return nil, refuse(kind.String(), "sub-TLV", typ, ErrMissing)
	case len(s[typ]) != n:
		return nil, refuse(kind.String(), "sub-TLV", fmt.Sprintf("%d of %d bytes, want %d", typ, len(s[typ]), n), ErrLength)
	}
	return s[typ], nil
}

// addr gives the address under one of its two types.
func (s *subTLVs) addr(kind Kind, typ4, typ6 int) (a netip.Addr, err error) {
	var v []byte
	switch {
	case s[typ4] != nil && s[typ6] != nil:
		return a, refuse(kind.String(), "sub-TLVs", fmt.Sprintf("%d and %d", typ4, typ6), ErrFamily)
	case s[typ6] != nil:
		if v, err = s.fixed(kind, typ6, 16); err != nil {
			return a, err
		}
		a = netip.AddrFrom16([16]byte(v)).Unmap()
	default:
		if v, err = s.fixed(kind, typ4, 4); err != nil {
			return a, err
		}
		a = netip.AddrFrom4([4]byte(v))
	}
	if err := CheckAddr(a); err != nil {
		return netip.Addr{}, refuse(kind.String(), "address", a, err)
	}
	return a, nil
}

// ackOf gives the part that notices and acks have in common.
func (s *subTLVs) ackOf(kind Kind) (a Ack, err error) {
	if a.Subject, err = s.addr(kind, subSubject4, subSubject6); err != nil {
		return Ack{}, err
	}
	if a.Host, err = s.addr(kind, subHost4, subHost6); err != nil {
		return Ack{}, err
	}
	if a.Subject.Is4() != a.Host.Is4() {
		return Ack{}, refuse(kind.String(), "addresses", fmt.Sprintf("%s and %s", a.Subject, a.Host), ErrFamily)
	}
	v, err := s.fixed(kind, subSeq, 4)
	if err != nil {
		return Ack{}, err
	}
	a.Seq = binary.BigEndian.Uint32(v)
	return a, nil
}

func (s *subTLVs) ack() (Ack, error) { return s.ackOf(KindAck) }

func (s *subTLVs) notice(version uint8) (Notice, Oddity, error) {
	a, err := s.ackOf(KindNotify)
	if err != nil {
		return Notice{}, 0, err
	}
	n := Notice{Subject: a.Subject, Host: a.Host, Seq: a.Seq}
	state, err := s.enum(subState, version, uint32(Active))
	if err != nil {
		return Notice{}, 0, err
	}
	reason, err := s.enum(subReason, version, 255) // a reason of a newer switch is kept as it is
	if err != nil {
		return Notice{}, 0, err
	}
	n.State, n.Reason = State(state), Reason(reason)
	var odd Oddity
	if n.Service, odd, err = s.service(); err != nil {
		return Notice{}, 0, err
	}
	if n.State == Inactive && s[subFence] != nil {
		var oddFence Oddity
		n.Fence, oddFence = readFence(s[subFence])
		odd |= oddFence
	}
	return n, odd, nil
}

// enum reads sub-TLV 6 or 7: one byte in version 0, four in version 1.
func (s *subTLVs) enum(typ int, version uint8, maxValue uint32) (uint32, error) {
	v, err := s.fixed(KindNotify, typ, enumLen(version))
	if err != nil {
		return 0, err
	}
	n := uint32(v[len(v)-1])
	if len(v) == 4 {
		n = binary.BigEndian.Uint32(v)
	}
	if n > maxValue {
		return 0, refuse("notify", "sub-TLV", fmt.Sprintf("%d with value %d, at most %d", typ, n, maxValue), ErrValue)
	}
	return n, nil
}

func enumLen(version uint8) int {
	if version == 0 {
		return 1
	}
	return 4
}

// service reads sub-TLV 8. Bytes after the NQN are ignored.
func (s *subTLVs) service() (Service, Oddity, error) {
	v := s[subService]
	if v == nil {
		return Service{}, 0, refuse("notify", "sub-TLV", subService, ErrMissing)
	}
	if len(v) < serviceFixed || len(v) < serviceFixed+int(v[serviceFixed-1]) {
		return Service{}, 0, refuse("notify", "sub-TLV", fmt.Sprintf("%d of %d bytes", subService, len(v)), ErrTruncated)
	}
	var svc Service
	var odd Oddity
	svc.Role, svc.Protocol, odd = roleAndProtocol(v[0], v[1])
	svc.Port = binary.BigEndian.Uint16(v[4:])
	var ok bool
	if svc.NQN, ok = readNQN(v[serviceFixed : serviceFixed+int(v[serviceFixed-1])]); !ok {
		odd |= OddNQN
	}
	return svc, odd, nil
}

// ParseCounters are the totals of a receiver of NTS frames.
type ParseCounters struct {
	Packets      uint64 `json:"packets"`
	Notices      uint64 `json:"notices"`
	Acks         uint64 `json:"acks"`
	Queries      uint64 `json:"queries"`
	NewerVersion uint64 `json:"newer_version"` // packets dropped because of their version
	Malformed    uint64 `json:"malformed"`     // packets dropped for any other reason
	BadRoots     uint64 `json:"bad_roots"`     // root TLVs refused in packets that were otherwise taken
	Odd          uint64 `json:"odd"`           // packets with something tolerated in them
}

// Note counts what ParsePacket returned.
func (c *ParseCounters) Note(p Packet, err error) {
	c.Packets++
	var partial *PartialError
	switch {
	case errors.As(err, &partial):
		c.BadRoots += uint64(partial.Bad)
	case errors.Is(err, ErrVersion):
		c.NewerVersion++
	case err != nil:
		c.Malformed++
	}
	c.Notices += uint64(len(p.Notices))
	c.Acks += uint64(len(p.Acks))
	c.Queries += uint64(len(p.Queries))
	if p.Odd != 0 {
		c.Odd++
	}
}
