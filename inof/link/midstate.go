package link

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding"
	"errors"
	"hash"

	"github.com/openinof/inof/inof/wire"
)

// midstate is the key of an HMAC-SHA256 (RFC 2104) as the two chaining values of SHA-256
// after the blocks that the key makes: 64 bytes where a live HMAC has more than half
// a KiB. A tagger goes on from there.
type midstate struct {
	inner, outer [sha256.Size]byte
}

// stateLen is the length of the state that package sha256 marshals: a magic of 4
// bytes, the chaining value, a block that is not full yet, the length so far.
const (
	magicLen = 4
	stateLen = magicLen + sha256.Size + sha256.BlockSize + 8
)

// tagger computes tags with any key. It belongs to one goroutine at a time.
type tagger struct {
	hash  hash.Hash
	state encoding.BinaryUnmarshaler
	from  [stateLen]byte // a state after one block; its chaining value is replaced
	what  [signedLen]byte
	sum   [wire.TagLen]byte
}

// taggers lends a tagger. What the two halves of a session share, and sessions share,
// is for concurrent use.
type taggers interface {
	get() *tagger
	put(*tagger)
}

// ownTagger lends the same tagger to one half of one session again and again.
type ownTagger struct{ t *tagger }

func (o *ownTagger) get() *tagger {
	if o.t == nil {
		o.t = newTagger()
	}
	return o.t
}

func (o *ownTagger) put(*tagger) {}

func newTagger() *tagger {
	h := sha256.New()
	t := &tagger{hash: h}
	var block [sha256.BlockSize]byte
	if b, err := stateAfter(&block); err == nil {
		t.from = b
	}
	t.state, _ = h.(encoding.BinaryUnmarshaler)
	return t
}

// errState is that of a package sha256 whose states are not as they are known.
var errState = errors.New("session keys: this SHA-256 does not give its state")

// stateAfter is the state of SHA-256 after one block.
func stateAfter(block *[sha256.BlockSize]byte) (s [stateLen]byte, err error) {
	h := sha256.New()
	h.Write(block[:])
	m, ok := h.(encoding.BinaryMarshaler)
	if !ok {
		return s, errState
	}
	b, err := m.MarshalBinary()
	if err != nil || len(b) != stateLen {
		return s, errors.Join(errState, err)
	}
	return [stateLen]byte(b), nil
}

// newMidstate takes a key of at most a block.
func newMidstate(k []byte) (m midstate, err error) {
	if m.inner, err = chaining(k, 0x36); err == nil {
		m.outer, err = chaining(k, 0x5c)
	}
	if err != nil {
		return m, err
	}
	// Nothing of the state but the chaining value may depend on the key, and going on
	// from it must give what package hmac does: both are checked for each key, so that
	// a change of the standard library is an error and no session without keys.
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(labelDialer))
	if !bytes.Equal(newTagger().tag(&m, []byte(labelDialer)), mac.Sum(nil)) {
		return m, errState
	}
	return m, nil
}

// chaining is the chaining value after the block that a key makes with a pad.
func chaining(k []byte, pad byte) (c [sha256.Size]byte, err error) {
	var block [sha256.BlockSize]byte
	copy(block[:], k)
	for i := range block {
		block[i] ^= pad
	}
	s, err := stateAfter(&block)
	copy(c[:], s[magicLen:])
	return c, err
}

// tag gives the HMAC of b, valid until the next one.
func (t *tagger) tag(m *midstate, b []byte) []byte {
	t.resume(&m.inner)
	t.hash.Write(b)
	inner := t.hash.Sum(t.sum[:0])
	t.resume(&m.outer)
	t.hash.Write(inner)
	return t.hash.Sum(t.sum[:0])
}

// sign gives the tag of a message whose body has a hash, valid until the next one.
func (t *tagger) sign(m *midstate, message []byte, hash *[sha256.Size]byte) []byte {
	t.what = digest(message, hash)
	return t.tag(m, t.what[:])
}

// resume goes on from a chaining value. It cannot fail: newMidstate has tried it.
func (t *tagger) resume(c *[sha256.Size]byte) {
	copy(t.from[magicLen:], c[:])
	if err := t.state.UnmarshalBinary(t.from[:]); err != nil {
		panic(err)
	}
}

// signedLen is the length of what a tag is of: the header of a message and the SHA-256 of its
// body, which is the same for all who get the body.
const signedLen = wire.HeaderLen + sha256.Size

func digest(message []byte, hash *[sha256.Size]byte) (d [signedLen]byte) {
	copy(d[:], message[:wire.HeaderLen])
	copy(d[wire.HeaderLen:], hash[:])
	return d
}
