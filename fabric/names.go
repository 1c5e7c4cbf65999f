package fabric

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Names is a set of port names. An entry is a name, a range such as Ethernet0-12 (every
// port from Ethernet0 to Ethernet12 that there is), or a glob: * stands for any run of
// characters, ? for one, [a-d] for one of a class, \ takes the next one literally. An
// entry that begins with ! takes ports out again, wherever it stands in the list.
// The zero value matches nothing.
type Names struct {
	take, leave map[string]bool // exact names
	entries     []nameEntry     // globs and ranges
	text        []string
}

// nameEntry is one glob or range.
type nameEntry struct {
	leave       bool
	glob        string // with slashes replaced, see plain; empty: a range
	prefix      string
	first, last uint64
}

// ParseNames checks and compiles a list of entries. The error names the entry that is
// wrong.
func ParseNames(list []string) (Names, error) {
	n := Names{take: make(map[string]bool), leave: make(map[string]bool), text: append([]string(nil), list...)}
	for i, s := range list {
		if err := n.add(s); err != nil {
			return Names{}, fmt.Errorf("port name %d %w", i+1, err)
		}
	}
	return n, nil
}

func (n *Names) add(text string) error {
	s, not := strings.CutPrefix(text, "!")
	switch {
	case s == "" || len(s) > MaxPortName:
		return fmt.Errorf("%q has %d bytes, want 1..%d", text, len(s), MaxPortName)
	case strings.ContainsAny(s, `*?[\`):
		g := plain(s)
		if _, err := path.Match(g, ""); err != nil { // checks all of the pattern
			return fmt.Errorf("%q is no valid glob: want * ? [a-z] or \\ before a literal", text)
		}
		n.entries = append(n.entries, nameEntry{leave: not, glob: g})
		return nil
	}
	if e, ok := nameRange(s); ok {
		e.leave = not
		n.entries = append(n.entries, e)
	}
	if not {
		n.leave[s] = true
	} else {
		n.take[s] = true // a range too may be a port's own name
	}
	return nil
}

// nameRange reads PREFIX FIRST-LAST; a name that is none, such as p4-1, is a name only.
func nameRange(s string) (nameEntry, bool) {
	left, right, ok := cutLast(s, '-')
	digits := strings.TrimRight(left, "0123456789")
	first, last := number(left[len(digits):]), number(right)
	if !ok || first < 0 || last < first {
		return nameEntry{}, false
	}
	return nameEntry{prefix: digits, first: uint64(first), last: uint64(last)}, true
}

func cutLast(s string, sep byte) (left, right string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// number reads a port's number as ports are numbered: digits, no leading zero; else -1.
func number(s string) int64 {
	if len(s) > 1 && s[0] == '0' || strings.ContainsAny(s, "+-_") {
		return -1
	}
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return -1
	}
	return v
}

func (e *nameEntry) match(name string) bool {
	if e.glob != "" {
		ok, _ := path.Match(e.glob, plain(name))
		return ok
	}
	digits, ok := strings.CutPrefix(name, e.prefix)
	v := number(digits)
	return ok && v >= 0 && uint64(v) >= e.first && uint64(v) <= e.last
}

// Match reports whether a port of this name belongs to the set.
func (n Names) Match(name string) bool {
	if len(name) > MaxPortName || n.leave[name] {
		return false
	}
	taken := n.take[name]
	for i := range n.entries {
		e := &n.entries[i]
		if (e.leave || !taken) && e.match(name) {
			if e.leave {
				return false
			}
			taken = true
		}
	}
	return taken
}

// Idle lists the entries that match none of the ports, as they were given: typing
// mistakes, most likely.
func (n Names) Idle(ports []string) []string {
	var idle []string
	for _, text := range n.text {
		one, err := ParseNames([]string{strings.TrimPrefix(text, "!")})
		used := err != nil
		for _, p := range ports {
			used = used || one.Match(p)
		}
		if !used {
			idle = append(idle, text)
		}
	}
	return idle
}

// IsZero reports whether there is no entry at all.
func (n Names) IsZero() bool { return len(n.text) == 0 }

// String lists the entries as they were given.
func (n Names) String() string { return strings.Join(n.text, ",") }

// plain takes away the one character that path.Match treats specially and port
// names such as Eth1/1 contain.
func plain(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
