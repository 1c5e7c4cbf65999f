package daemon

import (
	"runtime/debug"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/internal/config"
)

// passwords keeps those in force as keys: to make one takes 64 MiB and 0.1 s, which a
// reload that changes something else must not cost.
type passwords map[config.Secret]link.Password

// PasswordKeys makes the keys of the passwords in a file, as lines for session.password-key-file.
func PasswordKeys(file string) (lines []string, err error) {
	passwords, err := config.ReadPasswordFile(file)
	if err != nil {
		return nil, err
	}
	for _, p := range passwords {
		key, err := link.NewPassword(p.Reveal())
		if err != nil {
			return nil, err
		}
		lines = append(lines, key.KeyText())
	}
	return lines, nil
}

// stretch gives the keys of those that are not empty, and forgets all others.
func (p *passwords) stretch(from config.PasswordKind, list ...config.Secret) ([]link.Password, error) {
	next := passwords{}
	var keys []link.Password
	for _, s := range list {
		if s == "" {
			continue
		}
		key, ok := (*p)[s]
		var err error
		switch {
		case from == config.PasswordKeyFile:
			key, err = link.ParseKey(string(s.Reveal()))
		case !ok:
			key, err = link.NewPassword(s.Reveal())
			debug.FreeOSMemory() // else the heap may grow to twice of what was needed once
		}
		if err != nil {
			return nil, err
		}
		next[s] = key
		keys = append(keys, key)
	}
	*p = next
	return keys, nil
}
