package setting

import (
	"testing"
	"time"
)

func TestASettingTakesWhatItSaysAndNothingElse(t *testing.T) {
	var n, power int
	var span, off time.Duration
	var word string
	var yes bool
	list := map[string]Setting{
		"number": Int("n", &n, 3, 1, 10, ""),
		"span":   Span("s", &span, time.Second, time.Millisecond, time.Hour, ""),
		"off":    SpanOrOff("o", &off, time.Minute, time.Hour, ""),
		"power":  Decibel("p", &power, "dBm", -14_000, -39_000, 10_000, ""),
		"word":   Choice("w", &word, "none", []string{"none", "notify"}, ""),
		"yes":    Bool("y", &yes, true, ""),
	}
	for _, c := range []struct{ of, text, wrong, is string }{
		{"number", "10", "", "10"},
		{"number", "0", "is too small", "3"},
		{"number", "11", "is too large", "3"},
		{"number", "3.0", "is not a whole number", "3"},
		{"span", "90s", "", "1m30s"},
		{"span", "2h", "is too long", "1s"},
		{"span", "1us", "is too short", "1s"},
		{"span", "5", "has no unit (ms, s, m or h)", "1s"},
		{"span", "soon", "is not a time span", "1s"},
		{"off", "off", "", "off"},
		{"off", "1h", "", "1h"},
		{"off", "0s", "is too short", "off"},
		{"power", "-7.5dBm", "", "-7.5dBm"},
		{"power", "-7.5", "has no unit (dBm)", "-14dBm"},
		{"power", "-40dBm", "is too low", "-14dBm"},
		{"power", "11dBm", "is too high", "-14dBm"},
		{"power", "NaNdBm", "is not a number of dBm", "-14dBm"},
		{"word", "notify", "", "notify"},
		{"word", "notfy", `is not a known value, did you mean "notify"?`, "none"},
		{"yes", "false", "", "false"},
		{"yes", "no", "is neither true nor false", "true"},
	} {
		s := list[c.of]
		s.Reset()
		if s.Text() != s.Default {
			t.Errorf("%s: default %s is said to be %s", c.of, s.Text(), s.Default)
		}
		if wrong := s.Read(c.text); wrong != c.wrong || s.Text() != c.is {
			t.Errorf("%s: %q %s, is %s; want %q, %s", c.of, c.text, wrong, s.Text(), c.wrong, c.is)
		}
	}
}

func TestWhatNoTextWasReadForIsBroughtIntoRange(t *testing.T) {
	n, off := 11, time.Second
	a, b := Int("n", &n, 3, 1, 10, ""), SpanOrOff("o", &off, time.Minute, time.Hour, "")
	if a.Wrong() != "is 11, want 1..10" || b.Wrong() != "is 1s, want 1m..1h" {
		t.Error(a.Wrong(), b.Wrong())
	}
	a.Complete()
	b.Complete()
	if n != 10 || off != time.Minute {
		t.Error(n, off)
	}
	n, off = 0, 0
	a.Complete()
	b.Complete()
	if n != 3 || off != 0 || a.Wrong()+b.Wrong() != "" {
		t.Error(n, off)
	}
}

func TestTheRowOfASettingSaysHowItTakesEffect(t *testing.T) {
	var d time.Duration
	s := SpanOrOff("recovery", &d, time.Minute, time.Hour, "Why.").Fixed()
	if got, want := s.Row("a."), "| `a.recovery` | `off` | `off`, 1m..1h | Why. | restart |"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
