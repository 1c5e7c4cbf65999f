package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// path makes a PATH with some of this machine's programs and with scripts of the test.
func path(t *testing.T, programs []string, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range programs {
		at, err := exec.LookPath(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, filepath.Join(dir, p)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return "PATH=" + dir
}

// What is missing is named in one line, before anything is built; as root on Debian it
// is installed.
func TestNeedsNamesOrInstallsWhatIsMissing(t *testing.T) {
	base := []string{"bash", "sed", "dirname"}
	goes := "echo go9.9"
	user, root := "echo 1000", "echo 0"
	for _, c := range []struct {
		name    string
		scripts map[string]string
		want    string
		ok      bool
	}{
		{"nothing is missing", map[string]string{"go": goes, "ip": "", "id": user}, "", true},
		{"no Go", map[string]string{"ip": "", "id": user}, "is missing: the README says where to get it", false},
		{"a Go that is too old", map[string]string{"go": "echo go.mod requires more >&2; exit 1", "ip": "", "id": user}, "go.mod requires more (the README", false},
		{"a user", map[string]string{"go": goes, "id": user, "apt-get": ""}, "missing: iproute2; as root: apt-get install -y --no-install-recommends iproute2", false},
		{"no Debian", map[string]string{"go": goes, "id": root}, "missing: iproute2; as root: ", false},
		{"root", map[string]string{"go": goes, "id": root, "apt-get": ""}, "missing: iproute2; installing: apt-get install", true},
		{"no network", map[string]string{"go": goes, "id": root, "apt-get": "echo one; echo cannot fetch; exit 100"}, "failed: cannot fetch", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("bash", "needs", "go", "ip")
			cmd.Env = []string{path(t, base, c.scripts)}
			out, err := cmd.CombinedOutput()
			last := strings.TrimSuffix(string(out[strings.LastIndex(strings.TrimSuffix(string(out), "\n"), "\n")+1:]), "\n")
			if ok := err == nil; ok != c.ok || !strings.Contains(last, c.want) || c.want == "" && last != "" {
				t.Errorf("%v, %q, want %q", err, out, c.want)
			}
			if lines := strings.Count(string(out), "\n"); lines > 1 && c.name != "no network" {
				t.Errorf("%d lines: %s", lines, out)
			}
		})
	}
}

// A setting in the user's shell does not reach the tests; what steers tests does.
func TestVariablesOfAUserDoNotReachTheTests(t *testing.T) {
	cmd := exec.Command("make", "-s", "-C", "..", "--no-print-directory", "--eval", "show: ; @env | grep ^INOF_ | sort", "show")
	cmd.Env = append(os.Environ(), "INOF_LOG_LEVEL=debug", "INOF_MODEL_FABRIC=x", "INOF_VM_DIR=/vm", "INOF_BENCH_TRIALS=3")
	out, err := cmd.CombinedOutput()
	for _, w := range []struct {
		text  string
		there bool
	}{{"INOF_VM_DIR=/vm\n", true}, {"INOF_BENCH_TRIALS=3\n", true}, {"INOF_LOG_LEVEL", false}, {"INOF_MODEL_FABRIC", false}} {
		if strings.Contains(string(out), w.text) != w.there {
			t.Errorf("%s there: %t, %v\n%s", w.text, !w.there, err, out)
		}
	}
}

// Modules within this one are tested with all packages of it, and only then.
func TestModulesWithinThisOneAreTestedToo(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"scripts", "dashboard/build", "testbed/a", "testbed/b/c"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"test", "modules"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "scripts", name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"dashboard/build/go.mod", "testbed/a/go.mod", "testbed/b/c/go.mod"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		script, pkgs, want string
		status             int
	}{
		{"echo $PWD $*", "./...", "DIR test -v ./...\n== DIR/dashboard/build\nDIR/dashboard/build test -v ./...\n== DIR/testbed/a\nDIR/testbed/a test -v ./...\n== DIR/testbed/b/c\nDIR/testbed/b/c test -v ./...\n", 0},
		{"echo $PWD $*", "./bfd", "DIR test -v ./bfd\n", 0},
		{"case $PWD in */a) exit 3;; esac", "./...", "== DIR/dashboard/build\n== DIR/testbed/a\n== DIR/testbed/b/c\n", 3},
	} {
		cmd := exec.Command("scripts/test", "-v", c.pkgs)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), path(t, nil, map[string]string{"go": c.script})+":"+os.Getenv("PATH"), "GO=go")
		out, err := cmd.CombinedOutput()
		want := strings.ReplaceAll(c.want, "DIR", dir)
		if status := cmd.ProcessState.ExitCode(); status != c.status || string(out) != want {
			t.Errorf("%v, %s\nwant status %d,\n%s", err, out, c.status, want)
		}
	}
}

// The list stands behind what go test prints, and its exit status is go test's.
func TestTheTestsEndWithWhatWasSkipped(t *testing.T) {
	for _, c := range []struct {
		name, script, want string
		status             int
	}{
		{"nothing", "echo ok $1 $2", "ok test -v\n", 0},
		{"some", `echo FAIL; printf 'bfd\tTestB\tbird is not installed\tbird2\nbfd\tTestC\tbird is not installed\tbird2\ne2e\tTestA\tnft is not installed\tnftables\nmodel\tTestM\tmake model\tmake model\n' >>$INOF_SKIPPED; exit 3`,
			"FAIL\n\nskipped: 4 tests\n    2  bird is not installed: bfd\n    1  nft is not installed: e2e\n    1  make model: model\n" +
				"to get them: apt-get install --no-install-recommends bird2 nftables\n", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("bash", "test", "-v")
			cmd.Env = append(os.Environ(), path(t, nil, map[string]string{"go": c.script})+":"+os.Getenv("PATH"), "GO=go")
			out, err := cmd.CombinedOutput()
			if status := cmd.ProcessState.ExitCode(); status != c.status || string(out) != c.want {
				t.Errorf("%v, %s\nwant status %d,\n%s", err, out, c.status, c.want)
			}
		})
	}
}
