package fabric

import (
	"fmt"
	"path"
	"strings"
)

// Names is a set of port names given exactly or as globs: * stands for any run of
// characters, ? for one, [a-d] for one of a class, \ takes the next one literally.
// The zero value matches nothing.
type Names struct {
	exact    map[string]bool
	patterns []string // with slashes replaced, see plain
	text     []string
}

// ParseNames checks and compiles a list of names and globs. The error names the
// entry that is wrong.
func ParseNames(list []string) (Names, error) {
	n := Names{exact: make(map[string]bool), text: append([]string(nil), list...)}
	for i, s := range list {
		if s == "" || len(s) > MaxPortName {
			return Names{}, fmt.Errorf("port name %d %q has %d bytes, want 1..%d", i+1, s, len(s), MaxPortName)
		}
		if !strings.ContainsAny(s, `*?[\`) {
			n.exact[s] = true
			continue
		}
		p := plain(s)
		if _, err := path.Match(p, ""); err != nil { // checks all of the pattern
			return Names{}, fmt.Errorf("port name %d %q is no valid glob: want * ? [a-z] or \\ before a literal", i+1, s)
		}
		n.patterns = append(n.patterns, p)
	}
	return n, nil
}

// Match tells whether a port of this name belongs to the set.
func (n Names) Match(name string) bool {
	if n.exact[name] {
		return true
	}
	if len(n.patterns) == 0 || len(name) > MaxPortName {
		return false
	}
	name = plain(name)
	for _, p := range n.patterns {
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}

// String lists the entries as they were given.
func (n Names) String() string { return strings.Join(n.text, ",") }

// plain takes away the one character that path.Match treats specially and port
// names such as Eth1/1 contain.
func plain(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
