// Package setting declares what an operator may set: key, default, range, how it takes
// effect and what it is for stand in one place, and reading, checking, comparing and
// documenting follow from it.
package setting

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is the declaration of one value, bound to where that is kept.
type Setting struct {
	Key     string // below its section
	Default string
	Allowed string // for a person who wrote something else
	Doc     string // why one would change it: a line of docs/config.md
	Restart bool   // a change takes effect only after a restart
	// Missing is what is wrong when it is not written; empty: it need not be.
	Missing string

	words []string // what may be written besides a range
	// As the document says it, where that is more than Default and Allowed.
	docDefault, docAllowed string

	// Reset puts the default in force.
	Reset func()
	// Read takes a text over, or returns what is wrong with it.
	Read func(text string) (wrong string)
	// Text is the value in force, as Read takes it.
	Text func() string
	// Wrong reports what is out of range of a value that no text was read for; zero is its
	// default, or off, and always right.
	Wrong func() string
	// Complete sets what is zero to the default and brings the rest into range.
	Complete func()
}

// Fixed is the setting where a change takes effect only after a restart.
func (s Setting) Fixed() Setting { s.Restart = true; return s }

// Required is the setting where something must be written; why (may be empty) is told to
// whoever has not.
func (s Setting) Required(why string) Setting {
	s.Missing, s.docDefault = "is missing", "required"
	if why != "" {
		s.Missing += ": " + why
	}
	return s
}

// Documented is the setting with what the document says in place of its default and of
// what errors say is allowed, as Markdown; empty: the same.
func (s Setting) Documented(def, allowed string) Setting {
	s.docDefault, s.docAllowed = def, allowed
	return s
}

// Row is the line of docs/config.md; prefix is the section with its dot.
func (s *Setting) Row(prefix string) string {
	def, allowed, reload := "`"+s.Default+"`", strings.TrimPrefix(s.Allowed, "a whole number "), "live"
	for _, w := range s.words {
		allowed = strings.Replace(allowed, w, "`"+w+"`", 1)
	}
	if s.Default == "" {
		def = "none"
	}
	def, allowed = cmp.Or(s.docDefault, def), cmp.Or(s.docAllowed, allowed)
	if s.Restart {
		reload = "restart"
	}
	return fmt.Sprintf("| `%s%s` | %s | %s | %s | %s |", prefix, s.Key, def, allowed, s.Doc, reload)
}

type ordered interface{ ~int | ~int64 }

// scale makes a setting of a number that parse and text turn from and into text.
func scale[T ordered](key string, v *T, def, least, most T, doc, allowed string, text func(T) string, parse func(string) (n float64, wrong string)) Setting {
	var low, high = "is too small", "is too large"
	if _, isTime := any(def).(time.Duration); isTime {
		low, high = "is too short", "is too long"
	}
	return Setting{
		Key: key, Default: text(def), Allowed: allowed, Doc: doc,
		Reset: func() { *v = def },
		Text:  func() string { return text(*v) },
		Read: func(s string) string {
			n, wrong := parse(s)
			switch {
			case wrong != "":
				return wrong
			case n == 0 && def == 0: // off, or a range that begins there
			case n < float64(least):
				return low
			case n > float64(most):
				return high
			}
			*v = T(n)
			return ""
		},
		Wrong: func() string {
			if *v == 0 || *v >= least && *v <= most {
				return ""
			}
			return fmt.Sprintf("is %s, want %s..%s", text(*v), text(least), text(most))
		},
		Complete: func() {
			if *v == 0 {
				*v = def
			} else {
				*v = min(max(*v, least), most)
			}
		},
	}
}

// Int is a whole number.
func Int(key string, v *int, def, least, most int, doc string) Setting {
	return scale(key, v, def, least, most, doc, fmt.Sprintf("a whole number %d..%d", least, most), strconv.Itoa, func(s string) (float64, string) {
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0, "is not a whole number"
		}
		return float64(n), ""
	})
}

// Span is a length of time.
func Span(key string, v *time.Duration, def, least, most time.Duration, doc string) Setting {
	return scale(key, v, def, least, most, doc, Duration(least)+".."+Duration(most), Duration, parseSpan)
}

