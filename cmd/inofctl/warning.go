package main

import (
	"fmt"
	"io"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
)

// exitFinding is the exit code of a question whose answer is not a good one, as opposed to
// one that could not be asked.
const exitFinding = 3

// finding ends the program with exitFinding; what was found has been printed.
type finding struct{ error }

// warningLines prints each warning with what to do about it.
func (a *app) warningLines(w io.Writer, list api.Warnings) {
	for _, x := range list {
		text := x.Text
		if x.Last != nil {
			text += fmt.Sprintf(" (%s ago", a.age(*x.Last))
			if x.Count > 1 {
				text += fmt.Sprintf(", %d times", x.Count)
			}
			text += ")"
		}
		fmt.Fprintln(w, "Warning:       "+query.Printable(text))
		fmt.Fprintln(w, "               "+query.Printable(x.Do))
	}
}
