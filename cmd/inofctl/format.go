package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/openinof/inof/internal/query"
)

// pairs writes name: value lines, aligned.
func pairs(w io.Writer, rows [][2]string) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(t, "%s:\t%s\n", r[0], query.Cell(r[1]))
	}
	t.Flush()
}

// age tells how long ago t was; nothing for no time.
func (a *app) age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return query.Human(max(a.now().Sub(t), 0))
}

func (a *app) agePtr(t *time.Time) string {
	if t == nil {
		return ""
	}
	return a.age(*t)
}

// stamp gives a time of day with milliseconds, and the date when it is not today.
func (a *app) stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	now := a.now()
	t = t.In(now.Location())
	if y, m, d := t.Date(); time.Date(y, m, d, 0, 0, 0, 0, now.Location()).Equal(
		time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())) {
		return t.Format("15:04:05.000")
	}
	return t.Format("2006-01-02 15:04:05.000")
}

// micros gives microseconds in the unit that suits; nothing for nil.
func micros(us *int64) string {
	if us == nil {
		return ""
	}
	switch v := float64(*us); {
	case *us < 1000:
		return strconv.FormatInt(*us, 10) + "us"
	case *us < 1_000_000:
		return strconv.FormatFloat(v/1e3, 'f', 2, 64) + "ms"
	default:
		return strconv.FormatFloat(v/1e6, 'f', 2, 64) + "s"
	}
}

func upDown(b bool) string {
	if b {
		return "up"
	}
	return "down"
}

func count[T ~int | ~uint64](n T) string { return fmt.Sprint(n) }
