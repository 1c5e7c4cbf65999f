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
	for _, do := range []string{doRaft, doStatus, doChange, doConfigure} {
		if row := fmt.Sprintf("\n| `%s` |", do); !strings.Contains(string(text), row) {
			t.Errorf("no row %q", row)
		}
	}
	if !strings.Contains(string(text), "`"+ALPN+"`") {
		t.Errorf("no word of %s", ALPN)
	}
	if !strings.Contains(string(text), "- Bound ----|") {
		t.Error("the diagram of a session begins without Bound")
	}
}
