package query

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
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

// A table shows of a text that a neighbour chose what fits in a line.
func TestLongTextsAreClipped(t *testing.T) {
	for text, want := range map[string]string{"": "", "short": "short", "two\n lines\there": "two lines…", "äöüäöüäöüä": "äöüäöüäöüä", "äöüäöüäöüäö": "äöüäöüäöü…"} {
		if got := Clip(text, 10); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Who is read slower than it sends is told so below the sessions.
func TestASessionThatIsSlowedSaysSo(t *testing.T) {
	now := time.Unix(1000, 0)
	since := now.Add(-5 * time.Second)
	want := []string{"it sends more records than a device may, and has been read slower for 5s"}
	if got := peerNotes(&Page{Now: now}, &api.Peer{SlowedSince: &since}); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := peerNotes(&Page{Now: now}, &api.Peer{}); len(got) != 0 {
		t.Errorf("%q", got)
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

func TestAPeerIsFoundByItsAddressInEitherForm(t *testing.T) {
	for _, row := range []api.Peer{{Device: netip.MustParseAddr("192.0.2.1")}, {Address: "192.0.2.1:19517"}, {Address: "[::ffff:192.0.2.1]:19517"}} {
		for want, found := range map[string]bool{"192.0.2.1": true, "::ffff:192.0.2.1": true, "::ffff:192.0.2.2": false} {
			if got := ofDevice(want)(&row); got != found {
				t.Errorf("%s, peer %v at %q: found %t, want %t", want, row.Device, row.Address, got, found)
			}
		}
	}
}
