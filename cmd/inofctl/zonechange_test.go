package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// zoned is a reflector with one zone, and its socket.
func zoned(t *testing.T) (*apitest.Source, *apitest.Zones, string) {
	t.Helper()
	src := apitest.Sample()
	p := &change.Plan{}
	z, err := change.ParseZone([]string{"192.0.2.1", "192.0.2.2"})
	if err != nil {
		t.Fatal(err)
	}
	p.PutZone("blue", z)
	zones := src.UseZones(p)
	zones.Review.Impact = &zone.Impact{IO: zone.IOUnknown, PairsBefore: 4}
	socket, _ := apitest.Serve(t, src)
	return src, zones, socket
}

func ok(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := call(t, args...)
	if code != 0 {
		t.Fatalf("inofctl %s: exit code %d, %s", strings.Join(args, " "), code, errs)
	}
	return out
}

func replace(t *testing.T, path, old, new string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(b), old) {
		t.Fatalf("%q is not in\n%s", old, b)
	}
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(b), old, new, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestACandidateFromItsFirstLineToItsConfirmation(t *testing.T) {
	t.Setenv("EDITOR", "")
	_, zones, socket := zoned(t)
	file := filepath.Join(t.TempDir(), "new.yaml")
	at := []string{"--socket", socket}
	run := func(args ...string) string { return ok(t, append(append([]string{"zone"}, args...), at...)...) }
	if out := run("edit", file); !strings.Contains(out, "is version 1; next: inofctl zone check") {
		t.Errorf("edit: %s", out)
	}
	replace(t, file, "      - 192.0.2.2\n", "      - 192.0.2.3\n")
	if out := run("check", file); out != "good, on version 1; 2 change(s)\n" {
		t.Errorf("check: %s", out)
	}
	if out := run("diff", file); out != "- member 192.0.2.2 of zone blue\n+ member 192.0.2.3 of zone blue\n" {
		t.Errorf("diff: %s", out)
	}
	if out := run("impact", file); !strings.Contains(out, "4 now, 0 gained, 0 lost") || !strings.Contains(out, "unknown") {
		t.Errorf("impact: %s", out)
	}
	if out := run("commit", file, "--confirm", "10m", "--comment", "rack 4"); !strings.Contains(out, "version 2 is in force until ") {
		t.Errorf("commit: %s", out)
	}
	if code, _, errs := call(t, append([]string{"zone", "commit", file}, at...)...); code != 1 || !strings.Contains(errs, "waits for its confirmation") {
		t.Errorf("commit while it waits: %d %s", code, errs)
	}
	if out := run("extend", "1h"); !strings.Contains(out, "version 2 is in force until "+apitest.Now.Add(time.Hour).Local().Format(time.RFC3339)) || zones.Book.Last().Number != 2 {
		t.Errorf("extend: %s", out)
	}
	for _, bad := range []string{"1s", "25h", "soon"} {
		if code, _, errs := call(t, append([]string{"zone", "extend", bad}, at...)...); code != exitUsage || !strings.Contains(errs, "is no time from 5s to 24h") {
			t.Errorf("extend %s: %d %s", bad, code, errs)
		}
	}
	if out := run("confirm"); !strings.Contains(out, "version 2 is in force") || zones.Book.Pending() != nil {
		t.Errorf("confirm: %s", out)
	}
	if code, _, errs := call(t, append([]string{"zone", "extend", "1h"}, at...)...); code != 1 || !strings.Contains(errs, "no change waits for a confirmation") {
		t.Errorf("extend of nothing: %d %s", code, errs)
	}
	if code, out, _ := call(t, append([]string{"zone", "check", file}, at...)...); code != exitFinding || !strings.Contains(out, "conflict: the zones were changed since version 1") {
		t.Errorf("a candidate that is too old: %d %s", code, out)
	}
	for _, word := range []string{"diff", "impact"} {
		if code, out, _ := call(t, append([]string{"zone", word, file}, at...)...); code != exitFinding || !strings.Contains(out, "conflict: the zones were changed since version 1") {
			t.Errorf("%s of a candidate that is too old: %d %s", word, code, out)
		}
	}
	if out := run("history"); !strings.Contains(out, "rack 4") || strings.Index(out, "2  ") > strings.Index(out, "1  ") {
		t.Errorf("history: %s", out)
	}
	if out := run("show", "1"); !strings.Contains(out, "192.0.2.2") {
		t.Errorf("show: %s", out)
	}
	run("rollback", "1")
	run("alias", "set", "array", "192.0.2.101", "nqn.a", "at", "192.0.2.250")
	run("zoneset", "set", "day", "blue")
	run("zoneset", "activate", "day")
	if p := zones.Book.Plan(); p.Active != "day" || len(p.Aliases["array"]) != 2 || p.Zones["blue"].Texts()[1] != "192.0.2.2" || zones.Book.Last().Number != 6 {
		t.Errorf("in force %+v", p.Document())
	}
	if code, _, errs := call(t, append([]string{"zone", "alias", "remove", "Array"}, at...)...); code != 1 || !strings.Contains(errs, "no such alias") {
		t.Errorf("%d %s", code, errs)
	}
	if code, _, errs := call(t, append([]string{"zone", "alias", "set", "array", "alias:array"}, at...)...); code != exitUsage || !strings.Contains(errs, "no other aliases") {
		t.Errorf("an alias of an alias, which would have no members: %d %s", code, errs)
	}
	if out := run("history", "-o", "json"); strings.Count(out, `"number"`) != 6 {
		t.Errorf("history: %s", out)
	}
	for words, want := range map[string]string{"zone show ": "6\talice", "zone rollback ": "1\tzone file", "zone alias remove ": "array", "zone zoneset activate ": "day"} {
		if out := ok(t, append(append([]string{"__complete"}, strings.Fields(words)...), append(at, "")...)...); !strings.Contains(out, want) {
			t.Errorf("completion of %q: %s", words, out)
		}
	}
}

