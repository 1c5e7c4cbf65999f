package inof

import "fmt"

// AuthMode is how the two sides of a session prove who they are.
type AuthMode uint8

const (
	AuthNone AuthMode = 1 // must be asked for by name
	AuthHMAC AuthMode = 2 // HMAC-SHA256 with a shared password
	AuthTLS  AuthMode = 3 // mutual TLS 1.3
)

func (m AuthMode) String() string {
	switch m {
	case AuthNone:
		return "none"
	case AuthHMAC:
		return "hmac-sha256"
	case AuthTLS:
		return "tls"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// ParseAuthMode reads the name of a mode.
func ParseAuthMode(s string) (AuthMode, error) {
	for _, m := range []AuthMode{AuthNone, AuthHMAC, AuthTLS} {
		if s == m.String() {
			return m, nil
		}
	}
	return 0, fmt.Errorf("authentication mode %q is none of none, hmac-sha256, tls", s)
}

// MarshalText gives the name.
func (m AuthMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (m *AuthMode) UnmarshalText(b []byte) error {
	v, err := ParseAuthMode(string(b))
	if err == nil {
		*m = v
	}
	return err
}

// Auth is the authentication of a session.
type Auth struct {
	Mode AuthMode
	// Passwords for AuthHMAC, 1 to MaxPasswords: a peer may know any of them, and the
	// first that both know is used.
	Passwords []Password
	TLS       *CredentialStore // for AuthTLS
}

// Validate tells what is wrong with it.
func (a Auth) Validate() error {
	switch a.Mode {
	case AuthNone:
		return nil
	case AuthHMAC:
		if n := len(a.Passwords); n < 1 || n > MaxPasswords {
			return fmt.Errorf("%d passwords, want 1..%d", n, MaxPasswords)
		}
		return nil
	case AuthTLS:
		if a.TLS == nil || a.TLS.Get() == nil {
			return fmt.Errorf("authentication mode tls needs a certificate, a key and a CA")
		}
		return nil
	}
	return fmt.Errorf("no authentication mode is set; use hmac-sha256 or tls, or none by name")
}
