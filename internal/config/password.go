package config

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
	PasswordFile       PasswordKind = "password-file"       // path of a file
	PasswordEnv        PasswordKind = "password-env"        // name of an environment variable
	PasswordCredential PasswordKind = "password-credential" // name below $CREDENTIALS_DIRECTORY (systemd)
	PasswordKeyFile    PasswordKind = "password-key-file"   // path of a file with what was made of a password
)

// PasswordFrom is where the session password comes from.
type PasswordFrom struct {
	Kind PasswordKind
	Name string
}

// readPasswords reads the password of a file, and from a second line the old one.
func readPasswords(from PasswordFrom, given *Given) (password, old Secret, err error) {
	v, err := readSecret(from, given)
	if err != nil {
		return "", "", err
	}
	lines := strings.Split(v, "\n")
	if len(lines) > 2 {
		return "", "", fmt.Errorf("that file has %d lines, want the password, and in a second line the old one while devices are moved", len(lines))
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, "\r")
		if what := checkPassword(lines[i]); what != "" && i == 0 {
			return "", "", fmt.Errorf("the password in that file %s", what)
		} else if what != "" {
			return "", "", fmt.Errorf("the old password in that file, its second line, %s", what)
		}
	}
	if len(lines) == 1 {
		return Secret(lines[0]), "", nil
	}
	if lines[0] == lines[1] {
		return "", "", errors.New("the two passwords in that file are the same")
	}
	return Secret(lines[0]), Secret(lines[1]), nil
}

// ReadPasswordFile reads the passwords of a file as session.password-file does, the new one first.
func ReadPasswordFile(path string) ([]Secret, error) {
	password, old, err := readPasswords(PasswordFrom{PasswordFile, path}, nil)
	if err != nil || old == "" {
		return []Secret{password}, err
	}
	return []Secret{password, old}, nil
}

// checkPassword says what is wrong with a password without repeating it.
func checkPassword(v string) string {
	switch {
	case v == "":
		return "is empty or not set"
	case len(v) > MaxPassword:
		return fmt.Sprintf("has %d bytes", len(v))
	case !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl):
		return "has characters that cannot be printed"
	case utf8.RuneCountInString(v) < MinPassword:
		return fmt.Sprintf("has %d characters", utf8.RuneCountInString(v))
	}
	return ""
}
