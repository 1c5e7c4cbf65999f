package daemon

import (
	"runtime/debug"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/internal/config"
)

// passwords keeps those in force as keys: to make one takes 64 MiB and 0.1 s, which a
// reload that changes something else must not cost.
type passwords map[config.Secret]link.Password

// stretch gives the keys of those that are not empty, and forgets all others.
func (p *passwords) stretch(list ...config.Secret) ([]link.Password, error) {
	next := passwords{}
	var keys []link.Password
	made := false
	for _, s := range list {
		if s == "" {
			continue
		}
		key, ok := (*p)[s]
		if !ok {
			var err error
			if key, err = link.NewPassword(s.Reveal()); err != nil {
				return nil, err
			}
			made = true
		}
		next[s] = key
		keys = append(keys, key)
	}
	*p = next
	if made {
		debug.FreeOSMemory() // else the heap may grow to twice of what was needed once
	}
	return keys, nil
}
