package daemon

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/fabric/linux"
	"github.com/openinof/inof/fabric/sonic"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/bfdd"
	"github.com/openinof/inof/internal/gnmi"
	"github.com/openinof/inof/internal/logbound"
	"github.com/openinof/inof/internal/netconf"
	"github.com/openinof/inof/internal/syslog"
	"github.com/openinof/inof/model/remote"
)

// numbered are the groups of which a daemon has several.
var numbered = regexp.MustCompile(`^(inof_dialer|inof_server|syslog)_\d+$`)

// printed gives the names of all counters that daemons print, "group counter".
func printed(t *testing.T) map[string]bool {
	all := map[string]bool{}
	add := func(group string, value any) {
		for _, name := range jsonNames(value) {
			all[numbered.ReplaceAllString(group, "${1}_N")+" "+name] = true
		}
	}
	status := func(t *testing.T, f *testFabric) {
		for _, n := range f.nodes {
			s, err := n.d.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for group, value := range s.Counters {
				if group != "dataplane" {
					add(group, value)
				}
			}
		}
	}
	synctest.Test(t, func(t *testing.T) { status(t, threeSwitches(t)) })
	synctest.Test(t, func(t *testing.T) { status(t, newClusterFabric(t, "").testFabric) })
	// What no device of these fabrics has.
	add("certificates", (&certificates{}).counters())
	add("port_guard", newPortGuard(nil).counters())
	add("http", api.DoorCounters{})
	add("gnmi", gnmi.Counters{})
	add("syslog_1", syslog.Counters{})
	add("netconf", netconf.Counters{})
	add("bfd_process", bfdd.ClientCounters{})
	add("bfd", bfd.Counters{})
	add("transport", bfd.TransportCounters{})
	add("log", logbound.Counters{})
	add("dataplane", linux.Stats{})
	add("dataplane.ports", linux.PortStats{})
	add("dataplane.sonic", sonic.Stats{})
	add("dataplane.model", remote.Stats{})
	return all
}

// jsonNames are the names of a struct's fields in JSON, or the keys of a map.
func jsonNames(value any) (names []string) {
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Map {
		for _, k := range v.MapKeys() {
			names = append(names, k.String())
		}
		return names
	}
	for _, f := range reflect.VisibleFields(v.Type()) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && tag != "" && tag != "-" {
			names = append(names, tag)
		}
	}
	return names
}

// documented gives the names in docs/counters.md, where each part of the daemon has a
// heading, and each counter a row `| `name` | what it counts |`.
func documented(t *testing.T) map[string]bool {
	doc, err := os.ReadFile("../../docs/counters.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	all := map[string]bool{}
	var groups [][]string
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, "|")
		switch {
		case strings.HasPrefix(line, "## "):
			groups = quoted.FindAllStringSubmatch(line, -1)
		case strings.HasPrefix(line, "| `"):
			name := strings.Trim(cells[1], " `")
			if len(cells) != 4 || len(strings.TrimSpace(cells[2])) < 5 {
				t.Errorf("%s: what does it count?", name)
			}
			for _, g := range groups {
				if all[g[1]+" "+name] {
					t.Errorf("%s %s is there twice", g[1], name)
				}
				all[g[1]+" "+name] = true
			}
		}
	}
	return all
}

func TestEveryCounterIsDocumented(t *testing.T) {
	found, doc := printed(t), documented(t)
	if len(found) < 200 {
		t.Errorf("only %d counters found", len(found))
	}
	for name := range found {
		if !doc[name] {
			t.Errorf("%s is not in docs/counters.md", name)
		}
	}
	for name := range doc {
		if !found[name] {
			t.Errorf("docs/counters.md has %s, which no daemon prints", name)
		}
	}
}
