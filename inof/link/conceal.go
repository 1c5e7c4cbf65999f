package link

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"

	"github.com/openinof/inof/inof/wire"
)

// conceals reports whether messages of a type are encrypted in this session: in mode tls all
// of it is, and mode none has no key.
func (s *Session) conceals(t wire.MsgType) bool { return t == wire.TypePathKeys && s.used != nil }

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
func (s *Session) conceal(body []byte, seq uint64) (*wire.Encoded, error) {
	c, err := s.concealer()
	if err != nil {
		return nil, err
	}
	return wire.Encode(&wire.PathKeys{Sealed: c.Seal(nil, concealNonce(s.cfg.Dialer, seq), body, nil)})
}

// reveal decrypts the body of the message with the number seq.
func (s *Session) reveal(body []byte, seq uint64) ([]byte, error) {
	any, err := wire.DecodeBody(wire.TypePathKeys, body)
	if err != nil {
		return nil, err
	}
	m := any.(*wire.PathKeys)
	if m.Sealed == nil || len(m.Asked)+len(m.Keys) > 0 {
		return nil, wire.Malformed("PathKeys.sealed", "is missing or not alone, which a session in mode hmac-sha256 needs")
	}
	c, err := s.concealer()
	if err != nil {
		return nil, err
	}
	out, err := c.Open(nil, concealNonce(!s.cfg.Dialer, seq), m.Sealed, nil)
	if err != nil {
		return nil, wire.Malformed("PathKeys.sealed", "%d bytes cannot be decrypted", len(m.Sealed))
	}
	return out, nil
}