// SpanOrOff is one that is off unless it is set: zero.
func SpanOrOff(key string, v *time.Duration, least, most time.Duration, doc string) Setting {
	text := func(d time.Duration) string {
		if d == 0 {
			return "off"
		}
		return Duration(d)
	}
	s := scale(key, v, 0, least, most, doc, "off, "+Duration(least)+".."+Duration(most), text, parseSpan)
	s.words = []string{"off"}
	read := s.Read
	s.Read = func(t string) string {
		d, err := time.ParseDuration(t)
		switch {
		case t == "off":
			*v = 0
			return ""
		case err == nil && d < least:
			return "is too short"
		}
		return read(t)
	}
	return s
}

func parseSpan(s string) (float64, string) {
	d, err := time.ParseDuration(s)
	if err == nil {
		return float64(d), ""
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, "has no unit (ms, s, m or h)"
	}
	return 0, "is not a time span"
}

// Decibel is a number with its unit, kept in thousandths.
func Decibel(key string, v *int, unit string, def, least, most int, doc string) Setting {
	text := func(n int) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) + unit }
	s := scale(key, v, def, least, most, doc, text(least)+".."+text(most), text, func(s string) (float64, string) {
		digits, there := strings.CutSuffix(s, unit)
		f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		switch {
		case err != nil || math.IsNaN(f):
			return 0, "is not a number of " + unit
		case !there:
			return 0, "has no unit (" + unit + ")"
		}
		return math.Round(f * 1000), ""
	})
	read := s.Read
	s.Read = func(t string) string {
		return strings.NewReplacer("too small", "too low", "too large", "too high").Replace(read(t))
	}
	return s
}

// Choice is one of a few values by their names.
func Choice[T comparable](key string, v *T, def T, options []T, doc string) Setting {
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = fmt.Sprint(o)
	}
	var zero T
	return Setting{
		Key: key, Default: fmt.Sprint(def), Allowed: strings.Join(names, ", "), Doc: doc, words: names,
		Reset: func() { *v = def },
		Text:  func() string { return fmt.Sprint(*v) },
		Read: func(s string) string {
			i := slices.Index(names, s)
			if i >= 0 {
				*v = options[i]
				return ""
			}
			if near := Nearest(s, names); near != "" {
				return fmt.Sprintf("is not a known value, did you mean %q?", near)
			}
			return "is not a known value"
		},
		Wrong: func() string {
			if *v == zero || slices.Contains(options, *v) {
				return ""
			}
			return fmt.Sprintf("is %v, want %s", *v, strings.Join(names, ", "))
		},
		Complete: func() {
			if *v == zero || !slices.Contains(options, *v) {
				*v = def
			}
		},
	}
}

// Value is any other value: parse makes it of a text or says what is wrong, text is its inverse.
func Value[T any](key string, v *T, def T, allowed, doc string, parse func(string) (T, string), text func(T) string) Setting {
	return Setting{
		Key: key, Default: text(def), Allowed: allowed, Doc: doc,
		Reset: func() { *v = def },
		Text:  func() string { return text(*v) },
		Read: func(s string) string {
			n, wrong := parse(s)
			if wrong == "" {
				*v = n
			}
			return wrong
		},
		Wrong:    func() string { return "" },
		Complete: func() {},
	}
}

// Text is a text of which check (nil: nothing) says what is wrong.
func Text(key string, v *string, def, allowed, doc string, check func(string) string) Setting {
	return Value(key, v, def, allowed, doc, func(s string) (string, string) {
		if check == nil {
			return s, ""
		}
		return s, check(s)
	}, func(s string) string { return s })
}

// Bool is true or false.
func Bool(key string, v *bool, def bool, doc string) Setting {
	s := Choice(key, v, def, []bool{true, false}, doc)
	s.Wrong, s.Complete = func() string { return "" }, func() {}
	s.Read = func(t string) string {
		if t != "true" && t != "false" {
			return "is neither true nor false"
		}
		*v = t == "true"
		return ""
	}
	return s
}

// Duration leaves out the zero parts of time.Duration's form: 1h, not 1h0m0s.
func Duration(d time.Duration) string {
	t := d.String()
	if strings.HasSuffix(t, "m0s") {
		t = strings.TrimSuffix(t, "0s")
	}
	if strings.HasSuffix(t, "h0m") {
		t = strings.TrimSuffix(t, "0m")
	}
	return t
}
