package main

import (
	"io"

	"github.com/openinof/inof/internal/query"
)

// page is where answers are printed, now.
func (a *app) page(w io.Writer) *query.Page { return &query.Page{Writer: w, Now: a.now()} }

// exitFinding is the exit code of a question whose answer is not a good one, as opposed to
// one that could not be asked.
const exitFinding = 3

// finding ends the program with exitFinding; what was found has been printed.
type finding struct{ error }
