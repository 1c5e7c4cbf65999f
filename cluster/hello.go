package cluster

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"net/netip"
	"strconv"
	"strings"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
)

// MemberID is a member in one incarnation: with the state it has on disk. A member
// that lost its disk has another incarnation, and is another member.
type MemberID struct {
	Device      netip.Addr
	Incarnation uint64
}

// String gives DEVICE/INCARNATION, the latter in hexadecimal.
func (m MemberID) String() string { return fmt.Sprintf("%s/%016x", m.Device, m.Incarnation) }

// ParseMemberID is the inverse of String.
func ParseMemberID(s string) (MemberID, error) {
	dev, inc, ok := strings.Cut(s, "/")
	a, err := netip.ParseAddr(dev)
	n, err2 := strconv.ParseUint(inc, 16, 64)
	if !ok || err != nil || err2 != nil || len(inc) != 16 {
		return MemberID{}, broken("member id", "%.100q is not DEVICE/INCARNATION", s)
	}
	return MemberID{a, n}, nil
}

// Protocol of the connections between members.
const (
	helloMagic   = "iNOFclus"
	wireVersion  = 2
	nonceLen     = 32
	maxHello     = 256 // bytes
	ALPN         = "inof-cluster/2"
	labelDialer  = "iNOF cluster v2 dialer to listener"
	labelListens = "iNOF cluster v2 listener to dialer"
	labelSecond  = "iNOF cluster v2 second password"
)

// hello is the first message in each direction.
type hello struct {
	Mode    wire.AuthMode
	Self    MemberID
	Target  MemberID // incarnation 0: whichever it is
	Cluster uint64   // 0: none yet
	Fresh   bool     // without any state: may take part in a first start, or be added
	Nonce   [nonceLen]byte
}

func (h *hello) encode() []byte {
	b := append([]byte(helloMagic), wireVersion, byte(h.Mode))
	b = binary.BigEndian.AppendUint64(appendAddr(b, h.Self.Device), h.Self.Incarnation)
	b = binary.BigEndian.AppendUint64(appendAddr(b, h.Target.Device), h.Target.Incarnation)
	b = appendFlag(binary.BigEndian.AppendUint64(b, h.Cluster), h.Fresh)
	return append(b, h.Nonce[:]...)
}

func decodeHello(b []byte) (*hello, error) {
	r := &reader{b: b, where: "hello"}
	if magic := r.take("magic", len(helloMagic)); r.err == nil && string(magic) != helloMagic {
		r.fail("begins with %q: this is no member of a cluster", magic)
	}
	if v := r.u8("version"); r.err == nil && v != wireVersion {
		r.fail("version %d, want %d", v, wireVersion)
	}
	h := &hello{Mode: wire.AuthMode(r.u8("mode"))}
	h.Self = MemberID{r.addr("device"), r.u64("incarnation")}
	h.Target = MemberID{r.addr("target"), r.u64("target incarnation")}
	h.Cluster, h.Fresh = r.u64("cluster"), r.flag("fresh")
	copy(h.Nonce[:], r.take("nonce", nonceLen))
	if r.err == nil && (!h.Self.Device.IsValid() || h.Self.Incarnation == 0) {
		r.fail("the sender does not say who it is")
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return h, nil
}

// keys derives those of each password as the iNOF protocol does.
func keys(passwords []link.Password, dialer, listener []byte) ([]*link.SessionKeys, error) {
	h := link.Handshake{
		DialerNonce: dialer[len(dialer)-nonceLen:], ListenerNonce: listener[len(listener)-nonceLen:], Dialer: dialer, Listener: listener,
		Labels: link.Labels{Dialer: labelDialer, Listener: labelListens, Second: labelSecond},
	}
	return h.All(passwords)
}

// recordType tells what a record holds.
type recordType uint8

const (
	recordProof    recordType = 1 // the sender knows the key; a dialer: and a second one
	recordRequest  recordType = 2
	recordResponse recordType = 3
	recordChunk    recordType = 4 // part of a snapshot
	recordRefusal  recordType = 5 // why the sender closes, UTF-8
)

// Sizes of records, in bytes.
const (
	recordHead  = 4 + 1 + 8 // length of the whole record, type, number
	recordTag   = sha256.Size
	maxRecord   = MaxEntry + (1 << 20) // an entry with what is around it
	maxBatch    = 1 << 20              // entries of one request beyond the first
	maxChunk    = 256 << 10
	maxSmall    = 64 << 10 // of all that holds no entries and no snapshot
	maxRefusing = 1024
)

// limit is the longest record of a type. A request says with its first octet what it is.
func (t recordType) limit() int {
	switch t {
	case recordRequest:
		return maxRecord
	case recordChunk:
		return recordHead + maxChunk + recordTag
	case recordResponse:
		return recordHead + maxSmall + recordTag
	}
	return recordHead + maxRefusing + recordTag
}

// seal numbers the records of one direction and puts a tag on each: HMAC-SHA256 of
// all before it. Without a key there are no tags.
type seal struct {
	mac    hash.Hash
	number uint64
	sum    [recordTag]byte
}

func newSeal(key []byte) *seal {
	s := &seal{}
	if key != nil {
		s.mac = hmac.New(sha256.New, key)
	}
	return s
}

func (s *seal) overhead() int {
	if s.mac == nil {
		return recordHead
	}
	return recordHead + recordTag
}

// append appends a record to dst.
func (s *seal) append(dst []byte, t recordType, body ...[]byte) []byte {
	n := s.overhead()
	for _, b := range body {
		n += len(b)
	}
	s.number++
	at := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	dst = binary.BigEndian.AppendUint64(append(dst, byte(t)), s.number)
	for _, b := range body {
		dst = append(dst, b...)
	}
	if s.mac == nil {
		return dst
	}
	s.mac.Reset()
	s.mac.Write(dst[at:])
	return s.mac.Sum(dst)
}

// head checks the first bytes of a record and tells how many follow them.
func (s *seal) head(b []byte) (t recordType, rest int, err error) {
	r := &reader{b: b, where: "record"}
	n := int64(r.u32("length"))
	t = recordType(r.u8("type"))
	number := r.u64("number")
	switch {
	case r.err != nil:
		return 0, 0, r.err
	case t < recordProof || t > recordRefusal:
		return 0, 0, broken("record", "type %d is unknown", t)
	case n < int64(s.overhead()) || n > int64(t.limit()):
		return 0, 0, broken("record", "type %d has length %d, want %d..%d", t, n, s.overhead(), t.limit())
	case number != s.number+1:
		return 0, 0, broken("record", "number %d, want %d", number, s.number+1)
	}
	return t, int(n) - recordHead, nil
}

// open checks a whole record, whose head was checked, and gives its body.
func (s *seal) open(head, rest []byte) ([]byte, error) {
	s.number++
	if s.mac == nil {
		return rest, nil
	}
	end := len(rest) - recordTag
	s.mac.Reset()
	s.mac.Write(head)
	s.mac.Write(rest[:end])
	if !hmac.Equal(s.mac.Sum(s.sum[:0]), rest[end:]) {
		return nil, errTag
	}
	return rest[:end], nil
}

var errTag = broken("record", "the tag does not match: the passwords differ, or the bytes were altered")
