package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every claim of docs/security.md names a test that there is, in the room it names.
func TestTheClaimsOnSecurityNameTheirTests(t *testing.T) {
	const root = "../.."
	doc, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	tests := func(room string) string {
		if text, ok := sources[room]; ok {
			return text
		}
		files, err := filepath.Glob(filepath.Join(root, room, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no tests", room)
		}
		var all strings.Builder
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
		sources[room] = all.String()
		return all.String()
	}
	room, n := "", 0
	for _, m := range regexp.MustCompile("`(?:\\./(\\S+) )?((?:Test|Benchmark)[A-Z]\\w+)`").FindAllStringSubmatch(string(doc), -1) {
		if m[1] != "" {
			room = m[1]
		}
		n++
		if !strings.Contains(tests(room), "func "+m[2]+"(") {
			t.Errorf("%s has no %s", room, m[2])
		}
	}
	if n < 20 {
		t.Errorf("only %d claims name a test", n)
	}
}
