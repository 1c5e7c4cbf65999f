package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openinof/inof/fabric"
)

// HeaderLen is the length of a message header in bytes (docs/protocol.md, "Header").
const HeaderLen = 16

// TagLen is the length of the trailer of an authenticated message: HMAC-SHA256.
const TagLen = 32

const (
	flagTagged   uint16 = 1 << 0 // the message ends with a tag
	flagsUnknown uint16 = 0xff00 // flags that a receiver must understand; the low byte may be ignored

	tlvHeaderLen = 4
	// tlvCritical marks a TLV type that a receiver must understand.
	tlvCritical uint8 = 0x80
)

// Header is the fixed start of every message.
type Header struct {
	Length  int // of the whole message, bytes
	Version uint8
	Type    MsgType
	Flags   uint16
	Seq     uint64 // number of the message within its session and direction; 0 for Open
}

// Append writes the header.
func (h Header) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(h.Length))
	b = append(b, h.Version, byte(h.Type))
	b = binary.BigEndian.AppendUint16(b, h.Flags)
	return binary.BigEndian.AppendUint64(b, h.Seq)
}

// Tagged reports whether the message ends with a tag.
func (h Header) Tagged() bool { return h.Flags&flagTagged != 0 }

// ParseHeader reads a header and checks that a message of at most limit bytes
// begins here. Of another version only a Notification is taken: its layout is that
// of every version (docs/protocol.md, "Versions").
func ParseHeader(b []byte, limit int) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, &ProtocolError{Code: CodeLength, Where: "header", Detail: fmt.Sprintf("%d bytes, want %d", len(b), HeaderLen)}
	}
	n := binary.BigEndian.Uint32(b)
	h := Header{
		Length:  int(min(n, 1<<31-1)),
		Version: b[4],
		Type:    MsgType(b[5]),
		Flags:   binary.BigEndian.Uint16(b[6:]),
		Seq:     binary.BigEndian.Uint64(b[8:]),
	}
	if name := Foreign(b); name != "" {
		hint := ""
		if name == "TLS" {
			hint = "; this side does not: if it is an iNOF device, the authentication modes differ"
		}
		return h, &ProtocolError{Code: CodeNotINOF, Where: "header", Detail: fmt.Sprintf("the peer speaks %s (bytes % x)%s", name, b[:8], hint)}
	}
	if h.Version != Version && (h.Type != TypeNotification || h.Flags != 0) {
		detail := fmt.Sprintf("this came in version %d, the sender of this answer speaks version %d: upgrade the older device", h.Version, Version)
		return h, &ProtocolError{Code: CodeVersion, Where: "header", Detail: detail, AnswerIn: h.Version}
	}
	least := HeaderLen
	if h.Tagged() {
		least += TagLen
	}
	if h.Length < least || h.Length > limit {
		return h, &ProtocolError{Code: CodeLength, Where: "header", Detail: fmt.Sprintf("length %d, want %d..%d", n, least, limit)}
	}
	if !h.Type.known() {
		return h, &ProtocolError{Code: CodeType, Where: "header", Detail: fmt.Sprintf("type %d, want %d..%d", h.Type, TypeOpen, lastType)}
	}
	if h.Flags&flagsUnknown != 0 {
		return h, &ProtocolError{Code: CodeMalformed, Where: "header.flags", Detail: fmt.Sprintf("%#04x holds flags that this version does not know", h.Flags)}
	}
	return h, nil
}

// Foreign names the protocol whose first bytes these are. A length field of ours
// begins with 00, so none of them can be meant for us.
func Foreign(b []byte) string {
	if b[0] == 0 {
		return ""
	}
	for _, p := range [...]struct {
		prefix []byte
		name   string
	}{
		{[]byte{0x16, 0x03}, "TLS"},
		{bytes.Repeat([]byte{0xff}, HeaderLen), "BGP"},
		{[]byte("SSH-"), "SSH"},
		{[]byte("GET "), "HTTP"}, {[]byte("POST "), "HTTP"}, {[]byte("PUT "), "HTTP"}, {[]byte("HEAD "), "HTTP"},
		{[]byte("OPTIONS "), "HTTP"}, {[]byte("PRI * HTTP"), "HTTP/2"}, {[]byte("HTTP/"), "HTTP"},
	} {
		if bytes.HasPrefix(b, p.prefix) {
			return p.name
		}
	}
	return "another protocol"
}

// beginTLV appends a TLV header whose length endTLV fills in.
func beginTLV(b []byte, typ uint8) ([]byte, int) {
	return append(b, typ, 0, 0, 0), len(b)
}

func endTLV(b []byte, at int) []byte {
	n := len(b) - at - tlvHeaderLen
	b[at+1], b[at+2], b[at+3] = byte(n>>16), byte(n>>8), byte(n)
	return b
}

// eachTLV calls f for every TLV of a body. f returns false for a type it does not
// know; such a TLV is skipped unless its type says that it must be understood.
func eachTLV(msg string, body []byte, f func(typ uint8, r *reader) bool) error {
	if len(body) == 0 {
		return nil
	}
	r := reader{where: msg} // one for all TLVs: it is garbage at the end
	for off := 0; off < len(body); {
		if len(body)-off < tlvHeaderLen {
			return Malformed(msg, "%d bytes at offset %d are no TLV header", len(body)-off, off)
		}
		typ := body[off]
		n := int(body[off+1])<<16 | int(body[off+2])<<8 | int(body[off+3])
		off += tlvHeaderLen
		if n > len(body)-off {
			return Malformed(msg, "TLV type %d at offset %d has length %d, but %d bytes are left", typ, off-tlvHeaderLen, n, len(body)-off)
		}
		r.b = body[off : off+n]
		off += n
		r.rest = body[off:]
		if !f(typ, &r) && typ&tlvCritical != 0 {
			return Malformed(msg, "TLV type %d must be understood and is unknown", typ)
		}
		if r.err != nil {
			return r.err
		}
	}
	return nil
}

