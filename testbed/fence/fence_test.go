package fence

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/fence/round"
	"github.com/openinof/inof/testbed/labtest"
	"github.com/openinof/inof/testbed/vm"
)

var suite = labtest.New("fence")

func TestMain(m *testing.M) {
	os.Setenv("CGO_ENABLED", "0") // the machine has no C library
	vm.UseImage("../../out/vm")
	os.Exit(suite.Main(m))
}

func up(t *testing.T) *Bed {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	netnstest.Programs(t, "qemu-system-x86_64")
	_, err := vm.Image()
	netnstest.Require(t, "virtual machines", err)
	bin := suite.Programs(t)
	if out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", filepath.Join(bin, "guest"), "./guest").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	began := time.Now()
	b, err := Up(ctx, dir, bin)
	if err != nil {
		text, _ := os.ReadFile(filepath.Join(dir, "console"))
		t.Fatalf("%v\n%s", err, text)
	}
	t.Cleanup(b.Down)
	t.Logf("up after %.1f s", time.Since(began).Seconds())
	return b
}

// EnvTrace has what the machine saw of each round printed.
const EnvTrace = "INOF_FENCE_TRACE"

// EnvCases chooses raw cases: a regular expression of their numbers.
const EnvCases = "INOF_FENCE_CASES"

// tries is how often a round is played, at most, until a copy waited when the fault struck.
const tries = 3

// The judge sees the losses of mechanisms that do not fence, and none where they do.
func TestTheJudgeSeesLosses(t *testing.T) {
	pattern := os.Getenv(EnvCases)
	if pattern == "" {
		pattern = "^(1|9|14|15)$"
	}
	only := regexp.MustCompile(pattern)
	b := up(t)
	var table strings.Builder
	for _, c := range Cases {
		if !only.MatchString(fmt.Sprint(c.Spec.Case)) {
			continue
		}
		began := time.Now()
		c.Spec.Trace = os.Getenv(EnvTrace) != ""
		r, err := play(t, b, c.Spec)
		if err != nil {
			t.Errorf("case %d: %v", c.Spec.Case, err)
			continue
		}
		fmt.Fprintf(&table, "| %d | %s %v | %s | %s | A %s, B %s, last copy %s later | %.1f s |\n", c.Spec.Case, c.Spec.Place, c.Spec.Hold, c.What,
			map[bool]string{true: "lost", false: "kept"}[r.Lost], short(r.Acked), short(r.AckedB), short(r.Late), time.Since(began).Seconds())
		for _, line := range r.Log {
			t.Log(line)
		}
		if r.Lost != c.Lost {
			t.Errorf("case %d, %s, %s: lost is %v, want %v: %+v", c.Spec.Case, c.Spec.Place, c.What, r.Lost, c.Lost, r)
		}
	}
	t.Log("\n" + table.String())
}

func play(t *testing.T, b *Bed, s round.Spec) (r round.Result, err error) {
	t.Helper()
	for n := range tries {
		r, err = b.Play(context.Background(), s)
		if err == nil && r.Error == "" && tooLate(s, r) {
			r.Error = fmt.Sprintf("the machine is too busy: noticed after %v, A acknowledged after %v, while its copy waited for %v", r.Noticed, r.Acked, s.Hold)
		}
		if err != nil || r.Error == "" {
			return r, err
		}
		t.Logf("try %d: %s\n%s", n+1, r.Error, strings.Join(r.Log, "\n"))
	}
	return r, fmt.Errorf("%d tries: %s", tries, r.Error)
}

func short(d time.Duration) string {
	if d < 0 {
		return "-"
	}
	return d.Round(time.Millisecond).String()
}
