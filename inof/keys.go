package inof

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// Labels of the two directions, so that a message cannot be sent back to where it
// came from (docs/protocol.md, "Keys").
const (
	labelDialer   = "iNOF v2 dialer to listener"
	labelListener = "iNOF v2 listener to dialer"
)

// deriveKeys gives the keys of the two directions by HKDF-SHA256 (RFC 5869). The
// salt is both nonces; the info names the direction and binds the key to all that
// both Opens say, above all the two device ids, the versions and the mode.
func deriveKeys(password []byte, dialer, listener *Open, dialerBytes, listenerBytes []byte) (dialerKey, listenerKey []byte, err error) {
	salt := append(append(make([]byte, 0, 2*NonceLen), dialer.Nonce[:]...), listener.Nonce[:]...)
	prk, err := hkdf.Extract(sha256.New, password, salt)
	if err != nil {
		return nil, nil, fmt.Errorf("session keys: %w", err)
	}
	a, b := sha256.Sum256(dialerBytes), sha256.Sum256(listenerBytes)
	transcript := string(a[:]) + string(b[:])
	if dialerKey, err = hkdf.Expand(sha256.New, prk, labelDialer+transcript, sha256.Size); err != nil {
		return nil, nil, fmt.Errorf("session keys: %w", err)
	}
	if listenerKey, err = hkdf.Expand(sha256.New, prk, labelListener+transcript, sha256.Size); err != nil {
		return nil, nil, fmt.Errorf("session keys: %w", err)
	}
	return dialerKey, listenerKey, nil
}

// sealer numbers and signs the messages of one direction.
type sealer struct {
	taggers taggers // nil in modes none and tls
	key     midstate
	seq     uint64 // of the last message
}

// seal appends a whole message to dst.
func (s *sealer) seal(dst []byte, e *Encoded) []byte {
	s.seq++
	at := len(dst)
	if s.taggers == nil {
		dst = appendHeader(dst, HeaderLen+len(e.body), e.typ, 0, s.seq)
		return append(dst, e.body...)
	}
	dst = appendHeader(dst, HeaderLen+len(e.body)+TagLen, e.typ, flagTagged, s.seq)
	dst = append(dst, e.body...)
	t := s.taggers.get()
	dst = append(dst, t.tag(&s.key, dst[at:])...)
	s.taggers.put(t)
	return dst
}

// opener checks the messages of the other direction.
type opener struct {
	taggers taggers
	key     midstate
	seq     uint64
}

// verify tells in constant time whether tag is that of b.
func (o *opener) verify(tag, b []byte) bool {
	t := o.taggers.get()
	ok := hmac.Equal(t.tag(&o.key, b), tag)
	o.taggers.put(t)
	return ok
}

// open checks number and tag of a whole message and gives its body.
func (o *opener) open(h Header, frame []byte) ([]byte, error) {
	end := len(frame)
	if o.taggers != nil {
		if h.Flags&flagTagged == 0 {
			return nil, &ProtocolError{Code: CodeAuthFailed, Where: h.Type.String(), Detail: "the message has no tag"}
		}
		end -= TagLen
		if !o.verify(frame[end:], frame[:end]) {
			return nil, &ProtocolError{Code: CodeAuthFailed, Where: h.Type.String(), Detail: "the tag does not match: the passwords differ, or the bytes were altered"}
		}
	} else if h.Flags&flagTagged != 0 {
		return nil, &ProtocolError{Code: CodeAuthMode, Where: h.Type.String(), Detail: "the message has a tag, but this mode has none"}
	}
	if h.Seq != o.seq+1 {
		return nil, &ProtocolError{Code: CodeSequence, Where: h.Type.String(), Detail: fmt.Sprintf("number %d, want %d", h.Seq, o.seq+1)}
	}
	o.seq++
	return frame[HeaderLen:end], nil
}
