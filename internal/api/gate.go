package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/crypto/bcrypt"
)

// Gate knows who may come over a network, whichever way: with a token, a password, a certificate or
// an SSH key. Tokens and Users give those that are taken now; either may be nil.
type Gate struct {
	Tokens func() ([]Token, error)
	Users  func() ([]User, error)
	// Roots are the CAs whose certificates count; nil: none do.
	Roots func() (*x509.CertPool, error)

	slow     sync.Mutex // one bcrypt at a time: strangers cannot keep the processors busy
	attempts attempts
}

// ErrTooMany refuses an address from which too many log-ins failed.
var ErrTooMany = errors.New("too many log-ins failed from this address: wait a minute") // 429

// ErrNobody says that there is nobody who shows that.
var ErrNobody = errors.New("no token, password, certificate or key that is known (by HTTP: Authorization: Bearer TOKEN)") // 401

// Visitor is who was let in.
type Visitor struct {
	Caller
	Role Role
}

// Shown is what somebody shows who comes over a network.
type Shown struct {
	From           netip.Addr
	Name, Password string // a user's, or the name of a token and the token
	Authorization  string // as in HTTP: Basic with both, or Bearer with a token (RFC 7617, 6750)
	// Certificates are those that the connection has shown, its own first: that it has the key is
	// sure, and nothing else.
	Certificates []*x509.Certificate
}

// Enter lets in who shows something: what a request says of its own counts before the certificate
// of its connection. The error is ErrTooMany or ErrNobody, or says why nobody can be known now.
func (g *Gate) Enter(s Shown) (Visitor, error) {
	if s.Name == "" {
		if code, ok := strings.CutPrefix(s.Authorization, "Basic "); ok {
			text, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(code)) // what is none is nobody's
			s.Name, s.Password, _ = strings.Cut(string(text), ":")
			return g.Password(s.From, s.Name, s.Password)
		}
		if s.Authorization != "" || len(s.Certificates) == 0 {
			token, _ := strings.CutPrefix(s.Authorization, "Bearer ")
			return g.Token(s.From, strings.TrimSpace(token))
		}
		return g.certificate(s.From, s.Certificates)
	}
	return g.Password(s.From, s.Name, s.Password)
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
	tokens, users, err := g.asked(from)
	if err != nil {
		return Visitor{}, err
	}
	sum := sha256.Sum256([]byte(password))
	for _, t := range tokens {
		if subtle.ConstantTimeCompare(t.Sum[:], sum[:]) == 1 && t.Name == name {
			return t.visitor(from), nil
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
	tokens, _, err := g.asked(from)
	if err != nil {
		return Visitor{}, err
	}
	t := tokenOf(tokens, sha256.Sum256([]byte(token)))
	if t.Role == 0 {
		g.Failed(from)
		return Visitor{}, ErrNobody
	}
	return t.visitor(from), nil
}

// tokenOf finds a token by its digest; without a role: there is none.
func tokenOf(list []Token, sum [sha256.Size]byte) (found Token) {
	for _, t := range list {
		if subtle.ConstantTimeCompare(t.Sum[:], sum[:]) == 1 {
			found = t
		}
	}
	return found
}

func (t *Token) visitor(from netip.Addr) Visitor {
	return Visitor{Caller{Name: t.Name, From: from.String(), Proof: "token"}, t.Role}
}

// certificate lets in the user whom the first certificate names, if a CA that is trusted now says
// so, and a line of the users says that it may. The errors are those of Password.
func (g *Gate) certificate(from netip.Addr, shown []*x509.Certificate) (Visitor, error) {
	_, users, err := g.asked(from)
	if err != nil {
		return Visitor{}, err
	}
	c, between := shown[0], x509.NewCertPool()
	for _, o := range shown[1:] {
		between.AddCert(o)
	}
	roots := x509.NewCertPool() // nobody's
	if g.Roots != nil {
		if roots, err = g.Roots(); err != nil {
			return Visitor{}, fmt.Errorf("%w: management.client-ca-file: %w", ErrUnavailable, err)
		}
	}
	_, err = c.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		g.Failed(from)
		return Visitor{}, fmt.Errorf("%w: the certificate of %.80q: %w", ErrNobody, certifiedName(c), err)
	}
	for _, u := range users {
		if u.Certificate && u.Name == certifiedName(c) {
			return Visitor{Caller{Name: u.Name, From: from.String(), Proof: "certificate"}, u.Role}, nil
		}
	}
	g.Failed(from)
	return Visitor{}, fmt.Errorf("%w: the certificate is of %.80q, who has no line of management.user-file for one", ErrNobody, certifiedName(c))
}

// certifiedName is whom a certificate is of: its common name; without one its first address of
// mail, or else its first name of DNS.
func certifiedName(c *x509.Certificate) string {
	for _, names := range [][]string{{c.Subject.CommonName}, c.EmailAddresses, c.DNSNames} {
		if len(names) > 0 && names[0] != "" {
			return names[0]
		}
	}
	return ""
}

// nobody is the bcrypt hash of a word that nobody knows.
var nobody = []byte("$2a$10$TwwjkXZpsaWQA9nJu3ETkug9uYfe4LOvd3fwfv4.BaZ1PPUDiaj3W")

// Key lets in a user by an SSH key, as RFC 4253 section 6.6 writes it; that the key is theirs has
// still to be proved. The errors are those of Password.
func (g *Gate) Key(from netip.Addr, name string, blob []byte) (Visitor, error) {
	_, users, err := g.asked(from)
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

// asked is known for a log-in from an address.
func (g *Gate) asked(from netip.Addr) (tokens []Token, users []User, err error) {
	if err := g.Open(from); err != nil {
		return nil, nil, err
	}
	return g.known()
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

// As has what is done in a context be done by a visitor.
func As(ctx context.Context, v Visitor) context.Context {
	return context.WithValue(ctx, callerKey{}, v.Caller)
}
