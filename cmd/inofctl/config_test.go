package main

import (
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
)

func TestAConfigurationIsLookedAtCommittedAndUndone(t *testing.T) {
	src := apitest.Sample()
	socket, _ := apitest.Serve(t, src)
	src.ConfigValue = api.ConfigReview{File: "/etc/inof/inofd.yaml", Changes: []api.ConfigChange{{Key: "lldp.interval", Old: "30s", New: "20s"}, {Key: "lldp.max-hosts", Old: "1", New: "2", Restart: true}}}
	if out := ok(t, "config", "check", "--socket", socket); out != "/etc/inof/inofd.yaml: good, 2 setting(s) differ from what is in force, 1 of them need a restart\n" {
		t.Error(out)
	}
	if out := ok(t, "config", "diff", "--socket", socket); !strings.Contains(out, "lldp.interval   30s       20s   at commit") || !strings.Contains(out, "restart") {
		t.Error(out)
	}
	until := apitest.Now.Add(time.Minute)
	src.ConfigValue.Confirm = &until
	if out := ok(t, "config", "commit", "--confirm", "1m", "--force", "--socket", socket); !strings.Contains(out, "is in force\nuntil ") {
		t.Error(out)
	}
	src.ConfigValue.Confirm = nil
	ok(t, "config", "confirm", "--socket", socket)
	src.ConfigValue.Back = true
	if out := ok(t, "config", "undo", "--socket", socket); !strings.Contains(out, "the configuration before /etc/inof/inofd.yaml is in force") {
		t.Error(out)
	}
	if got := strings.Join(src.Changes(), "; "); got != "commit config force=true; confirm config; undo config" {
		t.Errorf("asked for %q", got)
	}
	src.ConfigValue.Problems = []string{"inofd.yaml:3: bad"}
	if code, out, _ := call(t, "config", "check", "--socket", socket); code != exitFinding || !strings.Contains(out, "error: inofd.yaml:3: bad") {
		t.Errorf("%d %s", code, out)
	}
	src.ConfigValue.Changes = nil
	if code, out, _ := call(t, "config", "diff", "--socket", socket); code != exitFinding || out != "error: inofd.yaml:3: bad\n" {
		t.Errorf("diff of a file with an error: %d %s", code, out)
	}
	if code, _, errs := call(t, "config", "commit", "--confirm", "1s", "--socket", socket); code != 1 || !strings.Contains(errs, "allowed are 0 and 5s..24h") {
		t.Errorf("%d %s", code, errs)
	}
}
