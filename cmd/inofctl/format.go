package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// none stands in a table for what is not there.
const none = "-"

// table writes rows under a header in aligned columns.
func table(w io.Writer, header string, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(strings.Fields(header), "\t"))
	for _, r := range rows {
		for i := range r {
			r[i] = cell(r[i])
		}
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
}

// pairs writes name: value lines, aligned.
func pairs(w io.Writer, rows [][2]string) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(t, "%s:\t%s\n", r[0], cell(r[1]))
	}
	t.Flush()
}

// cell makes a text safe for a terminal and never empty.
func cell(s string) string {
	if s == "" {
		return none
	}
	return printable(s)
}

// printable replaces what could move a terminal's cursor: texts come from hosts.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// human gives a duration in its two largest units.
func human(d time.Duration) string {
	if d < 0 {
		return "-" + human(-d)
	}
	const day = 24 * time.Hour
	switch {
	case d == 0:
		return "0s"
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + "us"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case d < time.Minute:
		return units(d, time.Second, "s", 0, "")
	case d < time.Hour:
		return units(d, time.Minute, "m", time.Second, "s")
	case d < day:
		return units(d, time.Hour, "h", time.Minute, "m")
	}
	return units(d, day, "d", time.Hour, "h")
}

func units(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	s := fmt.Sprintf("%d%s", d/big, bigName)
	if small > 0 && d%big >= small {
		s += fmt.Sprintf("%d%s", d%big/small, smallName)
	}
	return s
}

// age tells how long ago t was; nothing for no time.
func (a *app) age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return human(max(a.now().Sub(t), 0))
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

// few lists the first most values and counts the rest.
func few[T fmt.Stringer](list []T, most int) string {
	return fewText(texts(list), most)
}

func fewText(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ",")
	}
	return fmt.Sprintf("%s,+%d", strings.Join(list[:most], ","), len(list)-most)
}

func texts[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return out
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func upDown(b bool) string {
	if b {
		return "up"
	}
	return "down"
}

func count[T ~int | ~uint64](n T) string { return fmt.Sprint(n) }
