package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// docs/architecture.md is read before anything else: what it names is there.
func TestTheHouseOnOnePageNamesFilesThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	doc, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`((?:[a-z]+/)+[a-z_]+\\.go)`").FindAllSubmatch(doc, -1)
	if len(names) < 15 {
		t.Errorf("only %d files are named", len(names))
	}
	for _, n := range names {
		if _, err := os.Stat(filepath.Join(root, string(n[1]))); err != nil {
			t.Error(err)
		}
	}
}
