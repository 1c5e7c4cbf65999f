package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
)

// brokenZones has two errors in the middle, in lines 5 and 7.
const brokenZones = `zones:
  - {name: oltp, members: [192.0.2.11, 192.0.2.12, 192.0.2.21]}
  - name: middle
    members:
      - 192.0.2.300
      - 192.0.2.5
      - 192.0.2.9-192.0.2.1
  - {name: last, members: [192.0.2.7]}
`

func (f *fab) zoneFile() string { return filepath.Join(f.lab.NodeDir("spine"), "state", "zones.yaml") }

func (f *fab) putZones(text string) {
	f.t.Helper()
	f.overwrite("spine", "state/zones.yaml", text)
}

// A reflector whose zone file has an error at the start uses the last good copy and
// says so; without one it does not start.
func TestAZoneFileWithAnErrorAtTheStart(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "zonestart"})
	f.kept()
	since := f.marks("i1", "i2", "t1")
	f.stop("spine")
	f.putZones(brokenZones)
	f.start("spine")
	for _, n := range []string{"tor1", "tor2"} {
		f.established(n)
	}
	words := []string{f.zoneFile() + ":5:", "192.0.2.300"}
	f.awaitEvent("spine", 0, "error", append(words, f.zoneFile()+":7:", "192.0.2.9-192.0.2.1", "the last good copy", "is in force instead")...)
	if a, b := f.counter("spine", "zone_file.load_errors"), f.counter("spine", "zone_file.fallbacks"); a != 1 || b != 1 {
		t.Errorf("%d load errors, %d fallbacks, want 1 and 1", a, b)
	}
	o := f.ctl("spine", "show", "status")
	if o.code != 0 || !hasLine(o.stdout, append(words, "zone file is not in force")) {
		t.Errorf("show status: %+v", o)
	}
	f.ctl("spine", "zone", "add", "new", "192.0.2.1").failed(t, "zone add beside a broken file", append(words, "repair it")...)
	f.stillTells()
	f.onlyFlap("zone file broken at the start", since)

	// Repaired, it is in force at once.
	f.putZones(oltpZone + "  - {name: last, members: [192.0.2.7]}\n")
	f.reload("spine")
	if w := f.status("spine").Warnings.Own(); len(w) != 0 || f.status("spine").Counts.Zones != 2 {
		t.Errorf("warnings %q, want none", w)
	}
	since = f.marks("i1", "i2", "t1")
	f.stillTells()

	// Without a last good copy it is better not to start.
	f.stop("spine")
	f.putZones(brokenZones)
	if err := os.Remove(filepath.Join(f.lab.NodeDir("spine"), "state", "zones.last-good.yaml")); err != nil {
		t.Fatal(err)
	}
	p := f.launchIn("spine", nil, suite.Program(t, "inofd"), "run", "-c", filepath.Join(f.lab.NodeDir("spine"), "inofd.yaml"))
	if code := p.exit(); code != 1 || !hasLine(p.stderr(), words) || !hasLine(p.stderr(), []string{f.zoneFile() + ":7:", "192.0.2.9-192.0.2.1"}) {
		t.Errorf("exit code %d, it said %q", code, p.stderr())
	}
	f.putZones(oltpZone)
	f.start("spine")
	for _, n := range []string{"tor1", "tor2"} {
		f.established(n)
	}
	f.onlyFlap("no reflector for a while", since)
	f.stillTells()
}

