package query

import (
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/openinof/inof/snsd"
)

// None stands in a table for what is not there.
const None = "-"

// Page is where answers are printed: for people, at a moment.
type Page struct {
	io.Writer
	Now time.Time
}

// Table writes rows under a header in aligned columns.
func Table(w io.Writer, header string, rows [][]string) { (&Page{Writer: w}).rows(header, rows) }

func (p *Page) rows(header string, rows [][]string) {
	t := tabwriter.NewWriter(p, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(strings.Fields(header), "\t"))
	for _, r := range rows {
		for i := range r {
			r[i] = Cell(r[i])
		}
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
}

// Pairs writes name: value lines, aligned.
func (p *Page) Pairs(rows [][2]string) {
	t := tabwriter.NewWriter(p, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(t, "%s:\t%s\n", r[0], Cell(r[1]))
	}
	t.Flush()
}

// columns is how wide a screen is taken to be.
const columns = 120

// Wrap writes a text in lines that fit a screen, where it has blanks; the lines after the
// first are indented.
func (p *Page) Wrap(text string) {
	line, indent := "", ""
	for word := range strings.FieldsSeq(Printable(text)) {
		if line != indent && len(line)+1+len(word) > columns {
			fmt.Fprintln(p, line)
			line, indent = "  ", "  "
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(p, line)
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

// Clip is a text on one line, of so many characters at most.
func Clip(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
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

// Ago tells how long ago t was; nothing for no time.
func (p *Page) Ago(t *time.Time) string {
	if t == nil {
		return ""
	}
	return p.Age(*t)
}

// Age tells how long ago t was; nothing for no time.
func (p *Page) Age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Human(max(p.Now.Sub(t), 0))
}

// Stamp gives a time of day with milliseconds, and the date when it is not today.
func (p *Page) Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	t = t.In(p.Now.Location())
	if t.Format(time.DateOnly) == p.Now.Format(time.DateOnly) {
		return t.Format("15:04:05.000")
	}
	return t.Format("2006-01-02 15:04:05.000")
}

// Micros gives microseconds in the unit that suits; nothing for nil.
func Micros(us *int64) string {
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

// UpDown is the word for a carrier or a port.
func UpDown(b bool) string {
	if b {
		return "up"
	}
	return "down"
}

// Count gives a number.
func Count[T ~int | ~uint64](n T) string { return fmt.Sprint(n) }

// Addr leaves an address that is not known empty.
func Addr(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
