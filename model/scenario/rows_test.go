package scenario

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each row of the table of what sources claim names a scenario or a test that is there, and every
// test that docs/model.md names is.
func TestRowsNameWhatAssertsThem(t *testing.T) {
	doc, err := os.ReadFile("../../docs/model.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	files, err := filepath.Glob("../../scenarios/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		there[strings.TrimSuffix(filepath.Base(f), ".yaml")] = true
	}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t `)
	err = filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "../.." && !strings.HasPrefix(path, "../../model") && !strings.HasPrefix(path, "../../internal"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+|[a-z0-9-]+)`")
	_, table, ok := strings.Cut(string(doc), "| mechanism | source's claim | here | tolerance |\n| --- | --- | --- | --- |\n")
	if !ok {
		t.Fatal("docs/model.md has no table of what sources claim")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range strings.Split(table, "\n") {
		found := false
		for _, m := range named.FindAllStringSubmatch(row, -1) {
			found = found || there[m[1]]
		}
		if !found {
			t.Errorf("no scenario or test asserts: %s", row)
		}
	}
	for _, m := range named.FindAllStringSubmatch(string(doc), -1) {
		if strings.HasPrefix(m[1], "Test") && !there[m[1]] {
			t.Errorf("docs/model.md names %s, which is not there", m[1])
		}
	}
}
