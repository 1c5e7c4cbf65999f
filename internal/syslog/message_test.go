package syslog

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func example() Message {
	return Message{
		Facility: 23, Severity: Warning, Time: time.Date(2026, 5, 4, 12, 0, 0, 123456789, time.FixedZone("", 7200)),
		Host: "tor-1", App: "inofd", Proc: "42", ID: "conflict", Data: "inof@32473",
		Params: []Param{{"port", "eth1"}, {"addr", ""}, {"nqn", `a"b]c\d`}}, Text: "two hosts",
	}
}

func TestAMessageIsWrittenAsRFC5424Says(t *testing.T) {
	m := example()
	want := `<188>1 2026-05-04T10:00:00.123456Z tor-1 inofd 42 conflict [inof@32473 port="eth1" nqn="a\"b\]c\\d"] two hosts`
	if got := string(m.Append(nil, MaxStream)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	m = Message{Severity: Info, Time: m.Time, Data: "x"}
	if got, want := string(m.Append(nil, MaxStream)), "<6>1 2026-05-04T10:00:00.123456Z - - - - [x]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWhatAHostSaysNeverBreaksALine(t *testing.T) {
	m := example()
	m.Host, m.ID = "tor 1\n<0>", strings.Repeat("é", 40)
	m.Params = []Param{{`a="]b c`, "x\ny\xff\u0085z"}}
	m.Text = "first\n<0>1 forged \x00\x1b[2J"
	got := string(m.Append(nil, MaxStream))
	want := `<188>1 2026-05-04T10:00:00.123456Z tor_1_<0> inofd 42 ` + strings.Repeat("_", maxMsgID) +
		` [inof@32473 a___b_c="x y_ z"] first <0>1 forged  ` + " [2J"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestAMessageIsNeverLongerThanItsLimit(t *testing.T) {
	m := example()
	m.Text = strings.Repeat("ö", 5000)
	for range 100 {
		m.Params = append(m.Params, Param{"field", strings.Repeat(`"`, 400)})
	}
	for _, limit := range []int{MaxDatagram, MaxStream} {
		got := m.Append([]byte("before"), limit)[len("before"):]
		if len(got) > limit || len(got) < limit-2000 || !utf8.Valid(got) || !strings.HasSuffix(string(got), "ö") {
			t.Errorf("limit %d: %d bytes, end %q", limit, len(got), got[len(got)-10:])
		}
		if !strings.Contains(string(got), `"] ö`) {
			t.Errorf("limit %d: the structured data is not whole", limit)
		}
	}
}

func FuzzAppend(f *testing.F) {
	f.Add("h", "id", "name", "value", "text")
	f.Add("[", "[", "name", "value", "text")
	f.Add("", "\n", `]="`, `\"]`, "\xff\x00")
	f.Fuzz(func(t *testing.T, host, id, name, value, text string) {
		m := example()
		m.Host, m.ID, m.Text, m.Params = host, id, text, []Param{{name, value}}
		got := string(m.Append(nil, MaxDatagram))
		if len(got) > MaxDatagram || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Fatalf("%q", got)
		}
		if parts := strings.SplitN(got, " ", 7); len(parts) != 7 || !strings.HasPrefix(parts[6], "[inof@") {
			t.Fatalf("the structured data is not the seventh field: %q", got)
		}
	})
}

func TestAServerIsAnAddressOrANameOfANetwork(t *testing.T) {
	for text, want := range map[string]string{
		"udp://192.0.2.1": "udp://192.0.2.1:514", "tcp://log.example:601": "tcp://log.example:601", "tls://2001:db8::1": "tls://[2001:db8::1]:6514",
		"tls://[2001:db8::1]:7": "tls://[2001:db8::1]:7", "udp://[2001:db8::1]": "udp://[2001:db8::1]:514",
	} {
		if s, wrong := ParseServer(text); wrong != "" || s.String() != want {
			t.Errorf("%s: %s %s", text, s, wrong)
		}
	}
	for _, text := range []string{"", "192.0.2.1", "http://x", "udp://", "udp://x:0", "udp://x:99999", "tcp://a b", "tcp://x/y", "tcp://u@x"} {
		if s, wrong := ParseServer(text); wrong == "" {
			t.Errorf("%q is taken as %s", text, s)
		}
	}
}
