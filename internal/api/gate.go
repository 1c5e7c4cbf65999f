package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/time/rate"
)

// Gate lets in who logs in once for a session: with a password, a token in its place, or an SSH
// key. Tokens and Users give those that are taken now; either may be nil.
type Gate struct {
	Tokens func() ([]Token, error)
	Users  func() ([]User, error)

	slow     sync.Mutex // one bcrypt at a time: strangers cannot keep the processors busy
	attempts attempts
}

// ErrTooMany refuses an address from which too many log-ins failed.
var ErrTooMany = errTooMany

// ErrNobody says that there is nobody who shows that.
var ErrNobody = errors.New("no such user, or not with that password, token or key")

// Visitor is who was let in.
type Visitor struct {
	Caller
	Role Role
}

// May refuses what takes a higher role.
func (v Visitor) May(need Role, what string) error {
	if v.Role < need {
		return fmt.Errorf("%w: %s is %s, and %s takes %s", ErrRefused, v.Name, v.Role, what, need)
	}
	return nil
}

// Open says whether somebody from an address may try to log in; the error is ErrTooMany.
func (g *Gate) Open(from netip.Addr) error {
	if g.attempts.spent(from) {
		return ErrTooMany
	}
	return nil
}

// Failed counts a log-in from an address that came to nothing without a password that was wrong.
func (g *Gate) Failed(from netip.Addr) { g.attempts.failed(from) }

// Password lets in a user by password, or the name of a token by the token. The error is
// ErrTooMany or ErrNobody, or says why nobody can be known now.
func (g *Gate) Password(from netip.Addr, name, password string) (Visitor, error) {
	if err := g.Open(from); err != nil {
		return Visitor{}, err
	}
	tokens, users, err := g.known()
	if err != nil {
		return Visitor{}, err
	}
	sum := sha256.Sum256([]byte(password))
	for _, t := range tokens {
		if subtle.ConstantTimeCompare(t.Sum[:], sum[:]) == 1 && t.Name == name {
			return Visitor{Caller{Name: t.Name, From: from.String(), Proof: "token"}, t.Role}, nil
		}
	}
	hashes := [][]byte{nobody} // so that it takes as long for a user who is not there
	var user User
	for _, u := range users {
		if u.Name == name && len(u.Hashes) > 0 {
			user, hashes = u, u.Hashes
		}
	}
	g.slow.Lock()
	defer g.slow.Unlock()
	for _, h := range hashes {
		if bcrypt.CompareHashAndPassword(h, []byte(password)) == nil && user.Role != 0 {
			return Visitor{Caller{Name: user.Name, From: from.String(), Proof: "password"}, user.Role}, nil
		}
	}
	g.Failed(from)
	return Visitor{}, ErrNobody
}

// Token lets in who shows a token. The errors are those of Password.
func (g *Gate) Token(from netip.Addr, token string) (Visitor, error) {
	if err := g.Open(from); err != nil {
		return Visitor{}, err
	}
	tokens, _, err := g.known()
	if err != nil {
		return Visitor{}, err
	}
	var found Token
	sum := sha256.Sum256([]byte(token))
	for _, t := range tokens {
		if subtle.ConstantTimeCompare(t.Sum[:], sum[:]) == 1 {
			found = t
		}
	}
	if found.Role == 0 {
		g.Failed(from)
		return Visitor{}, ErrNobody
	}
	return Visitor{Caller{Name: found.Name, From: from.String(), Proof: "token"}, found.Role}, nil
}

// nobody is the bcrypt hash of a word that nobody knows.
var nobody = []byte("$2a$10$TwwjkXZpsaWQA9nJu3ETkug9uYfe4LOvd3fwfv4.BaZ1PPUDiaj3W")

// Key lets in a user by an SSH key, as RFC 4253 section 6.6 writes it; that the key is theirs has
// still to be proved. The errors are those of Password.
func (g *Gate) Key(from netip.Addr, name string, blob []byte) (Visitor, error) {
	if err := g.Open(from); err != nil {
		return Visitor{}, err
	}
	_, users, err := g.known()
	if err != nil {
		return Visitor{}, err
	}
	for _, u := range users {
		for _, k := range u.Keys {
			if u.Name == name && bytes.Equal(k.Blob, blob) {
				return Visitor{Caller{Name: u.Name, From: from.String(), Proof: "SSH key"}, u.Role}, nil
			}
		}
	}
	return Visitor{}, ErrNobody
}

func (g *Gate) known() (tokens []Token, users []User, err error) {
	if g.Tokens != nil {
		if tokens, err = g.Tokens(); err != nil {
			return nil, nil, fmt.Errorf("%w: management.token-file: %w", ErrUnavailable, err)
		}
	}
	if g.Users != nil {
		if users, err = g.Users(); err != nil {
			return nil, nil, fmt.Errorf("%w: management.user-file: %w", ErrUnavailable, err)
		}
	}
	return tokens, users, nil
}

// attempts remember log-ins that failed, by address; an IPv6 /64 is one.
type attempts struct {
	mu      sync.Mutex
	failing map[netip.Addr]*rate.Limiter
}

func source(from netip.Addr) netip.Addr {
	if from.Is6() {
		p, _ := from.Prefix(64) // 64 is a length of one
		return p.Addr()
	}
	return from
}

// spent reports whether too many failed within the last minute.
func (a *attempts) spent(from netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.failing[source(from)]
	return l != nil && l.Tokens() < 1
}

// failed remembers one. Where too many addresses are remembered, those are forgotten that have
// waited out their minute, and all if there are none.
func (a *attempts) failed(from netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from = source(from)
	if len(a.failing) >= maxFailing && a.failing[from] == nil {
		for at, l := range a.failing {
			if l.Tokens() >= failuresPerMinute {
				delete(a.failing, at)
			}
		}
		if len(a.failing) >= maxFailing {
			a.failing = nil
		}
	}
	if a.failing == nil {
		a.failing = map[netip.Addr]*rate.Limiter{}
	}
	if a.failing[from] == nil {
		a.failing[from] = rate.NewLimiter(rate.Every(time.Minute/failuresPerMinute), failuresPerMinute)
	}
	a.failing[from].Allow()
}

// As has what is done in a context be done by a visitor.
func As(ctx context.Context, v Visitor) context.Context {
	return context.WithValue(ctx, callerKey{}, v.Caller)
}
