package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The example files that come with the project are good.
func TestCheckOfTheShippedExamples(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "inof-password"), []byte("a password of an example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob(filepath.Join("..", "..", "docs", "examples", "*.yaml"))
	if err != nil || len(examples) < 4 {
		t.Fatalf("examples %q, %v", examples, err)
	}
	for _, file := range examples {
		var env []string
		switch filepath.Base(file) {
		case "client.yaml", "reflector.yaml": // it is not /etc/inof/password that is tested
			env = []string{"INOF_SESSION_PASSWORD_FILE=" + filepath.Join(dir, "inof-password")}
		}
		checks := [][]string{{suite.Program(t, "inofd"), "check", file}, {suite.Program(t, "inofctl"), "check", file}}
		word := "good"
		if filepath.Base(file) == "snsd.yaml" { // of a host; this one has no such ports
			checks, word = [][]string{{suite.Program(t, "snsd"), "check", file}}, "no interface eth1"
		}
		for _, args := range checks {
			o := runHere(t, env, args...)
			if o.code != 0 || o.stderr != "" || !strings.Contains(o.stdout, word) {
				t.Errorf("%s: %+v", strings.Join(args, " "), o)
			}
		}
	}
}

const brokenConfig = `device:
  id: 192.0.2.999
  nam: x
  roles: [client, spine]
ports:
  access: ["eth[0-", eth1, eth1]
lldp:
  interval: 30
  ttl: 10s
session:
  password-env: INOF_E2E_PASSWORD
  keepalive: 5s
  hold: 1s
notify:
  max-in-flight: 5000
surprise: true
`

// Every error of a broken file is told, with its line, the value, and what is allowed.
func TestCheckTellsEveryErrorWithItsLine(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "broken.yaml")
	zones := filepath.Join(dir, "zones.yaml")
	for file, text := range map[string]string{conf: brokenConfig, zones: brokenZones} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		file string
		want [][]string
	}{
		{conf, [][]string{
			{":2:", "device.id", "192.0.2.999", "not an IP address", "allowed"},
			{":3:", "device.nam", "unknown key", `did you mean "name"`},
			{":4:", "device.roles", "spine", "is not a role", "reflector, client"},
			{":6:", "ports.access[0]", "eth[0-", "not a valid glob"},
			{":6:", "ports.access[2]", "eth1", "listed twice"},
			{":8:", "lldp.interval", "30", "no unit"},
			{":9:", "lldp.ttl", "10s", "not above lldp.interval"},
			{":11:", "session.password-env", "7 characters", "8 or more"},
			{":13:", "session.hold", "1s", "less than three times session.keepalive", "15s..1h"},
			{":15:", "notify.max-in-flight", "5000", "too large", "1..1000"},
			{":16:", "surprise", "unknown key", "device, "},
			{"client.reflectors", "is missing"},
		}},
		{zones, [][]string{
			{":5:", "zones[1].members[0]", "192.0.2.300", "allowed"},
			{":7:", "zones[1].members[2]", "192.0.2.9-192.0.2.1", "allowed"},
		}},
	} {
		o := runHere(t, []string{"INOF_E2E_PASSWORD=seven77"}, suite.Program(t, "inofd"), "check", c.file)
		if o.code != 1 || o.stdout != "" {
			t.Errorf("%s: %+v", c.file, o)
		}
		lines := strings.Split(strings.TrimSpace(o.stderr), "\n")
		for _, words := range c.want {
			if !hasLine(o.stderr, append(words, c.file)) {
				t.Errorf("no line with %q in:\n%s", words, o.stderr)
			}
		}
		if len(lines) != len(c.want) {
			t.Errorf("%d lines, want %d:\n%s", len(lines), len(c.want), o.stderr)
		}
		// The tool says the same, and how many there are.
		o = runHere(t, []string{"INOF_E2E_PASSWORD=seven77"}, suite.Program(t, "inofctl"), "check", c.file)
		for _, words := range c.want {
			if o.code != 1 || !hasLine(o.stderr, append(words, c.file)) {
				t.Errorf("inofctl: no line with %q in:\n%s", words, o.stderr)
			}
		}
	}
	// The daemon itself refuses to start with the same words.
	o := runHere(t, []string{"INOF_E2E_PASSWORD=seven77"}, suite.Program(t, "inofd"), "run", "-c", conf)
	if o.code != 1 || !hasLine(o.stderr, []string{conf, ":15:", "5000"}) {
		t.Errorf("inofd run: %+v", o)
	}
	o = runHere(t, nil, suite.Program(t, "inofd"), "run", "-c", filepath.Join(dir, "nowhere.yaml"))
	o.failed(t, "inofd run without a file", "nowhere.yaml", "no such file")
}
