package snsd

import (
	"path"
	"strings"
)

// MatchNQN reports whether an NQN is what a pattern names, which may have * and ?.
func MatchNQN(pattern, nqn string) bool {
	if !strings.ContainsAny(pattern, "*?") {
		return pattern == nqn
	}
	// A slash and brackets are nothing special in a name.
	plain := strings.NewReplacer("/", "\x00", "[", `\[`, `\`, `\\`)
	ok, err := path.Match(plain.Replace(pattern), strings.ReplaceAll(nqn, "/", "\x00"))
	return ok && err == nil
}
