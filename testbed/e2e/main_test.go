package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed"
)

// rootPrefix begins the directories of a run; the pid of the run follows, so that a
// later run can tell which ones were left by runs that were killed.
const (
	rootPrefix = "inof-e2e-"
	binSuffix  = "-bin" // of the directory with the programs
)

func TestMain(m *testing.M) {
	if err := testbed.RemoveLeftovers(rootPrefix); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
	}
	if raceDetector { // programs built with it would sleep a second before they end
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	code := m.Run()
	os.RemoveAll(labRoot() + binSuffix)
	os.Remove(labRoot()) // only when it is empty
	os.Exit(code)
}

// labRoot is the directory of this run's labs.
func labRoot() string { return testbed.OwnRoot(rootPrefix) }

// builtPrograms builds the programs once a run.
var builtPrograms = sync.OnceValues(func() (string, error) {
	dir := labRoot() + binSuffix
	args := []string{"build", "-o", dir + "/"}
	if raceDetector {
		args = append(args, "-race")
	}
	c := exec.Command("go", append(args, "./cmd/inofd", "./cmd/inofctl", "./cmd/snsd")...)
	c.Dir = filepath.Join("..", "..")
	if out, err := c.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, nil
})

// program gives the path of one of the project's programs.
func program(t testing.TB, name string) string {
	t.Helper()
	dir, err := builtPrograms()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// mustHave skips, or fails, a test for which something is missing.
func mustHave(t testing.TB, err error) {
	t.Helper()
	netnstest.Require(t, "something is missing", err)
}

// requireNetns skips a test where the kernel forbids namespaces.
func requireNetns(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	mustHave(t, testbed.Privileged())
}

// requireProgram skips a test that needs a program of another project.
func requireProgram(t testing.TB, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	mustHave(t, err)
}

// patience bounds every wait. It is far above what anything here takes, because the
// machine may be busy with other things.
const patience = 12 * time.Second

// eventually waits until cond gives nil; its last error says what was missing.
func eventually(t testing.TB, what string, cond func() error) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		err := cond()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s: %v", patience, what, err)
		}
		tick()
	}
}

// tick lets other processes work; their progress has no event to wait for here.
func tick() { <-time.After(3 * time.Millisecond) }
