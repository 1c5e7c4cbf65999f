package query

import (
	"os"
	"strings"
	"testing"
)

// What can be asked for has a name and a path of its own, each filter once, and stands in
// docs/operations.md.
func TestEveryQueryIsToldApartAndDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range All {
		q := &All[i]
		if q.Short == "" || seen["show "+q.Name] || seen["/v1/"+q.Path] {
			t.Errorf("%s, /v1/%s: not declared, or declared twice", q.Name, q.Path)
		}
		seen["show "+q.Name], seen["/v1/"+q.Path] = true, true
		row := ""
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "GET /") && strings.Contains(line, "/v1/"+q.Path+"`") {
				row = line
			}
		}
		filters := q.Filters
		if q.Arg != nil {
			filters = append([]Filter{*q.Arg}, filters...)
		}
		names := map[string]bool{}
		for _, f := range filters {
			if names[f.Name] {
				t.Errorf("%s: filter %s is declared twice", q.Name, f.Name)
			}
			names[f.Name] = true
			if !strings.Contains(row, "`"+f.Name+"`") {
				t.Errorf("docs/operations.md does not say that /v1/%s has the filter %s", q.Path, f.Name)
			}
		}
		if row == "" {
			t.Errorf("docs/operations.md does not have /v1/%s", q.Path)
		}
	}
}
