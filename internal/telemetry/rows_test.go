package telemetry

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/openinof/inof/internal/setting"
)

// Rows are the lines of docs/telemetry.md.
func Rows() (out []string) {
	for _, l := range Leaves() {
		metric := "-"
		if m := &l.Metric; m.Name != "" {
			labels := strings.Fields(m.Labels)
			if m.Fixed != "" {
				labels = append(labels, m.Fixed)
			}
			if m.As != "" {
				labels = append(labels, m.As)
			}
			metric = "`" + namespace + m.Name
			if len(labels) > 0 {
				metric += "{" + strings.Join(labels, ",") + "}"
			}
			metric += "`"
		}
		least := "-"
		if l.Least > 0 {
			least = setting.Duration(l.Least)
		}
		typ := l.Type
		if l.Many {
			typ = "leaf-list of " + typ
		}
		if l.Set {
			typ += ", rw"
		}
		out = append(out, fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s | %s | %s |", l.Path, typ, cmp.Or(l.Unit, "-"), l.Class, l.Source, least, l.Doc, metric))
	}
	return out
}
