package wire

import "fmt"

// AuthMode is how the two sides of a session prove who they are.
type AuthMode uint8

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

const (
	AuthNone AuthMode = 1 // must be asked for by name
	AuthHMAC AuthMode = 2 // HMAC-SHA256 with a shared password
	AuthTLS  AuthMode = 3 // mutual TLS 1.3
)
