package link

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/openinof/inof/inof/wire"
)

// MinPassword is the shortest password taken for hmac-sha256, in bytes. MaxPasswords
// may be in force at a time: the new one, and the old one while devices are moved.
const (
	MinPassword  = 8
	MaxPasswords = 2
)

// How a password becomes a key: argon2id with the second recommendation of RFC 9106,
// section 4, for where memory is short. It is done once for each password and not for
// each session, so that thousands of clients can come back at once; who has seen a
// handshake pays it for each guess.
const (
	argonTime   = 3
	argonMemory = 64 << 10 // KiB
	argonLanes  = 4
	// StretchMemory is what stretching a password takes, in bytes.
	StretchMemory = argonMemory << 10
	// argonSalt is the same everywhere: a salt of a pair would have to be known before
	// its first message, and be paid for by a reflector once for each of its clients.
	argonSalt = "iNOF v2 password"
)

// Password is what both sides of a session in mode hmac-sha256 know, as a key.
type Password struct{ key [sha256.Size]byte }

// NewPassword stretches a password of MinPassword bytes or more. That takes 64 MiB and
// 0.1 to 0.3 s.
func NewPassword(text []byte) (Password, error) {
	if len(text) < MinPassword {
		return Password{}, fmt.Errorf("password has %d bytes, want %d or more", len(text), MinPassword)
	}
	return Password{[sha256.Size]byte(argon2.IDKey(text, []byte(argonSalt), argonTime, argonMemory, argonLanes, sha256.Size))}, nil
}

// keyPrefix begins the text of a key: the protocol's salt is a part of what the key is for.
const keyPrefix = "inof-v2-key:"

// KeyText is the key of a password as text, for a file that is as secret as the password.
func (p Password) KeyText() string { return keyPrefix + hex.EncodeToString(p.key[:]) }

// ParseKey reads what KeyText has written. Its error does not repeat the text.
func ParseKey(text string) (Password, error) {
	var p Password
	digits, ok := strings.CutPrefix(text, keyPrefix)
	if n, err := hex.Decode(p.key[:], []byte(digits[:min(len(digits), 2*sha256.Size)])); !ok || err != nil || n != sha256.Size || len(digits) != 2*sha256.Size {
		return Password{}, fmt.Errorf("is no key of a password: want %s and %d hex digits, as inofctl password-key writes it", keyPrefix, 2*sha256.Size)
	}
	return p, nil
}

// PasswordOfKey is for those who have a random key and need no stretching.
func PasswordOfKey(key [sha256.Size]byte) Password { return Password{key} }

// String hides the key from logs.
func (p Password) String() string { return "[password]" }

// GoString hides the key from logs.
func (p Password) GoString() string { return p.String() }

// Equal tells in constant time whether two are the same.
func (p Password) Equal(q Password) bool { return subtle.ConstantTimeCompare(p.key[:], q.key[:]) == 1 }

// PasswordUse is which of the passwords in force a session has.
type PasswordUse string

const (
	PasswordOnly PasswordUse = "current" // there is one
	PasswordNew  PasswordUse = "new"     // the first of two
	PasswordOld  PasswordUse = "old"     // the second of two
	PasswordGone PasswordUse = "removed" // not in force any more
)

// Use tells which of the passwords p is.
func (a Auth) Use(p Password) PasswordUse {
	for i, q := range a.Passwords {
		switch {
		case !p.Equal(q):
		case len(a.Passwords) == 1:
			return PasswordOnly
		case i == 0:
			return PasswordNew
		default:
			return PasswordOld
		}
	}
	return PasswordGone
}

// Handshake is what two sides have told each other before either has proved that it
// knows the password (docs/protocol.md, "Keys").
type Handshake struct {
	DialerNonce, ListenerNonce []byte
	Dialer, Listener           []byte // first messages, whole
}

// SessionKeys are those of the two directions with one of the passwords.
type SessionKeys struct {
	Password         Password
	Dialer, Listener []byte
	Second           []byte // what a dialer shows when this is not its first password
	master           []byte
	transcript       string
}

// Keys derives those of one password: HKDF-SHA256 (RFC 5869) with both nonces as salt;
// the info names the direction and binds the key to all that both first messages say.
func (h *Handshake) Keys(p Password) (*SessionKeys, error) {
	salt := append(append(make([]byte, 0, 2*wire.NonceLen), h.DialerNonce...), h.ListenerNonce...)
	a, b := sha256.Sum256(h.Dialer), sha256.Sum256(h.Listener)
	k := &SessionKeys{Password: p, transcript: string(a[:]) + string(b[:])}
	var err error
	if k.master, err = extract(p.key[:], salt); err != nil {
		return nil, err
	}
	for _, d := range []struct {
		to    *[]byte
		label string
	}{{&k.Dialer, labelDialer}, {&k.Listener, labelListener}, {&k.Second, labelSecond}} {
		if *d.to, err = k.expand(d.label); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// All derives the keys of each password, in order.
func (h *Handshake) All(passwords []Password) ([]*SessionKeys, error) {
	var out []*SessionKeys
	for _, p := range passwords {
		k, err := h.Keys(p)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

// ProofOfSecond is what a dialer shows beside the tag of its first password, nil with
// one password.
func ProofOfSecond(all []*SessionKeys) []byte {
	if len(all) < 2 {
		return nil
	}
	return all[1].Second
}

// ChooseByDialer gives the keys with which a listener goes on: of its first password
// that the dialer has proved, by the tag of a message or by the proof of a second
// password; nil: by neither.
func ChooseByDialer(all []*SessionKeys, message, tag, proof []byte) (k *SessionKeys, tagged bool) {
	for _, k := range all {
		switch {
		case hmac.Equal(sum(k.Dialer, message), tag):
			return k, true
		case hmac.Equal(k.Second, proof):
			return k, false
		}
	}
	return nil, false
}

// ChooseByListener gives the keys with which the listener has signed, nil: with none.
func ChooseByListener(all []*SessionKeys, message, tag []byte) *SessionKeys {
	for _, k := range all {
		if hmac.Equal(sum(k.Listener, message), tag) {
			return k
		}
	}
	return nil
}

func sum(key, message []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(message)
	return mac.Sum(nil)
}
