package wire

import (
	"crypto/sha256"
	"fmt"
)

// Encoded is a message in its wire form without the parts that differ from
// session to session (sequence number, tag): made once, sent to many.
type Encoded struct {
	typ  MsgType
	body []byte
	hash [sha256.Size]byte // of body
}

// Raw is a message of a body that was made otherwise, of which nothing is checked.
func Raw(t MsgType, body []byte) *Encoded {
	return &Encoded{typ: t, body: body, hash: sha256.Sum256(body)}
}

// Append writes the message with the number that it has in its session and direction, but
// for the tag that follows a tagged one.
func (e *Encoded) Append(b []byte, seq uint64, tagged bool) []byte {
	h := Header{Length: HeaderLen + len(e.body), Version: Version, Type: e.typ, Seq: seq}
	if tagged {
		h.Length, h.Flags = h.Length+TagLen, flagTagged
	}
	return append(h.Append(b), e.body...)
}

// Body is what stands between header and tag; it must not be changed.
func (e *Encoded) Body() []byte { return e.body }

// Hash is the SHA-256 of the body, worked out once for all sessions; it must not be changed.
func (e *Encoded) Hash() *[sha256.Size]byte { return &e.hash }

// Type of the message.
func (e *Encoded) Type() MsgType { return e.typ }

// Len is the length of the whole message in bytes, with a tag.
func (e *Encoded) Len() int { return HeaderLen + len(e.body) + TagLen }

// Encode makes the wire form of a message. The error is a *ProtocolError or
// *LimitError that names the field, or wraps ErrTooLarge.
func Encode(m Message) (*Encoded, error) { return encode(m, nil) }

// encode makes the wire form in a buffer, if that is large enough.
func encode(m Message, buf []byte) (*Encoded, error) {
	b, err := m.appendBody(buf[:0])
	if err != nil {
		return nil, err
	}
	e := Raw(m.Type(), b)
	if e.Len() > MaxMessage {
		return nil, fmt.Errorf("%v of %d bytes: %w of %d bytes", m.Type(), e.Len(), ErrTooLarge, MaxMessage)
	}
	return e, nil
}

// Form is the wire form of a message that several deliveries give, once the first of them was
// encoded. It belongs to one goroutine.
type Form struct {
	e *Encoded
	// Done is set where one delivery to one device is all there is of the message, by who can use
	// the memory of its records again. It is for who has nothing left of the message.
	Done func()
}

// EncodeOnce is Encode of a message that has a Form with Done, in a buffer that is used again.
func (d *Delivery) EncodeOnce(buf []byte) (*Encoded, error) { return encode(d.Msg, buf) }

// Encode makes the wire form of what is delivered, or gives the one that was made for another
// delivery. The errors are those of Encode.
func (d *Delivery) Encode() (*Encoded, error) {
	if d.Form == nil {
		return Encode(d.Msg)
	}
	if d.Form.e == nil {
		e, err := Encode(d.Msg)
		if err != nil {
			return nil, err
		}
		d.Form.e = e
	}
	return d.Form.e, nil
}

// DecodeBody is the inverse of Encode for the bytes between header and tag.
func DecodeBody(t MsgType, body []byte) (Message, error) {
	if !t.known() {
		return nil, &ProtocolError{Code: CodeType, Where: "header", Detail: t.String()}
	}
	return messages[t].decode(body)
}

// Decode reads one whole message; a tag is cut off unchecked, which is for
// dissectors and tests. A Session checks it.
func Decode(b []byte) (Message, error) {
	h, err := ParseHeader(b, MaxMessage)
	if err != nil {
		return nil, err
	}
	if h.Length != len(b) {
		return nil, &ProtocolError{Code: CodeLength, Where: "header", Detail: fmt.Sprintf("length %d, but there are %d bytes", h.Length, len(b))}
	}
	end := len(b)
	if h.Tagged() {
		end -= TagLen
	}
	return DecodeBody(h.Type, b[HeaderLen:end])
}
