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

// Flags of a host record.
const (
	hostSubscribes uint8 = 1 << 0
	hostRival      uint8 = 1 << 1 // another claim has the address, as the sender knows
	hostDoubt      uint8 = 1 << 2 // its access device has seen that it may be another host
	hostDown       uint8 = 1 << 3 // the last two fields are there
)

func checkOp(where string, o Op) error {
	if o != Put && o != Withdraw {
		return Malformed(where, "operation %d, want %d (put) or %d (withdraw)", o, Put, Withdraw)
	}
	return nil
}

func (r *reader) op(field string) Op {
	o := Op(r.u8(field))
	if r.err == nil && o != Put && o != Withdraw {
		r.fail(field, "operation %d, want %d (put) or %d (withdraw)", o, Put, Withdraw)
	}
	return o
}

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

func (h *HostRecord) append(b []byte) ([]byte, error) {
	k := h.Host.HostKey
	if err := checkOp("Update.host", h.Op); err != nil {
		return nil, err
	}
	if err := CheckAddr("Update.host.address", k.Addr); err != nil {
		return nil, err
	}
	if err := CheckAddr("Update.host.device", k.Device); err != nil {
		return nil, err
	}
	if err := checkText("Update.host.port", k.Port, 1, fabric.MaxPortName); err != nil {
		return nil, err
	}
	b, at := beginTLV(b, tlvUpdateHost)
	b = append(b, byte(h.Op), byte(h.Why))
	b = appendAddr(appendAddr(b, k.Addr), k.Device)
	b = appendText(b, k.Port)
	if h.Op == Put {
		s := &h.Host.Service
		if err := checkText("Update.host.nqn", s.NQN, 0, snsd.MaxNQN); err != nil {
			return nil, err
		}
		var flags uint8
		if h.Host.Subscribes {
			flags |= hostSubscribes
		}
		if h.Host.Claim == zone.ClaimRival {
			flags |= hostRival
		}
		if h.Host.Doubt {
			flags |= hostDoubt
		}
		if h.Host.Down.Is() {
			flags |= hostDown
		}
		b = append(b, h.Host.MAC[:]...)
		b = append(b, flags, byte(s.Role), byte(s.Protocol))
		b = binary.BigEndian.AppendUint16(b, s.Port)
		b = appendTime(b, h.Host.Since)
		b = appendText(b, s.NQN)
		if h.Host.Down.Is() {
			b = appendDown(b, h.Host.Down)
		}
	}
	return endTLV(b, at), nil
}

func decodeHost(r *reader) HostRecord {
	h := HostRecord{Op: r.op("host")}
	h.Why = snsd.Reason(r.u8("host.reason"))
	h.Host.Addr = r.addr("host.address")
	h.Host.Device = r.addr("host.device")
	h.Host.HostKey.Port = r.text("host.port", 1, fabric.MaxPortName)
	if h.Op != Put {
		return h
	}
	copy(h.Host.MAC[:], r.take("host.mac", 6))
	flags := r.u8("host.flags")
	h.Host.Subscribes = flags&hostSubscribes != 0
	if flags&hostRival != 0 {
		h.Host.Claim = zone.ClaimRival
	}
	h.Host.Doubt = flags&hostDoubt != 0
	h.Host.Role = snsd.Role(r.u8("host.role"))
	h.Host.Protocol = snsd.Protocol(r.u8("host.protocol"))
	h.Host.Service.Port = r.u16("host.service port")
	h.Host.Since = r.time("host.since")
	h.Host.NQN = r.text("host.nqn", 0, snsd.MaxNQN)
	if flags&hostDown != 0 {
		h.Host.Down = decodeDown(r, "host.down")
	}
	return h
}

func (d *DownRecord) append(b []byte) ([]byte, error) {
	if err := CheckAddr("Update.down.device", d.Device); err != nil {
		return nil, err
	}
	if err := checkText("Update.down.port", d.Port, 1, fabric.MaxPortName); err != nil {
		return nil, err
	}
	if len(d.Addrs) > MaxDownAddrs {
		return nil, &LimitError{What: "addresses", Key: "hosts down at port " + d.Port, Limit: MaxDownAddrs}
	}
	b, at := beginTLV(b, tlvUpdateDown)
	b = appendText(appendAddr(appendDown(b, d.Down), d.Device), d.Port)
	for _, a := range d.Addrs {
		if err := CheckAddr("Update.down.address", a); err != nil {
			return nil, err
		}
		b = appendAddr(b, a)
	}
	return endTLV(b, at), nil
}

func decodeDownRecord(r *reader) DownRecord {
	d := DownRecord{Down: decodeDown(r, "down"), Device: r.addr("down.device"), Port: r.text("down.port", 1, fabric.MaxPortName)}
	for r.err == nil && len(r.b) > 0 {
		if len(d.Addrs) == MaxDownAddrs {
			r.fail("down.addresses", "more than %d", MaxDownAddrs)
			break
		}
		d.Addrs = append(d.Addrs, r.addr("down.address"))
	}
	return d
}

// appendDown writes reason and time; both are 0 of a host that is not down.
func appendDown(b []byte, d zone.Down) []byte {
	if !d.Is() {
		d = zone.Down{}
	}
	return appendTime(append(b, byte(d.Why)), d.Since)
}

func decodeDown(r *reader, field string) zone.Down {
	d := zone.Down{Why: snsd.Reason(r.u8(field)), Since: r.time(field)}
	if !d.Is() {
		return zone.Down{}
	}
	return d
}
