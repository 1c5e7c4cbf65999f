package health

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
)

// Reported is what a client says is wrong there.
type Reported struct {
	Device   netip.Addr
	Warnings []wire.ReportedWarning
}

// Report is what this device tells its reflectors: what is wrong here, not at its clients.
// What is beyond the limits of a message is left out, the least urgent first.
func Report(list api.Warnings) *wire.Report {
	m := &wire.Report{}
	for _, w := range list.Own() {
		if len(m.Warnings) < wire.MaxReportWarnings {
			m.Warnings = append(m.Warnings, wire.ReportedWarning{Rule: w.Rule, Text: clean(w.Text, wire.MaxReportText)})
		}
	}
	return m
}

// clean makes a text fit for a message: printable UTF-8 of at most so many bytes.
func clean(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// reported are the warnings of clients: one for all that say the same, in the order of the
// rules, those that this device does not know last.
func reported(f *Facts, rules []Rule) (list api.Warnings) {
	do := map[string]string{}
	order := map[string]int{}
	for i, r := range rules {
		do[r.Name], order[r.Name] = r.Do, i-len(rules)
	}
	said := map[wire.ReportedWarning][]netip.Addr{}
	for _, x := range f.Reports {
		for _, w := range x.Warnings {
			if !slices.Contains(said[w], x.Device) {
				said[w] = append(said[w], x.Device)
			}
		}
	}
	for w, devices := range said {
		slices.SortFunc(devices, netip.Addr.Compare)
		names := make([]string, len(devices))
		for i, d := range devices {
			names[i] = d.String()
		}
		what := "see it there: inofctl show status"
		if do[w.Rule] != "" {
			what = "there: " + do[w.Rule]
		}
		list = append(list, api.Warning{Rule: w.Rule, Text: someOf(names) + ": " + w.Text, Do: what, Devices: devices})
	}
	slices.SortFunc(list, func(a, b api.Warning) int {
		return cmp.Or(cmp.Compare(order[a.Rule], order[b.Rule]), a.Devices[0].Compare(b.Devices[0]), cmp.Compare(a.Text, b.Text))
	})
	return few(list)
}

// few keeps the first warnings of each rule and counts the rest.
func few(list api.Warnings) (out api.Warnings) {
	for i := 0; i < len(list); {
		n := i
		for n < len(list) && list[n].Rule == list[i].Rule {
			n++
		}
		keep := min(n, i+mostNamed)
		out = append(out, list[i:keep]...)
		if keep < n {
			rest := api.Warning{Rule: list[i].Rule, Text: fmt.Sprintf("%d more warnings of clients like these", n-keep), Do: list[i].Do}
			for _, w := range list[keep:n] {
				rest.Devices = append(rest.Devices, w.Devices...)
			}
			slices.SortFunc(rest.Devices, netip.Addr.Compare)
			rest.Devices = slices.Compact(rest.Devices)
			out = append(out, rest)
		}
		i = n
	}
	return out
}
