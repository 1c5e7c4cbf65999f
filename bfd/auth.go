package bfd

import (
	"bytes"
	"crypto/sha1"
	"crypto/subtle"
	"fmt"
	"slices"
)

// AuthKey is one shared secret.
type AuthKey struct {
	ID     uint8
	Secret []byte // 1..20 bytes
}

// Auth is the authentication of a session. The first key signs, all are accepted, so
// that keys can be changed one side after the other (RFC 5880 section 6.7.1).
type Auth struct {
	Type AuthType
	Keys []AuthKey
	// Handed says that the keys are handed out to both ends, each at its time, and that
	// the peer is of our kind: see handed.go. Without a key yet the session waits.
	Handed bool
}

// Validate checks the type, and the length and ids of the keys.
func (a *Auth) Validate() error {
	if a == nil || a.Type == AuthNone {
		return nil
	}
	if !a.Type.sha1() {
		return &ConfigError{"authentication type", a.Type.String(), "keyed SHA1 or meticulous keyed SHA1"}
	}
	if a.Handed && a.Type != AuthMeticulousSHA1 {
		return &ConfigError{"authentication type of keys that are handed out", a.Type.String(), "meticulous keyed SHA1"}
	}
	if len(a.Keys) == 0 && !a.Handed {
		return &ConfigError{"number of authentication keys", "0", "1 or more"}
	}
	for i, k := range a.Keys {
		if len(k.Secret) < 1 || len(k.Secret) > maxKeyLen {
			return &ConfigError{fmt.Sprintf("length of authentication key %d", k.ID), fmt.Sprint(len(k.Secret)), "1..20 bytes"}
		}
		if slices.ContainsFunc(a.Keys[:i], func(o AuthKey) bool { return o.ID == k.ID && bytes.Equal(o.Secret, k.Secret) }) {
			return &ConfigError{"authentication key id", fmt.Sprint(k.ID), "each key once"}
		}
	}
	return nil
}

// equal reports whether both are the same; nil is no authentication.
func (a *Auth) equal(o *Auth) bool {
	if a == nil || o == nil {
		return a == o
	}
	if a.Type != o.Type || a.Handed != o.Handed || len(a.Keys) != len(o.Keys) {
		return false
	}
	for i, k := range a.Keys {
		if k.ID != o.Keys[i].ID || string(k.Secret) != string(o.Keys[i].Secret) {
			return false
		}
	}
	return true
}

// authState are the variables of RFC 5880 section 6.8.1 that belong to one session.
type authState struct {
	typ      AuthType
	keys     []paddedKey
	rcvSeq   uint32 // bfd.RcvAuthSeq
	xmitSeq  uint32 // bfd.XmitAuthSeq
	seqKnown bool   // bfd.AuthSeqKnown
	handed   *handed
}

// paddedKey is a secret with zeros behind it, as it is hashed.
type paddedKey struct {
	id     uint8
	secret [hashLen]byte
	shown  instant // when a packet of the peer last had it; never: not yet
	old    bool    // not wanted any more, and taken while the peer has no other one
}

// newAuthState prepares a for use; nil when there is no authentication. The first
// sequence number is random (section 6.8.1).
func newAuthState(a *Auth, seq uint32) *authState {
	if a == nil || a.Type == AuthNone {
		return nil
	}
	s := &authState{typ: a.Type, xmitSeq: seq, keys: make([]paddedKey, len(a.Keys))}
	for i, k := range a.Keys {
		s.keys[i].id = k.ID
		copy(s.keys[i].secret[:], k.Secret)
	}
	if a.Handed {
		s.handed = &handed{turn: -1}
	}
	return s
}

// follow goes on with the sequence numbers of before, when only the keys are others:
// the peer would refuse a jump (section 6.7.4). Both may be nil.
func (s *authState) follow(before *authState) *authState {
	if s != nil && before != nil {
		s.rcvSeq, s.xmitSeq, s.seqKnown = before.rcvSeq, before.xmitSeq, before.seqKnown
		if s.handed != nil && before.handed != nil {
			s.keepOld(before)
		}
	}
	return s
}

// section gives the section of the next packet, signed with a key, without its hash. The
// sequence number is advanced for every packet: section 6.7.3 demands it for the
// meticulous type and allows it for the other one. Clock is that of the machine, see
// handed.go.
func (s *authState) section(key int, clock uint32) AuthSection {
	s.xmitSeq++
	if s.handed != nil && after(clock, s.xmitSeq) {
		s.xmitSeq = clock
	}
	return AuthSection{Type: s.typ, KeyID: s.keys[key].id, Seq: s.xmitSeq}
}

// sign puts the hash into an encoded packet (section 6.7.4).
func (s *authState) sign(b []byte, key int) {
	copy(b[hashAt:], s.keys[key].secret[:])
	h := sha1.Sum(b[:headerLen+sha1Len])
	copy(b[hashAt:], h[:])
}

// check verifies a received packet (section 6.7.4). b is the payload p was parsed
// from. Nothing is changed unless the packet is accepted.
func (s *authState) check(p *Packet, b []byte, now instant) error {
	if p.Auth.Type != s.typ {
		return &PacketError{ErrAuth, "Auth Type", int64(p.Auth.Type), "the type in use"}
	}
	known := slices.ContainsFunc(s.keys, func(k paddedKey) bool { return k.id == p.Auth.KeyID })
	if !known {
		return &PacketError{ErrAuth, "Auth Key ID", int64(p.Auth.KeyID), "a configured key"}
	}
	if s.seqKnown && !s.inWindow(p.Auth.Seq, p.DetectMult) {
		return &PacketError{ErrAuthSeq, "Sequence Number", int64(p.Auth.Seq), "ahead of the last one, within 3 x Detect Mult where keys are set by hand"}
	}
	length := int(b[3])
	if length < headerLen+sha1Len || length > 255 {
		return &PacketError{ErrLength, "Length", int64(length), "52 or more"}
	}
	var buf [256]byte // the packet as it was hashed: with the key in place of the hash
	n := copy(buf[:], b[:length])
	for i := range s.keys { // keys that are made, not configured, may share a number
		if s.keys[i].id != p.Auth.KeyID {
			continue
		}
		copy(buf[hashAt:], s.keys[i].secret[:])
		h := sha1.Sum(buf[:n])
		if subtle.ConstantTimeCompare(h[:], p.Auth.Hash[:]) == 1 {
			s.rcvSeq, s.seqKnown = p.Auth.Seq, true
			s.keys[i].shown = now
			s.forgetOld(now)
			return nil
		}
	}
	return &PacketError{ErrAuth, "Auth Hash of key", int64(p.Auth.KeyID), "a hash made with our secret"}
}

// inWindow reports whether a sequence number may follow the last one: 0 (keyed) or 1
// (meticulous) to 3 x Detect Mult ahead, in circular 32-bit arithmetic; of a peer of our
// kind, any that is ahead.
func (s *authState) inWindow(seq uint32, mult uint8) bool {
	if s.handed != nil {
		return after(seq, s.rcvSeq)
	}
	ahead := seq - s.rcvSeq
	if s.typ == AuthMeticulousSHA1 && ahead == 0 {
		return false
	}
	return ahead <= 3*uint32(mult)
}
