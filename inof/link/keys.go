package link

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"

	"github.com/openinof/inof/inof/wire"
)

// Labels of the two directions, so that a message cannot be sent back to where it
// came from, and of the other keys of a session (docs/protocol.md, "Keys").
const (
	labelDialer   = "iNOF v2 dialer to listener"
	labelListener = "iNOF v2 listener to dialer"
	labelSecond   = "iNOF v2 second password"
)

func extract(secret, salt []byte) ([]byte, error) {
	prk, err := hkdf.Extract(sha256.New, secret, salt)
	if err != nil {
		return nil, fmt.Errorf("session keys: %w", err)
	}
	return prk, nil
}

// expand derives a key of 32 bytes for a purpose.
func (k *SessionKeys) expand(label string) ([]byte, error) {
	out, err := hkdf.Expand(sha256.New, k.master, label+k.transcript, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("session keys: %w", err)
	}
	return out, nil
}

// sealer numbers and signs the messages of one direction.
type sealer struct {
	taggers taggers // nil in modes none and tls
	key     midstate
	seq     uint64 // of the last message
}

// seal appends a whole message to dst.
func (s *sealer) seal(dst []byte, e *wire.Encoded) []byte {
	s.seq++
	at := len(dst)
	dst = e.Append(dst, s.seq, s.taggers != nil)
	if s.taggers == nil {
		return dst
	}
	t := s.taggers.get()
	dst = append(dst, t.sign(&s.key, dst[at:], e.Hash())...)
	s.taggers.put(t)
	return dst
}

// opener checks the messages of the other direction.
type opener struct {
	taggers taggers
	key     midstate
	seq     uint64
}

// verify tells in constant time whether tag is that of a message.
func (o *opener) verify(tag, message []byte) bool {
	hash := sha256.Sum256(message[wire.HeaderLen:])
	t := o.taggers.get()
	ok := hmac.Equal(t.sign(&o.key, message, &hash), tag)
	o.taggers.put(t)
	return ok
}

// open checks number and tag of a whole message and gives its body.
func (o *opener) open(h wire.Header, frame []byte) ([]byte, error) {
	end := len(frame)
	if o.taggers != nil {
		if !h.Tagged() {
			return nil, untagged(h)
		}
		end -= wire.TagLen
		if !o.verify(frame[end:], frame[:end]) {
			return nil, wrongTag(h)
		}
	} else if h.Tagged() {
		return nil, &wire.ProtocolError{Code: wire.CodeAuthMode, Where: h.Type.String(), Detail: "the message has a tag, but this mode has none"}
	}
	if err := o.inOrder(h); err != nil {
		return nil, err
	}
	return frame[wire.HeaderLen:end], nil
}

// inOrder takes the number of a message that was checked otherwise.
func (o *opener) inOrder(h wire.Header) error {
	if h.Seq != o.seq+1 {
		return &wire.ProtocolError{Code: wire.CodeSequence, Where: h.Type.String(), Detail: fmt.Sprintf("number %d, want %d", h.Seq, o.seq+1)}
	}
	o.seq++
	return nil
}

func untagged(h wire.Header) error {
	return &wire.ProtocolError{Code: wire.CodeAuthFailed, Where: h.Type.String(), Detail: "the message has no tag"}
}

func wrongTag(h wire.Header) error {
	return &wire.ProtocolError{Code: wire.CodeAuthFailed, Where: h.Type.String(), Detail: "the tag does not match: the passwords differ, or the bytes were altered"}
}
