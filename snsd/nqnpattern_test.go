package snsd

import "testing"

func TestNQNsMatchPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, nqn string
		want         bool
	}{
		{"nqn.2026-01.org.example:a", "nqn.2026-01.org.example:a", true}, {"nqn.2026-01.org.example:a", "nqn.2026-01.org.example:ab", false},
		{"nqn.2026-01.org.example:*", "nqn.2026-01.org.example:a/b:c", true}, {"nqn.2026-01.org.example:?", "nqn.2026-01.org.example:ab", false},
		{"nqn.2026-01.org.example:[ab]*", "nqn.2026-01.org.example:a1", false}, {"nqn.2026-01.org.example:[ab]*", "nqn.2026-01.org.example:[ab]1", true},
		{`nqn.x:\*`, `nqn.x:\y`, true}, {"*", "nqn.x", true}, {"nqn.*", "iqn.x", false},
	} {
		if got := MatchNQN(c.pattern, c.nqn); got != c.want {
			t.Errorf("%q matches %q: %t", c.pattern, c.nqn, got)
		}
	}
}
