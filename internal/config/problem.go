package config

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong in a file or in the environment.
type Problem struct {
	File    string // file name, or "environment INOF_..."
	Line    int    // 1-based; 0 where there is none
	Column  int    // 1-based; 0 where there is none
	Key     string // full key path, for example session.hold or zones[3].members[0]
	Value   string // the offending value; empty when something is missing
	What    string // what is wrong
	Allowed string // what would be right; may be empty
}

// maxShown bounds how much of a value an error repeats, in bytes.
const maxShown = 80

// Error gives one line: file:line:column: key: value: what; allowed: ....
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	if p.Value != "" {
		fmt.Fprintf(&b, ": %q", shorten(p.Value))
	}
	b.WriteString(": " + p.What)
	if p.Allowed != "" {
		b.WriteString("; allowed: " + p.Allowed)
	}
	return b.String()
}

func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "..."
}

// Error is all that is wrong, in the order of the lines.
type Error struct {
	Problems []Problem
	// Dropped counts problems beyond MaxProblems.
	Dropped int
}

// MaxProblems is how many problems of one file are listed; more are counted.
const MaxProblems = 100

// Error gives one line per problem.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.Error())
	}
	if e.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("and %d more problems", e.Dropped))
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single problems to errors.As.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}
