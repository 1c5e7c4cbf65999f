package imports

import (
	"fmt"
	"strings"
)

// LineError says what is wrong with one line.
type LineError struct {
	Line int    // from 1 on; 0: of the text as a whole
	What string // with the word it is about
}

// Errors are all errors of a text, at most MaxErrors.
type Errors struct {
	List []LineError
	More int // that are not listed
}

// MaxErrors bounds how many errors are listed.
const MaxErrors = 100

// Error gives a line for each.
func (e *Errors) Error() string {
	var b strings.Builder
	for i, x := range e.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		if x.Line > 0 {
			fmt.Fprintf(&b, "line %d: ", x.Line)
		}
		b.WriteString(x.What)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\nand %d more", e.More)
	}
	return b.String()
}

func (e *Errors) add(line int, format string, args ...any) {
	if len(e.List) == MaxErrors {
		e.More++
		return
	}
	e.List = append(e.List, LineError{line, fmt.Sprintf(format, args...)})
}

func (e *Errors) or() error {
	if len(e.List) == 0 {
		return nil
	}
	return e
}
