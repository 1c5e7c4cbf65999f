package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// builtPrograms builds the programs once; the directory goes with the test run.
var builtPrograms = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "inof-bin")
	if err != nil {
		return "", err
	}
	c := exec.Command("go", "build", "-o", dir+"/", "./cmd/inofd", "./cmd/inofctl", "./cmd/snsd")
	c.Dir = ".."
	if out, err := c.CombinedOutput(); err != nil {
		return "", &os.PathError{Op: "go build", Path: string(out), Err: err}
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

// TestDemo is the whole system end to end: everything that the table of truth wants
// is told, nothing else is, and nothing stays behind.
func TestDemo(t *testing.T) {
	requireNetns(t)
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	root := testRoot(t)
	before := takeTraces(t, root)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // what the demo promises
	defer cancel()
	var out bytes.Buffer
	sum, err := RunDemo(ctx, DemoOptions{Options: Options{Root: root, BinDir: programs(t)}, Out: &out})
	if err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if sum.Expected == 0 || sum.Received != sum.Expected || sum.Unexpected != 0 {
		t.Errorf("summary: %+v\n%s", sum, out.String())
	}
	if sum.Latency.Min <= 0 || sum.Latency.Median > 50_000 {
		t.Errorf("fault to notice: %+v", sum.Latency)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var last Summary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last != sum {
		t.Errorf("last line %q, want the summary %+v (%v)", lines[len(lines)-1], sum, err)
	}
	if diff := cmp.Diff(before, takeTraces(t, root)); diff != "" {
		t.Errorf("left behind:\n%s", diff)
	}
}

// A demo that is interrupted removes its lab.
func TestAnInterruptedDemoLeavesNothing(t *testing.T) {
	requireNetns(t)
	root := testRoot(t)
	before := takeTraces(t, root)
	for _, after := range []time.Duration{20 * time.Millisecond, 600 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		_, err := RunDemo(ctx, DemoOptions{Options: Options{Root: root, BinDir: programs(t)}, Out: new(bytes.Buffer)})
		cancel()
		if err == nil {
			t.Errorf("interrupted after %s: no error", after)
		}
		if diff := cmp.Diff(before, takeTraces(t, root)); diff != "" {
			t.Errorf("interrupted after %s, left behind:\n%s", after, diff)
		}
	}
}

// TestAKilledDemoIsCleanedUpByTheNext kills the demo's process in the middle.
func TestAKilledDemoIsCleanedUpByTheNext(t *testing.T) {
	requireNetns(t)
	root, bin := testRoot(t), programs(t)
	before := takeTraces(t, root)
	c := exec.Command(filepath.Join(bin, "inofctl"), "demo", "--root", root)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lab to be up", func() bool {
		st, err := StatusOf(demoLab, Options{Root: root})
		return err == nil && st.Phase == PhaseUp
	})
	_ = c.Process.Kill()
	_ = c.Wait()
	if out, err := exec.Command(filepath.Join(bin, "inofctl"), "lab", "down", "--all", "--root", root).CombinedOutput(); err != nil {
		t.Errorf("lab down --all: %v: %s", err, out)
	}
	if diff := cmp.Diff(before, takeTraces(t, root)); diff != "" {
		t.Errorf("left behind:\n%s", diff)
	}
}

// BenchmarkFaultToNotice prints what `inofctl lab bench` prints, with fewer trials.
func BenchmarkFaultToNotice(b *testing.B) {
	requireNetns(b)
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	var res BenchResult
	for b.Loop() {
		res, err = Bench(context.Background(), BenchOptions{
			Options: Options{Root: testRoot(b), BinDir: programs(b)}, Trials: 50,
			Relay: []string{self}, RelayEnv: []string{envHelper + "=relay"},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(res.Notice.Median, "us/median")
	b.ReportMetric(res.Notice.P99, "us/p99")
	b.ReportMetric(res.Bound.Median, "us/bound-median")
	b.ReportMetric(res.MedianRatio, "x/bound")
}
