package config

import (
	"fmt"
	"math"
	"strings"
	"unicode"
)

// strongBits is what a password should have at least: 10^24 guesses, each of 64 MiB and
// some 0.1 s, are out of reach.
const strongBits = 80

// commonParts are what people make passwords of, and guessers try first.
var commonParts = []string{"password", "passw0rd", "secret", "changeme", "letmein", "welcome", "admin", "inof", "nvme", "storage", "switch", "fabric", "qwerty", "test", "default"}

// Warnings says what an operator should know about the session's passwords.
func (s *Session) Warnings() []string {
	var list []string
	for _, p := range []struct {
		name string
		v    Secret
	}{{"the session password", s.Password}, {"the old session password", s.OldPassword}} {
		if bits := strength(string(p.v)); p.v != "" && bits < strongBits {
			list = append(list, fmt.Sprintf("%s is weak: at best %d bits, want %d; who reads a handshake can try passwords at home: make one with `openssl rand -base64 24`", p.name, bits, strongBits))
		}
	}
	return list
}

// openToIDs warns where a password lets a device in with any id.
func (c *Config) openToIDs() []string {
	if !c.Device.Roles.Reflector || c.Session.Auth != AuthHMAC || len(c.Reflector.Clients) > 0 {
		return nil
	}
	return []string{"who has the session password may connect with any device id: name the devices in reflector.clients, or use auth: tls"}
}

// strength is a generous estimate of a password in bits: as if each character were drawn
// at random from the kinds of characters it has. Repetitions, runs (abc, 321) and parts
// that everybody tries count as one character.
func strength(v string) int {
	lower := strings.ToLower(v)
	for _, part := range commonParts {
		lower = strings.ReplaceAll(lower, part, part[:1])
	}
	n := 0
	var last, step rune
	for i, c := range lower {
		d := c - last
		if i == 0 || d < -1 || d > 1 || d != step {
			n++
		}
		last, step = c, d
	}
	pool := 0
	for _, kind := range []struct {
		is   func(rune) bool
		size int
	}{{unicode.IsLower, 26}, {unicode.IsUpper, 26}, {unicode.IsDigit, 10}, {func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }, 33}} {
		if strings.ContainsFunc(v, kind.is) {
			pool += kind.size
		}
	}
	if pool == 0 {
		return 0
	}
	return int(float64(n) * math.Log2(float64(pool)))
}
