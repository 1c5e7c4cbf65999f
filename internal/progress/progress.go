// Package progress says how far something is that takes a while.
package progress

import (
	"fmt"
	"io"
	"time"
)

const (
	patience = 2 * time.Second // what ends earlier needs none
	pace     = time.Second
)

// Teller writes a line a second: how much is done, how fast that goes, and how long the rest will
// take if it goes on so. The zero value, and nil, tell nothing.
type Teller struct {
	w    io.Writer
	unit string
	last time.Duration
}

// To is a Teller that writes of units, such as "trials".
func To(w io.Writer, unit string) *Teller { return &Teller{w: w, unit: unit} }

// Begin is To for a step that begins now: what it gives takes how much of all is done.
func Begin(w io.Writer, unit string, now func() time.Time) func(done, all int) {
	begun, t := now(), To(w, unit)
	return func(done, all int) { t.At(done, all, now().Sub(begun)) }
}

// At takes how much of all is done after a time.
func (t *Teller) At(done, all int, spent time.Duration) {
	if t == nil || t.w == nil || spent < patience || spent < t.last+pace || done <= 0 || done >= all {
		return
	}
	t.last = spent
	left := time.Duration(float64(spent) * float64(all-done) / float64(done))
	fmt.Fprintf(t.w, "%d of %d %s, %.3g a second, about %v left\n", done, all, t.unit, float64(done)/spent.Seconds(), left.Round(time.Second))
}
