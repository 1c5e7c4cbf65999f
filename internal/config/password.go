package config

import "log/slog"

// Secret is a password that does not show up in logs, errors or JSON by accident.
type Secret string

const redacted = "[secret]"

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the value from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal gives the password itself.
func (s Secret) Reveal() []byte { return []byte(s) }

// PasswordKind names one of the places a password can come from.
type PasswordKind string

// The keys below session that name a password; exactly one is written.
const (
	PasswordNone       PasswordKind = ""
	PasswordFile       PasswordKind = "password-file"       // path of a file
	PasswordEnv        PasswordKind = "password-env"        // name of an environment variable
	PasswordCredential PasswordKind = "password-credential" // name below $CREDENTIALS_DIRECTORY (systemd)
)

// PasswordFrom is where the session password comes from.
type PasswordFrom struct {
	Kind PasswordKind
	Name string
}
