package snsd

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Sizes of root TLVs in bytes, without the part that depends on family, version
// and NQN.
const (
	seqTLV = tlvHeader + 4

	// QueryPadding is how many zero bytes the existing agent sends after its query.
	QueryPadding = 12
)

func addrTLV(a netip.Addr) int { return tlvHeader + a.BitLen()/8 }

// NoticeLen is how many bytes a notice takes in a payload of that version.
func NoticeLen(n *Notice, version uint8) int {
	size := tlvHeader + addrTLV(n.Subject) + addrTLV(n.Host) + seqTLV +
		2*(tlvHeader+enumLen(version)) + tlvHeader + serviceFixed + len(n.Service.NQN)
	if n.Fence != nil {
		size += tlvHeader + fenceLen
	}
	return size
}

// AppendNotify appends a whole payload (header included) of the current version
// with these notices. It refuses what a receiver would refuse, and more than
// MaxPayload bytes (ErrTooLong); Packer splits instead.
func AppendNotify(b []byte, notices ...Notice) ([]byte, error) {
	return Packet{Version: Version, Notices: notices}.Append(b)
}

// AppendAck appends a whole payload of the current version with these acks.
func AppendAck(b []byte, acks ...Ack) ([]byte, error) {
	return Packet{Version: Version, Acks: acks}.Append(b)
}

// AppendQuery appends a whole payload of the current version that asks for the
// zones of these addresses, and then padding zero bytes outside the header's
// length (QueryPadding for the bytes of the existing agent).
func AppendQuery(b []byte, padding int, hosts ...netip.Addr) ([]byte, error) {
	b, err := Packet{Version: Version, Queries: hosts}.Append(b)
	if err != nil {
		return b, err
	}
	for range padding {
		b = append(b, 0)
	}
	return b, nil
}

// Append appends the payload of an NTS frame. On an error b is as it was.
func (p Packet) Append(b []byte) ([]byte, error) {
	if p.Version > Version {
		return b, refuse("packet", "version", p.Version, ErrVersion)
	}
	start := len(b)
	out := appendHeader(b, p.Version, p.Extensions)
	var err error
	for i := range p.Notices {
		if out, err = appendNoticeTLV(out, &p.Notices[i], p.Version); err != nil {
			return b, err
		}
	}
	for i := range p.Acks {
		if out, err = appendAckTLV(out, &p.Acks[i]); err != nil {
			return b, err
		}
	}
	for _, q := range p.Queries {
		if out, err = appendQueryTLV(out, q); err != nil {
			return b, err
		}
	}
	if n := len(out) - start; n > MaxPayload {
		return b, refuse("packet", "payload", fmt.Sprintf("of %d bytes, at most %d", n, MaxPayload), ErrTooLong)
	}
	setLength(out[start:])
	return out, nil
}

func appendHeader(b []byte, version uint8, ext Extensions) []byte {
	return append(b, version, 0, 0, 0, 0, 0, 0, byte(ext))
}

// setLength writes the header's length for all that follows it.
func setLength(payload []byte) {
	binary.BigEndian.PutUint16(payload[2:], uint16(len(payload)-headerLen))
}

func appendRoot(b []byte, k Kind, n int) []byte {
	return append(b, structured|byte(k), byte(n>>8), byte(n))
}

func appendAddr(b []byte, typ4, typ6 byte, a netip.Addr) []byte {
	if a.Is4() {
		v := a.As4()
		return append(append(b, typ4, 0, 4), v[:]...)
	}
	v := a.As16()
	return append(append(b, typ6, 0, 16), v[:]...)
}

func appendSeq(b []byte, seq uint32) []byte {
	return binary.BigEndian.AppendUint32(append(b, subSeq, 0, 4), seq)
}

func appendEnum(b []byte, typ, v byte, version uint8) []byte {
	if version == 0 {
		return append(b, typ, 0, 1, v)
	}
	return append(b, typ, 0, 4, 0, 0, 0, v)
}

// checkPair refuses addresses that no host could have or that do not go together.
func checkPair(k Kind, subject, host netip.Addr) error {
	if err := CheckAddr(subject); err != nil {
		return refuse(k.String(), "address", subject, err)
	}
	if err := CheckAddr(host); err != nil {
		return refuse(k.String(), "address", host, err)
	}
	if subject.Is4() != host.Is4() {
		return refuse(k.String(), "addresses", fmt.Sprintf("%s and %s", subject, host), ErrFamily)
	}
	return nil
}

func checkNotice(n *Notice) error {
	if err := checkPair(KindNotify, n.Subject, n.Host); err != nil {
		return err
	}
	if n.State > Active {
		return refuse("notify", "state", n.State, ErrValue)
	}
	if err := CheckNQN(n.Service.NQN); err != nil {
		return refuse("notify", "NQN", fmt.Sprintf("%q", n.Service.NQN), err)
	}
	if n.Fence != nil {
		return n.Fence.check(n.State)
	}
	return nil
}

func appendNoticeTLV(b []byte, n *Notice, version uint8) ([]byte, error) {
	if err := checkNotice(n); err != nil {
		return b, err
	}
	b = appendRoot(b, KindNotify, NoticeLen(n, version)-tlvHeader)
	b = appendAddr(b, subSubject4, subSubject6, n.Subject)
	b = appendAddr(b, subHost4, subHost6, n.Host)
	b = appendSeq(b, n.Seq)
	b = appendEnum(b, subState, byte(n.State), version)
	b = appendEnum(b, subReason, byte(n.Reason), version)
	svc := &n.Service
	size := serviceFixed + len(svc.NQN)
	b = append(b, subService, byte(size>>8), byte(size), byte(svc.Role), byte(svc.Protocol), 0, 0,
		byte(svc.Port>>8), byte(svc.Port), byte(len(svc.NQN)))
	b = append(b, svc.NQN...)
	if n.Fence != nil {
		b = n.Fence.append(b)
	}
	return b, nil
}

func appendAckTLV(b []byte, a *Ack) ([]byte, error) {
	if err := checkPair(KindAck, a.Subject, a.Host); err != nil {
		return b, err
	}
	b = appendRoot(b, KindAck, addrTLV(a.Subject)+addrTLV(a.Host)+seqTLV)
	b = appendAddr(b, subSubject4, subSubject6, a.Subject)
	b = appendAddr(b, subHost4, subHost6, a.Host)
	return appendSeq(b, a.Seq), nil
}

func appendQueryTLV(b []byte, host netip.Addr) ([]byte, error) {
	if err := CheckAddr(host); err != nil {
		return b, refuse("query", "address", host, err)
	}
	b = appendRoot(b, KindQuery, addrTLV(host))
	return appendAddr(b, subHost4, subHost6, host), nil
}
