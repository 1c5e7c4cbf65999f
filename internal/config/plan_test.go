package config

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/openinof/inof/zone"
)

const planFile = `zones:
  - {name: blue, members: [192.0.2.1, "alias:array"]}
  - {name: red, members: [192.0.2.2]}
aliases: [{name: array, members: [192.0.2.101, 192.0.2.102]}]
zone-sets: [{name: day, zones: [blue]}]
active: day
base: 0123456789abcdef
`

func TestAPlanSurvivesWritingAndReading(t *testing.T) {
	p, base, err := ParsePlan("zones.yaml", []byte(planFile), zone.Rules{})
	if err != nil || base != "0123456789abcdef" {
		t.Fatal(base, err)
	}
	if set := p.InForce(); len(set.Zones) != 1 || len(set.Zones[0].Members) != 3 {
		t.Errorf("in force %v", set)
	}
	for _, base := range []string{"", "00000000000e1234"} {
		var b bytes.Buffer
		if err := WritePlan(&b, p, base); err != nil {
			t.Fatal(err)
		}
		again, got, err := ParsePlan("zones.yaml", b.Bytes(), zone.Rules{})
		if err != nil || got != base || !again.Equal(p) {
			t.Errorf("base %q, %v, from:\n%s", got, err, &b)
		}
	}
}

func TestWhatAZoneFileNamesMustBeThere(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(planFile, "alias:array", "alias:tape", 1):  `z:2:39: zones[0].members[1]: "alias:tape": is no alias of this file`,
		strings.Replace(planFile, "[blue]}", "[blue, x]}", 1):      `z:5:39: zone-sets[0].zones[1]: "x": is no zone of this file`,
		strings.Replace(planFile, "active: day", "active: x", 1):   `active: "x": is no zone set of this file`,
		strings.Replace(planFile, "192.0.2.102", "alias:array", 1): `aliases[0].members[1]: "alias:array"`,
		planFile + "more: 1\n": "unknown key",
	} {
		if _, _, err := ParsePlan("z", []byte(text), zone.Rules{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
}

// A file is refused by what separates its entries, before a parser has taken twenty times its size.
func TestAZoneFileOfTooManyEntriesIsRefusedBeforeItIsParsed(t *testing.T) {
	var data []byte
	for _, sep := range []string{"\n", ", ", "\r", "\u2028"} {
		data = append(append(data[:0], "zones:\n  - name: blue\n    members:\n"...), strings.Repeat("      - 192.0.2.1"+sep, maxZoneEntries)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := ParsePlan("zones.yaml", data, zone.Rules{})
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "lines and commas, at most 1000000") {
			t.Errorf("%q: %.200v", sep, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 10<<20 {
			t.Errorf("%q: %d bytes were allocated", sep, took)
		}
	}
	if n := entriesOf([]byte("a,b\r\nc\n")); n != 3 {
		t.Errorf("%d entries, want 3", n)
	}
}
