package telemetry

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/openinof/inof/internal/netnstest"
)

const dist = "../../dist/"

// expressions are those of the alerts and of the dashboard.
func expressions(t *testing.T) (list []string) {
	t.Helper()
	read := func(path string) []byte {
		data, err := os.ReadFile(dist + path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(read("prometheus/rules.yaml"), &rules); err != nil {
		t.Fatal(err)
	}
	tests := string(read("prometheus/rules_test.yaml"))
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			list = append(list, r.Expr)
			if !strings.Contains(tests, "alertname: "+r.Alert+"\n") {
				t.Errorf("no test of the alert %s fires it", r.Alert)
			}
		}
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read("grafana/inof.json"), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, x := range p.Targets {
			list = append(list, x.Expr)
		}
	}
	return list
}

// What alerts and dashboard ask for is in the table.
func TestRulesAndDashboardUseMetricsThatThereAre(t *testing.T) {
	known := map[string]bool{"inof_metrics_dropped_series": true}
	for _, l := range Leaves() {
		name := namespace + l.Metric.Name
		known[name] = true
		if l.Type == TypeHistogram {
			known[name+"_bucket"] = true
		}
	}
	list := expressions(t)
	if len(list) < 30 {
		t.Fatalf("%d expressions", len(list))
	}
	for _, expr := range list {
		for _, name := range regexp.MustCompile(`inof_[a-z_]+`).FindAllString(expr, -1) {
			if !known[name] {
				t.Errorf("there is no %s: %s", name, expr)
			}
		}
	}
}

// Prometheus's own tool reads and tests the alerts, and reads each expression of the dashboard.
func TestPromtoolTakesRulesAndDashboard(t *testing.T) {
	netnstest.Programs(t, "promtool")
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	run("check", "rules", dist+"prometheus/rules.yaml")
	run("test", "rules", dist+"prometheus/rules_test.yaml")
	text := "groups:\n- name: expressions\n  rules:\n"
	for i, expr := range expressions(t) {
		expr = strings.NewReplacer("$instance", ".*").Replace(expr)
		text += fmt.Sprintf("  - {record: 'x:%d', expr: %q}\n", i, expr)
	}
	path := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run("check", "rules", path)
}