func TestAnImportIsACandidateOrNothing(t *testing.T) {
	_, zones, socket := zoned(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	names := write("map", "10:00:00:00:c9:2b:c9:0c 192.0.2.1\n50:06:01:60:3b:a0:11:22 192.0.2.101\n")
	text := write("cfgshow", "Defined configuration:\n cfg:\tday\tred\n zone:\tred\thost; 50:06:01:60:3b:a0:11:22\n alias:\thost\t10:00:00:00:c9:2b:c9:0c\nEffective configuration:\n cfg:\tday\n")
	to := filepath.Join(dir, "new.yaml")
	args := []string{"zone", "import", text, "--from", "brocade", "--map", names, "--to", to, "--socket", socket}
	if out := ok(t, args...); !strings.Contains(out, "has 1 zones, 1 aliases, 1 zone sets") {
		t.Error(out)
	}
	if code, _, errs := call(t, args...); code != 1 || !strings.Contains(errs, "exists") {
		t.Errorf("the candidate is written over: %d %s", code, errs)
	}
	ok(t, "zone", "commit", to, "--socket", socket)
	if p := zones.Book.Plan(); p.Active != "day" || len(p.Zones) != 1 {
		t.Errorf("in force %+v", p.Document())
	}
	broken := write("broken", " zone:\tred\thost\n zone:\tblue\t50:06:01:60:3b:a0:11:99\n")
	none := filepath.Join(dir, "none.yaml")
	code, _, errs := call(t, "zone", "import", broken, "--from", "brocade", "--map", names, "--to", none, "--socket", socket)
	if _, err := os.Stat(none); code != 1 || err == nil || !strings.Contains(errs, `line 1: zone red: "host" is no alias`) || !strings.Contains(errs, "line 2: zone blue: 50:06:01:60:3b:a0:11:99 is not in the map") {
		t.Errorf("%d %s, %v", code, errs, err)
	}
}

// Two reflectors have a change both, or neither.
func TestTwoReflectorsAreChangedBothOrNeither(t *testing.T) {
	a, za, socketA := zoned(t)
	b, zb, socketB := zoned(t)
	_ = a
	file := filepath.Join(t.TempDir(), "new.yaml")
	t.Setenv("EDITOR", "")
	both := func(want int, args ...string) (string, string) {
		t.Helper()
		code, out, errs := call(t, append(append([]string{"zone"}, args...), "--socket", socketA, "--also", socketB)...)
		if code != want {
			t.Fatalf("%v: exit code %d: %s", args, code, errs)
		}
		return out, errs
	}
	ok(t, "zone", "edit", file, "--socket", socketA)
	replace(t, file, "192.0.2.2", "192.0.2.3")
	both(0, "commit", file)
	if za.Book.Base() != zb.Book.Base() || za.Book.Last().Number != 2 || za.Book.Pending() != nil || zb.Book.Pending() != nil {
		t.Errorf("versions %+v and %+v", za.Book.Last(), zb.Book.Last())
	}
	// With a confirmation that the operator gives.
	next := filepath.Join(t.TempDir(), "next.yaml")
	ok(t, "zone", "edit", next, "--socket", socketA)
	replace(t, next, "192.0.2.3", "192.0.2.4")
	both(0, "commit", next, "--confirm", "10m")
	if za.Book.Pending() == nil || zb.Book.Pending() == nil {
		t.Error("nothing waits")
	}
	if out, _ := both(0, "extend", "20m"); strings.Count(out, "is in force until") != 2 || !za.Book.Pending().Deadline.Equal(zb.Book.Pending().Deadline) {
		t.Errorf("extend: %s", out)
	}
	both(0, "confirm")
	if za.Book.Pending() != nil || zb.Book.Pending() != nil {
		t.Error("it still waits")
	}
	// The second has other zones: neither is changed, and it is named.
	base := za.Book.Base()
	if _, err := zb.Book.Abort(0, change.Meta{}); err == nil {
		t.Fatal("nothing waited")
	}
	ok(t, "zone", "alias", "set", "x", "192.0.2.9", "--socket", socketB)
	last := filepath.Join(t.TempDir(), "last.yaml")
	ok(t, "zone", "edit", last, "--socket", socketA)
	replace(t, last, "192.0.2.4", "192.0.2.5")
	if _, errs := both(1, "commit", last); !strings.Contains(errs, "nothing was changed anywhere: the zones were changed since") || za.Book.Base() != base {
		t.Errorf("%s", errs)
	}
	// It does not answer: the same, by the name of its socket.
	b.SetErr(os.ErrDeadlineExceeded)
	if _, errs := both(1, "commit", last); !strings.Contains(errs, "the reflector at "+socketB+": nothing was changed anywhere") || za.Book.Base() != base || za.Book.Pending() != nil {
		t.Errorf("%s", errs)
	}
}

// Whatever answer of the second reflector is lost, and whenever, both end with the same zones:
// those from before, also where a change that was never confirmed has to end by itself.
func TestALostAnswerOfOneReflectorLeavesBothTheSame(t *testing.T) {
	for _, lost := range []string{"zoning", "check", "commit", "settle"} {
		_, za, socketA := zoned(t)
		_, zb, socketB := zoned(t)
		t.Setenv("EDITOR", "")
		file := filepath.Join(t.TempDir(), "new.yaml")
		ok(t, "zone", "edit", file, "--socket", socketA)
		replace(t, file, "192.0.2.2", "192.0.2.3")
		base := za.Book.Base()
		zb.Fail = func(call string) error {
			if call == lost {
				return os.ErrDeadlineExceeded
			}
			return nil
		}
		code, _, errs := call(t, "zone", "commit", file, "--socket", socketA, "--also", socketB)
		if code != 1 || !strings.Contains(errs, "anywhere") && !strings.Contains(errs, "everywhere") {
			t.Errorf("%s: exit code %d, %s", lost, code, errs)
		}
		if za.Book.Base() != base || za.Book.Pending() != nil {
			t.Errorf("%s: the first has version %+v, waiting %v", lost, za.Book.Last(), za.Book.Pending())
		}
		if p := zb.Book.Pending(); p != nil { // what its clock does
			if _, err := zb.Book.Abort(p.Number, change.Meta{}); err != nil {
				t.Error(err)
			}
		}
		if zb.Book.Base() != base {
			t.Errorf("%s: the second has version %+v; said was: %s", lost, zb.Book.Last(), errs)
		}
	}
}

// What replaces all zones is no way past what keeps a candidate from taking hosts apart.
func TestAFileThatIsLoadedIsACommitOfAllZones(t *testing.T) {
	_, zones, socket := zoned(t)
	file := filepath.Join(t.TempDir(), "zones.yaml")
	text := "aliases:\n  - {name: array, members: [192.0.2.9]}\nzones:\n  - {name: red, members: [192.0.2.1, \"alias:array\"]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	zones.Fail = func(call string) error {
		if call == "commit" {
			return fmt.Errorf("%w: it takes 4 of 4 pairs of hosts apart", api.ErrRefused)
		}
		return nil
	}
	if code, _, errs := call(t, "cluster", "load", file, "--socket", socket); code != 1 || !strings.Contains(errs, "4 of 4 pairs") {
		t.Errorf("a load that takes hosts apart: %d, %q", code, errs)
	}
	_, zones, socket = zoned(t)
	if out := ok(t, "cluster", "load", file, "--force", "--confirm", "10m", "--socket", socket); !strings.Contains(out, "version 2 is in force until") {
		t.Errorf("load: %s", out)
	}
	if p := zones.Book.Plan(); len(p.Zones) != 1 || len(p.Zones["red"].Aliases) != 1 || len(p.Aliases["array"]) != 1 {
		t.Errorf("in force %+v", p.Document())
	}
}
