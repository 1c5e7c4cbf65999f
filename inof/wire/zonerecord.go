package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Kinds of zone members on the wire (docs/protocol.md, "Zone record").
const (
	wireMemberAddr  uint8 = 1
	wireMemberRange uint8 = 2
	wireMemberNQN   uint8 = 3
	wireMemberPort  uint8 = 4
	wireMemberBound uint8 = 5
)

func (z *ZoneRecord) append(b []byte) ([]byte, error) {
	if err := checkOp("Update.zone", z.Op); err != nil {
		return nil, err
	}
	if err := checkText("Update.zone.name", z.Zone.Name, 1, zone.MaxName); err != nil {
		return nil, err
	}
	b, at := beginTLV(b, tlvUpdateZone)
	b = appendText(append(b, byte(z.Op)), z.Zone.Name)
	if z.Op == Put {
		b = append(b, z.Packed...)
		for i := range z.Zone.Members {
			var err error
			if b, err = appendMember(b, &z.Zone.Members[i]); err != nil {
				return nil, fmt.Errorf("zone %q: %w", z.Zone.Name, err)
			}
		}
	}
	if len(b)-at-tlvHeaderLen >= 1<<24 {
		return nil, fmt.Errorf("zone %q: %w", z.Zone.Name, ErrTooLarge)
	}
	return endTLV(b, at), nil
}

// memberHeaderLen is kind and length of a member, in bytes.
const memberHeaderLen = 3

// Places of an NQN that is bound to one.
const (
	wirePlacePrefix uint8 = 1
	wirePlacePort   uint8 = 2
)

// appendMember writes kind, length of the value, value.
func appendMember(b []byte, m *zone.Member) ([]byte, error) {
	at := len(b)
	const where = "Update.zone.member"
	switch m.Kind {
	case zone.MemberAddr:
		if err := CheckAddr(where, m.First); err != nil {
			return nil, err
		}
		b = append(b, wireMemberAddr, 0, 0)
		b = append(b, m.First.AsSlice()...)
	case zone.MemberRange:
		if err := CheckAddr(where, m.First); err != nil {
			return nil, err
		}
		if err := CheckAddr(where, m.Last); err != nil {
			return nil, err
		}
		if m.First.BitLen() != m.Last.BitLen() || m.Last.Less(m.First) {
			return nil, Malformed(where, "%v-%v is no range", m.First, m.Last)
		}
		b = append(b, wireMemberRange, 0, 0)
		b = append(append(b, m.First.AsSlice()...), m.Last.AsSlice()...)
	case zone.MemberNQN:
		if err := checkText(where+".nqn", m.NQN, 1, snsd.MaxNQN); err != nil {
			return nil, err
		}
		b = append(append(b, wireMemberNQN, 0, 0), m.NQN...)
	case zone.MemberPort:
		if err := CheckAddr(where+".device", m.Device); err != nil {
			return nil, err
		}
		if err := checkText(where+".port", m.Port, 1, fabric.MaxPortName); err != nil {
			return nil, err
		}
		b = append(appendAddr(append(b, wireMemberPort, 0, 0), m.Device), m.Port...)
	case zone.MemberBound:
		var err error
		if b, err = appendPlace(append(b, wireMemberBound, 0, 0), m); err != nil {
			return nil, err
		}
		if err := checkText(where+".nqn", m.NQN, 1, snsd.MaxNQN); err != nil {
			return nil, err
		}
		b = append(b, m.NQN...)
	default:
		return nil, Malformed(where, "kind %d is unknown", m.Kind)
	}
	binary.BigEndian.PutUint16(b[at+1:], uint16(len(b)-at-memberHeaderLen))
	return b, nil
}

// appendPlace writes where a bound NQN counts.
func appendPlace(b []byte, m *zone.Member) ([]byte, error) {
	const where = "Update.zone.member.place"
	if p, ok := m.Prefix(); ok {
		return append(appendAddr(append(b, wirePlacePrefix), p.Addr()), byte(p.Bits())), nil
	}
	if err := CheckAddr(where+".device", m.Device); err != nil {
		return nil, err
	}
	if err := checkText(where+".port", m.Port, 0, fabric.MaxPortName); err != nil {
		return nil, err
	}
	return appendText(appendAddr(append(b, wirePlacePort), m.Device), m.Port), nil
}

