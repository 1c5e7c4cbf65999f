package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Each metric is in docs/hosts.md, and no other.
func TestTheMetricsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, name := range regexp.MustCompile("`(snsd_[a-z_]+)`").FindAllStringSubmatch(string(b), -1) {
		said[name[1]] = true
	}
	out := make(chan *prometheus.Desc, 100)
	collector{}.Describe(out)
	close(out)
	n := 0
	for d := range out {
		_, name, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		if n++; !said[name] {
			t.Errorf("%s is missing", name)
		}
	}
	if len(said) != n {
		t.Errorf("%d are said, there are %d: %v", len(said), n, said)
	}
}