// An error in the zone file at SIGHUP changes nothing, and every error is told with
// its line.
func TestAZoneFileWithAnErrorAtAReload(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "zonereload"})
	since, after, before := f.marks("i1", "i2", "t1"), f.lastEvent("spine"), f.peer("tor1")
	f.putZones(brokenZones)
	f.reload("spine")
	f.awaitEvent("spine", after, "error", "zones stay as they were", f.zoneFile()+":5:", "192.0.2.300", f.zoneFile()+":7:", "192.0.2.9-192.0.2.1")
	if a, b := f.counter("spine", "zone_file.load_errors"), f.counter("spine", "config.reload_errors"); a != 1 || b != 1 {
		t.Errorf("%d load errors, %d reload errors, want 1 and 1", a, b)
	}
	f.stillTells()
	f.onlyFlap("zone file broken at a reload", since)
	if p := f.peer("tor1"); !p.Since.Equal(before.Since) {
		t.Errorf("the session was %+v and is %+v", before, p)
	}
	// A file that takes i2 out of the zone is told to both sides.
	since = f.marks("i1", "i2", "t1")
	f.putZones("zones:\n  - {name: oltp, members: [192.0.2.11, 192.0.2.21]}\n")
	f.reload("spine")
	f.awaitNotice("i2", since["i2"], notice{init2, target, "inactive", "zone-changed"})
	f.awaitNotice("t1", since["t1"], notice{target, init2, "inactive", "zone-changed"})
	f.quiet("i1", since["i1"], notice{init1, init2, "inactive", "zone-changed"})
	f.putZones(oltpZone)
	f.reload("spine")
	f.awaitNotice("i2", since["i2"], notice{init2, target, "active", "none"})
	f.stillTells()
}

// What operators change with inofctl is in force at once and survives a restart,
// also a sudden one.
func TestZoneCommandsSurviveARestart(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "zonectl"})
	since := f.marks("i1", "i2", "t1")
	change := func(args ...string) {
		t.Helper()
		if o := f.ctl("spine", append([]string{"zone"}, args...)...); o.code != 0 {
			t.Fatalf("zone %s: %+v", strings.Join(args, " "), o)
		}
	}
	change("member", "remove", "oltp", init2)
	f.awaitNotice("i2", since["i2"], notice{init2, target, "inactive", "zone-changed"})
	f.awaitNotice("t1", since["t1"], notice{target, init2, "inactive", "zone-changed"})
	change("add", "blue", "198.51.100.1-198.51.100.9", "nqn.2026-11.org.example:t9", "port:"+tor1ID+"/eth5")
	change("add", "Zone with spaces: #1", "2001:db8::/64")
	change("add", "gone")
	change("remove", "gone")
	change("member", "add", "blue", init2, target)
	f.awaitNotice("i2", since["i2"], notice{init2, target, "active", "none"})
	f.awaitNotice("t1", since["t1"], notice{target, init2, "active", "none"})

	want := f.zones("spine")
	names := []string{}
	for _, z := range want {
		names = append(names, z.Name)
	}
	if !slices.Equal(names, []string{"Zone with spaces: #1", "blue", "default", "oltp"}) {
		t.Errorf("zones are %q", names)
	}
	f.keptPairs(3, 1)
	since = f.marks("i1", "i2", "t1")
	for _, end := range []func(string){f.kill, f.stop} {
		end("spine")
		f.start("spine")
		for _, n := range []string{"tor1", "tor2"} {
			f.established(n)
		}
		labtest.Eventually(t, "the same zones after a restart", func() error {
			if got := f.zones("spine"); fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Errorf("zones are %+v, want %+v", got, want)
			}
			return nil
		})
	}
	f.stillTells()
	f.onlyFlap("restarts of the reflector", since)

	// What cannot be is refused, with what was wrong.
	f.ctl("spine", "zone", "add", "blue").failed(t, "zone add", `"blue"`, "exists")
	f.ctl("spine", "zone", "remove", "nowhere").failed(t, "zone remove", `"nowhere"`, "not found")
	f.ctl("spine", "zone", "member", "remove", "oltp", "192.0.2.200").failed(t, "member remove", "192.0.2.200", "oltp", "not found")
	f.ctl("spine", "zone", "add", "default").failed(t, "zone add", "default")
	f.ctl("spine", "zone", "add", strings.Repeat("x", 64)).failed(t, "zone add", "64 bytes")
	f.ctl("tor1", "zone", "add", "blue").failed(t, "zone add at a client", "device "+tor1ID+" is a client", "on its reflector")
	if n := f.counter("spine", "zone_file.refused"); n != 5 {
		t.Errorf("%d refused changes are counted, want 5", n)
	}
}

func (f *fab) zones(node string) []api.Zone {
	f.t.Helper()
	var zs []api.Zone
	if o := f.ctl(node, "show", "zone", "-o", "json"); json.Unmarshal([]byte(o.stdout), &zs) != nil {
		f.t.Fatalf("show zone: %+v", o)
	}
	return zs
}