func decodeZone(r *reader) ZoneRecord {
	z := ZoneRecord{Op: r.op("zone")}
	z.Zone.Name = r.text("zone.name", 1, zone.MaxName)
	for z.Op == Put && r.err == nil && len(r.b) > 0 {
		z.Zone.Members = append(z.Zone.Members, decodeMember(r))
	}
	return z
}

func decodeMember(r *reader) zone.Member {
	const field = "zone.member"
	kind := r.u8(field)
	v := r.take(field, int(r.u16(field)))
	switch n := len(v); {
	case r.err != nil:
	case kind == wireMemberAddr && (n == 4 || n == 16):
		a, _ := netip.AddrFromSlice(v)
		return zone.Member{Kind: zone.MemberAddr, First: r.plain(field, a)}
	case kind == wireMemberRange && (n == 8 || n == 32):
		first, _ := netip.AddrFromSlice(v[:n/2])
		last, _ := netip.AddrFromSlice(v[n/2:])
		if last.Less(first) {
			r.fail(field, "range %v-%v ends before it begins", first, last)
		}
		return zone.Member{Kind: zone.MemberRange, First: r.plain(field, first), Last: r.plain(field, last)}
	case kind == wireMemberNQN && n > 0:
		m := zone.Member{Kind: zone.MemberNQN, NQN: string(v)}
		if !printable(m.NQN) {
			r.fail(field, "NQN %q is not printable", m.NQN)
		}
		return m
	case kind == wireMemberPort:
		sub := reader{b: v, where: r.where}
		m := zone.Member{Kind: zone.MemberPort, Device: sub.addr(field + ".device")}
		m.Port = string(sub.b)
		if sub.err != nil {
			r.err = sub.err
		} else if err := checkText(r.where+"."+field+".port", m.Port, 1, fabric.MaxPortName); err != nil {
			r.err = err
		}
		return m
	case kind == wireMemberBound:
		sub := reader{b: v, where: r.where}
		m := decodeBound(&sub)
		r.err = sub.err
		return m
	default:
		r.fail(field, "kind %d with %d bytes is unknown", kind, n)
	}
	return zone.Member{}
}

// decodeBound reads an NQN at a place: the place, and the NQN up to the end.
func decodeBound(r *reader) zone.Member {
	const field = "zone.member.place"
	m := zone.Member{Kind: zone.MemberBound}
	switch kind := r.u8(field); kind {
	case wirePlacePrefix:
		a, bits := r.addr(field), int(r.u8(field))
		p := netip.PrefixFrom(a, bits)
		if r.err == nil && p != p.Masked() {
			r.fail(field, "%v/%d is no prefix", a, bits)
		}
		m.First, m.Last = zone.PrefixEnds(p)
	case wirePlacePort:
		m.Device = r.addr(field + ".device")
		m.Port = r.text(field+".port", 0, fabric.MaxPortName)
	default:
		r.fail(field, "kind %d is unknown", kind)
	}
	if r.err == nil {
		m.NQN = string(r.b)
		r.err = checkText(r.where+".zone.member.nqn", m.NQN, 1, snsd.MaxNQN)
	}
	return m
}

// ZoneRecord puts or withdraws a configured zone; its key is Zone.Name. Of a
// withdrawn record only the name travels.
type ZoneRecord struct {
	Op   Op
	Zone zone.Zone
	// Packed are the members instead of Zone.Members, for who sends them often; a record that
	// was received has none.
	Packed PackedMembers
}

// Size is the length of the record on the wire, in bytes, or a little more.
func (z *ZoneRecord) Size() int {
	if z.Op == Put {
		return z.Zone.Size() + len(z.Packed)
	}
	return (&zone.Zone{Name: z.Zone.Name}).Size()
}

func (z *ZoneRecord) weight() int       { return 1 }
func (z *ZoneRecord) goes() bool        { return false }                           // no host by itself
func (z *ZoneRecord) key() zone.HostKey { return zone.HostKey{Port: z.Zone.Name} } // it is the reflector's
