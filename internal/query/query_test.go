package query

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the rows of docs/operations.md")

// What can be asked for has a name and a path of its own, each filter once, and its row in
// docs/operations.md: run with -update after a change.
func TestEveryQueryIsToldApartAndDocumented(t *testing.T) {
	const doc = "../../docs/operations.md"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	seen, at := map[string]bool{}, 0
	for i := range All {
		q := &All[i]
		if q.Short == "" || seen["show "+q.Name] || seen["/v1/"+q.Path] {
			t.Errorf("%s, /v1/%s: not declared, or declared twice", q.Name, q.Path)
		}
		seen["show "+q.Name], seen["/v1/"+q.Path] = true, true
		names := map[string]bool{}
		for _, f := range q.all() {
			if names[f.Name] {
				t.Errorf("%s: filter %s is declared twice", q.Name, f.Name)
			}
			names[f.Name] = true
		}
		row, begins := rowOf(q), "| `GET /v1/"+q.Path+"` |"
		n := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, begins) })
		switch {
		case n >= 0 && lines[n] == row:
		case !*update:
			t.Errorf("docs/operations.md does not have: %s", row)
		case n >= 0:
			lines[n] = row
		default:
			n = at
			lines = slices.Insert(lines, n, row)
		}
		at = n + 1
	}
	if *update {
		if err := os.WriteFile(doc, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// rowOf is the line of docs/operations.md.
func rowOf(q *Query) string {
	text := q.Short
	for i, f := range q.all() {
		if i == 0 {
			text += "; filters:"
		}
		text += " `" + f.Name + "`"
	}
	return fmt.Sprintf("| `GET /v1/%s` | %s |", q.Path, text)
}
