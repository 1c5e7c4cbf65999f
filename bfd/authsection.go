package bfd

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
)

// AuthType is the type of an authentication section (RFC 5880 section 4.1).
type AuthType uint8

const (
	AuthNone           AuthType = 0
	AuthSimplePassword AuthType = 1 // refused: the password travels in clear
	AuthMD5            AuthType = 2 // refused: weak
	AuthMeticulousMD5  AuthType = 3 // refused: weak
	AuthSHA1           AuthType = 4 // Keyed SHA1
	AuthMeticulousSHA1 AuthType = 5 // Meticulous Keyed SHA1
)

func (t AuthType) String() string {
	switch t {
	case AuthNone:
		return "none"
	case AuthSimplePassword:
		return "simple password"
	case AuthMD5:
		return "keyed MD5"
	case AuthMeticulousMD5:
		return "meticulous keyed MD5"
	case AuthSHA1:
		return "keyed SHA1"
	case AuthMeticulousSHA1:
		return "meticulous keyed SHA1"
	}
	return fmt.Sprintf("authentication type %d", uint8(t))
}

// MarshalText gives the name of the type.
func (t AuthType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

func (t AuthType) sha1() bool { return t == AuthSHA1 || t == AuthMeticulousSHA1 }

const (
	sha1Len   = 28        // Auth Len of both SHA1 types, section 4.4
	hashLen   = sha1.Size // 20
	maxKeyLen = hashLen
	hashAt    = headerLen + 8 // of the hash in a packet
)

// AuthSection is the authentication section of a packet (RFC 5880 section 4.4). Of
// types other than SHA1 only Type and KeyID are kept.
type AuthSection struct {
	Type  AuthType
	KeyID uint8
	Seq   uint32
	Hash  [hashLen]byte
}

// parseAuth decodes the section; b is all of the packet behind the mandatory section.
func parseAuth(b []byte) (a AuthSection, err error) {
	if len(b) < 2 || int(b[1]) > len(b) || b[1] < 3 {
		n := int64(len(b))
		if n >= 2 {
			n = int64(b[1])
		}
		return a, &PacketError{ErrLength, "Auth Len", n, "3 or more, within Length"}
	}
	a.Type, a.KeyID = AuthType(b[0]), b[2]
	if a.Type == AuthNone {
		return a, &PacketError{ErrAuth, "Auth Type", 0, "4 or 5"}
	}
	if !a.Type.sha1() {
		return a, nil
	}
	if b[1] != sha1Len { // section 6.7.4
		return a, &PacketError{ErrLength, "Auth Len", int64(b[1]), "28"}
	}
	a.Seq = binary.BigEndian.Uint32(b[4:])
	copy(a.Hash[:], b[8:sha1Len])
	return a, nil
}

func (a *AuthSection) append(b []byte) []byte {
	b = append(b, byte(a.Type), sha1Len, a.KeyID, 0)
	b = binary.BigEndian.AppendUint32(b, a.Seq)
	return append(b, a.Hash[:]...)
}
