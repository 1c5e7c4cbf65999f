// Package labtest is what tests of whole labs share: the project's programs, built once a
// run, what has to be there, waiting for a condition, and certificates.
package labtest

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

// Run is the labs of a test binary. Its name begins the directories of a run; the pid of
// the run follows, so that a later run can tell which ones were left by runs that were
// killed.
type Run struct {
	name  string
	built func() error
}

// New is the run of the test binary whose directories begin with a name.
func New(name string) *Run {
	r := &Run{name: "inof-" + name + "-"}
	r.built = sync.OnceValue(r.build)
	return r
}

// Main runs the tests, after what killed runs left was removed, and gives the exit code.
func (r *Run) Main(m *testing.M) int {
	if err := testbed.RemoveLeftovers(r.name); err != nil {
		fmt.Fprintln(os.Stderr, r.name, err)
	}
	if raceDetector { // programs built with it would sleep a second before they end
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	code := m.Run()
	os.RemoveAll(r.bin())
	os.Remove(r.Root()) // only when it is empty
	return code
}

// Root is the directory of this run's labs.
func (r *Run) Root() string { return testbed.OwnRoot(r.name) }

func (r *Run) bin() string { return r.Root() + "-bin" }

// build builds the programs, with the race detector if the tests have it.
func (r *Run) build() error {
	list, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	args := []string{"build", "-o", r.bin() + "/"}
	if raceDetector {
		args = append(args, "-race")
	}
	c := exec.Command("go", append(args, "./cmd/inofd", "./cmd/inofctl", "./cmd/snsd")...)
	c.Dir = string(list[:len(list)-1])
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// Programs is the directory with the project's programs.
func (r *Run) Programs(t testing.TB) string {
	t.Helper()
	if err := r.built(); err != nil {
		t.Fatal(err)
	}
	return r.bin()
}

// Program is the path of one of them.
func (r *Run) Program(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(r.Programs(t), name)
}

// RequireNetns skips a test with -short, and where the kernel forbids namespaces, unless
// everything has to be tested.
func RequireNetns(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	netnstest.Require(t, "namespaces are not to be had here", testbed.Privileged())
}

// Patience bounds every wait. It is far above what anything in a lab takes, because the
// machine may be busy with other things.
const Patience = 40 * time.Second

// Eventually waits until cond gives nil; its last error says what was missing.
func Eventually(t testing.TB, what string, cond func() error) {
	t.Helper()
	for waited, last := time.Duration(0), time.Now(); ; {
		err := cond()
		if err == nil {
			return
		}
		if waited > Patience {
			t.Fatalf("not within %s: %s: %v", Patience, what, err)
		}
		Tick()
		waited += min(time.Since(last), time.Second) // a process may be stopped, or a machine stand still
		last = time.Now()
	}
}

// Tick lets other processes work; their progress has no event to wait for.
func Tick() { <-time.After(5 * time.Millisecond) }

// Memory is a bound of the memory of a program, in bytes: with the race detector it needs ten times
// as much.
func Memory(bytes int) int {
	if raceDetector {
		return 10 * bytes
	}
	return bytes
}
