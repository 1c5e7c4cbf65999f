package cluster

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The document says what each request between members has.
func TestTheDocumentHasTheBodyOfEachRequest(t *testing.T) {
	text, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	for o := range op(255) {
		row := fmt.Sprintf("\n| %d %s |", o, map[op]string{opAppend: "append", opVote: "vote", opPreVote: "pre-vote", opSnapshot: "snapshot", opTimeout: "timeout now",
			opChange: "change", opStatus: "status", opConfigure: "configure"}[o])
		if known := !strings.HasSuffix(row, "  |"); known && !strings.Contains(string(text), row) {
			t.Errorf("no row %q", row)
		}
	}
	if !strings.Contains(string(text), "- Bound ----|") {
		t.Error("the diagram of a session begins without Bound")
	}
}
