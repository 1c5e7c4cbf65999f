package query

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/openinof/inof/snsd"
)

// None stands in a table for what is not there.
const None = "-"

// Table writes rows under a header in aligned columns.
func Table(w io.Writer, header string, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(strings.Fields(header), "\t"))
	for _, r := range rows {
		for i := range r {
			r[i] = Cell(r[i])
		}
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
}

// Cell makes a text safe for a terminal and never empty.
func Cell(s string) string {
	if s == "" {
		return None
	}
	return Printable(s)
}

// Printable replaces what could move a terminal's cursor: texts come from hosts.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// Human gives a duration in its two largest units.
func Human(d time.Duration) string {
	if d < 0 {
		return "-" + Human(-d)
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

// Few lists the first most values and counts the rest.
func Few[T fmt.Stringer](list []T, most int) string {
	return FewText(Texts(list), most)
}

func FewText(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ",")
	}
	return fmt.Sprintf("%s,+%d", strings.Join(list[:most], ","), len(list)-most)
}

func Texts[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return out
}

func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Because leaves the reason of what is well empty.
func Because(r snsd.Reason) string {
	if r == snsd.ReasonNone {
		return ""
	}
	return r.String()
}

// Ago tells how long before now t was; nothing for no time.
func Ago(t *time.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return Human(max(now.Sub(*t), 0))
}