// tlvSet remembers which single TLVs a body has had, by type (0..63).
type tlvSet uint64

// again tells that a TLV which may be there at most once is there a second time, and
// makes that the error of r: of two values neither is the one that was meant.
func (s *tlvSet) again(typ uint8, r *reader) bool {
	if *s&(1<<typ) != 0 {
		r.fail(fmt.Sprintf("TLV %d", typ), "is there twice")
		return true
	}
	*s |= 1 << typ
	return false
}

// has reports whether there was a TLV of the type.
func (s tlvSet) has(typ uint8) bool { return s&(1<<typ) != 0 }

// reader takes fields from a value; the first error sticks.
type reader struct {
	b     []byte
	rest  []byte // of the message, behind the value
	where string
	port  string // the last one that was read
	err   error
}

func (r *reader) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = Malformed(r.where+"."+field, format, args...)
	}
	r.b = nil
}

func (r *reader) take(field string, n int) []byte {
	if r.err != nil {
		return nil
	}
	if len(r.b) < n {
		r.fail(field, "truncated: %d bytes are left, want %d", len(r.b), n)
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) u8(field string) uint8 {
	if v := r.take(field, 1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) u16(field string) uint16 {
	if v := r.take(field, 2); v != nil {
		return binary.BigEndian.Uint16(v)
	}
	return 0
}

func (r *reader) u32(field string) uint32 {
	if v := r.take(field, 4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (r *reader) u64(field string) uint64 {
	if v := r.take(field, 8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// addr takes a family octet (4 or 6) and the address.
func (r *reader) addr(field string) netip.Addr {
	switch f := r.u8(field); {
	case r.err != nil:
	case f == 4:
		if v := r.take(field, 4); v != nil {
			return netip.AddrFrom4([4]byte(v))
		}
	case f == 6:
		if v := r.take(field, 16); v != nil {
			return r.plain(field, netip.AddrFrom16([16]byte(v)))
		}
	default:
		r.fail(field, "address family %d, want 4 or 6", f)
	}
	return netip.Addr{}
}

func (r *reader) plain(field string, a netip.Addr) netip.Addr {
	if a.Is4In6() {
		r.fail(field, "%v is an IPv4 address in IPv6 form", a)
		return netip.Addr{}
	}
	return a
}

// time takes nanoseconds since 1970; 0 is the zero time.
func (r *reader) time(field string) time.Time {
	n := int64(r.u64(field))
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// text takes a length octet and that many bytes, least..most of them.
func (r *reader) text(field string, least, most int) string {
	n := int(r.u8(field))
	if r.err == nil && (n < least || n > most) {
		r.fail(field, "length %d, want %d..%d", n, least, most)
	}
	v := r.take(field, n)
	if string(v) == r.port {
		return r.port
	}
	s := string(v)
	if r.err == nil && !printable(s) {
		r.fail(field, "%q is not printable UTF-8", s)
	}
	return s
}

// portName takes the name of a port; that of the record before is the same string.
func (r *reader) portName(field string) string {
	r.port = r.text(field, 1, fabric.MaxPortName)
	return r.port
}

// leastRecord is the length of a short record in bytes, its header included.
const leastRecord = 16

// following is how many records of a type come next, for how much memory they need: no more than
// have room in the bytes that are there.
func (r *reader) following(typ uint8) (n int) {
	for b := r.rest; len(b) >= tlvHeaderLen && b[0] == typ; n++ {
		b = b[min(len(b), tlvHeaderLen+(int(b[1])<<16|int(b[2])<<8|int(b[3]))):]
	}
	return min(n, len(r.rest)/leastRecord)
}

// printable keeps control characters out of tables and logs.
func printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return utf8.ValidString(s) && !containsControl(s)
		}
	}
	return true
}

func containsControl(s string) bool {
	for _, c := range s {
		if unicode.IsControl(c) {
			return true
		}
	}
	return false
}

func appendAddr(b []byte, a netip.Addr) []byte {
	if a.Is4() {
		v := a.As4()
		return append(append(b, 4), v[:]...)
	}
	v := a.As16()
	return append(append(b, 6), v[:]...)
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.BigEndian.AppendUint64(b, 0)
	}
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixNano()))
}

func appendText(b []byte, s string) []byte {
	return append(append(b, byte(len(s))), s...)
}

// CheckAddr refuses what is no address of a device or host on the wire.
func CheckAddr(where string, a netip.Addr) error {
	switch {
	case !a.IsValid():
		return Malformed(where, "no address is set")
	case a.Zone() != "":
		return Malformed(where, "%v has a zone index", a)
	case a.Is4In6():
		return Malformed(where, "%v is an IPv4 address in IPv6 form", a)
	}
	return nil
}

func checkText(where, s string, least, most int) error {
	if len(s) < least || len(s) > most {
		return Malformed(where, "%q has length %d, want %d..%d", s[:min(len(s), 80)], len(s), least, most)
	}
	if !printable(s) {
		return Malformed(where, "%q is not printable UTF-8", s)
	}
	return nil
}
