package pair

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/testbed"
)

// rootPrefix begins the directories of a run; the pid of the run follows.
const rootPrefix = "inof-pair-"

func TestMain(m *testing.M) {
	if err := testbed.RemoveLeftovers(rootPrefix); err != nil {
		fmt.Fprintln(os.Stderr, "pair:", err)
	}
	code := m.Run()
	os.RemoveAll(labRoot() + "-bin")
	os.Remove(labRoot()) // only when it is empty
	os.Exit(code)
}

func labRoot() string { return testbed.OwnRoot(rootPrefix) }

// builtPrograms builds the programs once a run.
var builtPrograms = sync.OnceValues(func() (string, error) {
	dir := labRoot() + "-bin"
	c := exec.Command("go", "build", "-o", dir+"/", "./cmd/inofd", "./cmd/inofctl", "./cmd/snsd")
	c.Dir = filepath.Join("..", "..")
	if out, err := c.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, nil
})

func programs(t testing.TB) string {
	t.Helper()
	dir, err := builtPrograms()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// requireNetns skips a test, visibly, where the kernel forbids namespaces; with
// INOF_REQUIRE_NETNS=1, which says that everything must be tested, it fails instead.
func requireNetns(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	switch err := testbed.Privileged(); {
	case err == nil:
	case os.Getenv("INOF_REQUIRE_NETNS") == "1":
		t.Fatalf("INOF_REQUIRE_NETNS=1, but: %v", err)
	default:
		t.Skipf("SKIPPED: %v", err)
	}
}

// patience bounds every wait: far above what anything here takes, because the machine
// may be busy with other things.
const patience = 40 * time.Second

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
		<-time.After(20 * time.Millisecond) // other processes work; their progress has no event to wait for here
	}
}

// errorf is an error unless ok.
func errorf(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}
