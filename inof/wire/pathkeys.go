package wire

import (
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
		return nil, Malformed("PathKeys", "%d devices, want at most %d", n, MaxPathKeys)
	}
	var at int
	for _, a := range m.Asked {
		if err := CheckAddr("PathKeys.asked", a); err != nil {
			return nil, err
		}
		b, at = beginTLV(b, tlvPathAsked)
		b = endTLV(appendAddr(b, a), at)
	}
	for i := range m.Keys {
		k := &m.Keys[i]
		if err := CheckAddr("PathKeys.key", k.Device); err != nil {
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
