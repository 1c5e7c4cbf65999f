package link

import (
	"fmt"

	"github.com/openinof/inof/inof/wire"
)

// Auth is the authentication of a session.
type Auth struct {
	Mode wire.AuthMode
	// Passwords for AuthHMAC, 1 to MaxPasswords: a peer may know any of them, and the
	// first that both know is used.
	Passwords []Password
	TLS       *CredentialStore // for AuthTLS
}

// Validate tells what is wrong with it.
func (a Auth) Validate() error {
	switch a.Mode {
	case wire.AuthNone:
		return nil
	case wire.AuthHMAC:
		if n := len(a.Passwords); n < 1 || n > MaxPasswords {
			return fmt.Errorf("%d passwords, want 1..%d", n, MaxPasswords)
		}
		return nil
	case wire.AuthTLS:
		if a.TLS == nil || a.TLS.Get() == nil {
			return fmt.Errorf("authentication mode tls needs a certificate, a key and a CA")
		}
		return nil
	}
	return fmt.Errorf("no authentication mode is set; use hmac-sha256 or tls, or none by name")
}
