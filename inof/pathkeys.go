package inof

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// PathKeys hands out the keys of BFD between devices. A client asks for those of its paths
// to some devices, the reflector answers with them. Each reflector makes keys of its own,
// and a new session asks anew.
type PathKeys struct {
	Asked []netip.Addr // of a question: the other ends, at most MaxPathKeys
	Keys  []PathKey    // of an answer, at most MaxPathKeys
	// Sealed is the message as sessions of mode hmac-sha256 carry it, encrypted: these can
	// be read on the way. Only Decode gives it.
	Sealed []byte
}

// PathKey is the key of the path between the receiver and a device.
type PathKey struct {
	Device netip.Addr
	ID     uint8 // by which packets name it; keys of several reflectors may have the same
	Secret [PathSecretLen]byte
}

const (
	// MaxPathKeys is how many devices or keys one message has.
	MaxPathKeys = 256
	// PathSecretLen is the longest key of RFC 5880 section 4.4.
	PathSecretLen = 20
)

// TLV types of a PathKeys (docs/protocol.md, "Path keys"), the first two any number of
// times.
const (
	tlvPathAsked  uint8 = 1 // address
	tlvPathKey    uint8 = 2 // address, id u8, 20 bytes
	tlvPathSealed uint8 = 3 // alone
)

// Type implements Message.
func (*PathKeys) Type() MsgType { return TypePathKeys }

func (m *PathKeys) appendBody(b []byte) ([]byte, error) {
	if n := max(len(m.Asked), len(m.Keys)); n > MaxPathKeys {
		return nil, malformed("PathKeys", "%d devices, want at most %d", n, MaxPathKeys)
	}
	var at int
	for _, a := range m.Asked {
		if err := checkAddr("PathKeys.asked", a); err != nil {
			return nil, err
		}
		b, at = beginTLV(b, tlvPathAsked)
		b = endTLV(appendAddr(b, a), at)
	}
	for i := range m.Keys {
		k := &m.Keys[i]
		if err := checkAddr("PathKeys.key", k.Device); err != nil {
			return nil, err
		}
		b, at = beginTLV(b, tlvPathKey)
		b = append(appendAddr(b, k.Device), k.ID)
		b = endTLV(append(b, k.Secret[:]...), at)
	}
	if len(m.Sealed) > 0 {
		b, at = beginTLV(b, tlvPathSealed)
		b = endTLV(append(b, m.Sealed...), at)
	}
	return b, nil
}

func decodePathKeys(body []byte) (*PathKeys, error) {
	var m PathKeys
	err := eachTLV("PathKeys", body, func(typ uint8, r *reader) bool {
		switch typ {
		case tlvPathAsked:
			m.Asked = append(m.Asked, r.addr("asked"))
		case tlvPathKey:
			k := PathKey{Device: r.addr("key"), ID: r.u8("key")}
			copy(k.Secret[:], r.take("key", PathSecretLen))
			m.Keys = append(m.Keys, k)
		case tlvPathSealed:
			if m.Sealed != nil {
				r.fail("sealed", "TLV type %d is there twice", typ)
			}
			m.Sealed = append([]byte{}, r.b...)
		default:
			return false
		}
		if len(m.Asked) > MaxPathKeys || len(m.Keys) > MaxPathKeys {
			r.fail("devices", "more than %d", MaxPathKeys)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// conceals tells whether messages of a type are encrypted in this session: in mode tls all
// of it is, and mode none has no key.
func (s *Session) conceals(t MsgType) bool { return t == TypePathKeys && s.used != nil }

// concealer is the cipher of this session for what is not for those who read along.
func (s *Session) concealer() (cipher.AEAD, error) {
	key, err := s.used.expand("iNOF v2 sealed")
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// concealNonce differs for each message of a session: it is the direction and the number.
func concealNonce(byDialer bool, seq uint64) []byte {
	n := make([]byte, 4, 12)
	if byDialer {
		n[3] = 1
	}
	return binary.BigEndian.AppendUint64(n, seq)
}

// conceal encrypts the body of the message with the number seq.
func (s *Session) conceal(body []byte, seq uint64) ([]byte, error) {
	c, err := s.concealer()
	if err != nil {
		return nil, err
	}
	out, at := beginTLV(nil, tlvPathSealed)
	return endTLV(c.Seal(out, concealNonce(s.cfg.Dialer, seq), body, nil), at), nil
}

// reveal decrypts the body of the message with the number seq.
func (s *Session) reveal(body []byte, seq uint64) ([]byte, error) {
	m, err := decodePathKeys(body)
	if err != nil {
		return nil, err
	}
	if m.Sealed == nil || len(m.Asked)+len(m.Keys) > 0 {
		return nil, malformed("PathKeys.sealed", "is missing or not alone, which a session in mode hmac-sha256 needs")
	}
	c, err := s.concealer()
	if err != nil {
		return nil, err
	}
	out, err := c.Open(nil, concealNonce(!s.cfg.Dialer, seq), m.Sealed, nil)
	if err != nil {
		return nil, malformed("PathKeys.sealed", "%d bytes cannot be decrypted", len(m.Sealed))
	}
	return out, nil
}

// PathSecret is what a reflector makes keys of paths from; nobody else knows it.
type PathSecret [sha256.Size]byte

// String hides it from logs.
func (PathSecret) String() string { return "[secret]" }

// GoString hides it from logs.
func (s PathSecret) GoString() string { return s.String() }

// key is that of the path between two devices, the same for both.
func (s PathSecret) key(self, dev netip.Addr) PathKey {
	a, b := self, dev
	if b.Less(a) {
		a, b = b, a
	}
	mac := hmac.New(sha256.New, s[:])
	mac.Write([]byte("iNOF v2 BFD " + a.String() + " " + b.String()))
	sum := mac.Sum(nil)
	return PathKey{Device: dev, ID: sum[PathSecretLen], Secret: [PathSecretLen]byte(sum[:PathSecretLen])}
}

// Answer gives the keys that a device asks for. They are of its own paths, whoever the
// other ends are: nobody gets a key of a path between others.
func (s PathSecret) Answer(self netip.Addr, q *PathKeys) *PathKeys {
	a := &PathKeys{}
	for _, dev := range q.Asked {
		if dev != self && len(a.Keys) < MaxPathKeys {
			a.Keys = append(a.Keys, s.key(self, dev))
		}
	}
	return a
}
