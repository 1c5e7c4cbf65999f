package health

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
)

// What many clients report in the same words is one warning; a flood of one kind is counted.
func TestReportsOfClientsAreOneWarningEach(t *testing.T) {
	f := good()
	say := func(dev, rule, text string) {
		f.Reports = append(f.Reports, Reported{addr(dev), []wire.ReportedWarning{{Rule: rule, Text: text}}})
	}
	say("10.0.0.9", "of-the-future", "x")
	say("10.0.0.3", "path-down", "the path fails")
	for i := range 5 {
		say(fmt.Sprintf("10.0.0.%d", i+1), "no-session", "no session with reflector B")
	}
	got := Warnings(&f, &Incidents{})
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	if w := got[0]; w.Rule != "no-session" || w.Text != "device 10.0.0.1, 10.0.0.2, 10.0.0.3 and 2 more: no session with reflector B" || len(w.Devices) != 5 || !strings.HasPrefix(w.Do, "there: ") {
		t.Errorf("%+v", w)
	}
	if w := got[1]; w.Rule != "path-down" || w.Text != "device 10.0.0.3: the path fails" {
		t.Errorf("%+v", w)
	}
	if w := got[2]; w.Rule != "of-the-future" || w.Do != "see it there: inofctl show status" {
		t.Errorf("%+v", w)
	}
	for i := range 50 {
		say("10.0.1.1", "hosts-silent", fmt.Sprint("host ", i))
	}
	got = Warnings(&f, &Incidents{})
	if len(got) != 3+mostNamed+1 || !strings.Contains(got.String(), "42 more warnings of clients like these") {
		t.Errorf("%d: %s", len(got), got)
	}
}

// A report has what is wrong here, fits a message, and is not passed on by another device.
func TestAReportFitsItsMessage(t *testing.T) {
	list := api.Warnings{{Rule: "a", Text: "line\n\x1b[2J\u0085" + strings.Repeat("\u20ac", 200)}, {Rule: "b", Text: "of a client", Devices: []netip.Addr{addr("10.0.0.1")}}}
	for range 100 {
		list = append(list, api.Warning{Rule: "c", Text: "x"})
	}
	m := Report(list)
	if len(m.Warnings) != wire.MaxReportWarnings || m.Warnings[1].Rule != "c" {
		t.Errorf("%d warnings, %+v", len(m.Warnings), m.Warnings[1])
	}
	if _, err := wire.Encode(m); err != nil {
		t.Error(err)
	}
}
