package testbed

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrNotPermitted is wrapped by errors that say what the kernel does not allow.
var ErrNotPermitted = errors.New("not permitted")

// ErrNoLab is wrapped by errors about a lab that does not exist.
var ErrNoLab = errors.New("no such lab")

// ErrBusy is wrapped when another process is building or removing the same lab.
var ErrBusy = errors.New("another process is working on this lab")

// ErrExists is wrapped by Up when the lab is up already.
var ErrExists = errors.New("lab is already up")

// ParseError is one mistake in a topology file.
type ParseError struct {
	File string
	Line int    // 1-based, 0 when the whole file is meant
	Path string // dotted path of the key
	Msg  string // what is wrong, the value, and what is allowed
}

func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// ParseErrors are all mistakes found in a topology file, in the order of the file.
type ParseErrors []*ParseError

func (e ParseErrors) Error() string {
	lines := make([]string, len(e))
	for i, pe := range e {
		lines[i] = pe.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first mistake.
func (e ParseErrors) Unwrap() []error {
	out := make([]error, len(e))
	for i, pe := range e {
		out[i] = pe
	}
	return out
}

// readLimited reads all of r and fails when there are more than limit bytes.
func readLimited(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("larger than %d bytes", limit)
	}
	return b, nil
}
