package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/labs"
	"github.com/openinof/inof/testbed/truth"
)

// binDir is where programs builds; TestMain removes it.
var binDir string

// builtPrograms builds the programs once.
var builtPrograms = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "inof-bin"); err != nil {
		return "", err
	}
	binDir = dir
	// The result of this package's tests depends on the source of the programs; go
	// test only knows that, and does not call an old result good, if it sees it read.
	err = filepath.WalkDir("..", func(p string, e os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".go") {
			_, err = os.Stat(p)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	c := exec.Command("go", "build", "-o", dir+"/", "./cmd/inofd", "./cmd/inofctl", "./cmd/snsd")
	c.Dir = ".."
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
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
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // what the program gives it
	defer cancel()
	var out bytes.Buffer
	sum, err := RunDemo(ctx, DemoOptions{Options: Options{Root: root, BinDir: programs(t)}, Out: &out})
	if err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if sum.Expected == 0 || sum.Received != sum.Expected || sum.Unexpected != 0 {
		t.Errorf("summary: %+v\n%s", sum, out.String())
	}
	if sum.Latency.Min <= 0 || sum.Latency.Median > 1_000_000 { // us; who waits for a timer is slower on any machine
		t.Errorf("fault to notice: %+v", sum.Latency)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var last Summary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || !reflect.DeepEqual(last, sum) {
		t.Errorf("last line %q, want the summary %+v (%v)", lines[len(lines)-1], sum, err)
	}
	if diff := cmp.Diff(before, takeTraces(t, root)); diff != "" {
		t.Errorf("left behind:\n%s", diff)
	}
}

// The reflector is killed: what is known stays in force, faults are told to the hosts
// of the same switch, and to all others once it is back.
func TestAFabricWithoutItsReflector(t *testing.T) {
	requireNetns(t)
	topo, err := LoadFS(labs.FS, labs.Demo)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	defer func() {
		if t.Failed() {
			t.Log(out.String())
		}
	}()
	for _, n := range topo.Nodes { // nobody shall age out while the reflector is away
		for _, a := range n.Agents {
			a.Args[slices.Index(a.Args, "--ttl")+1] = "120"
		}
	}
	d := &demo{DemoOptions: DemoOptions{Out: &out}, truth: newDemoTruth()}
	d.lab = mustUp(t, topo, Options{Root: testRoot(t), BinDir: programs(t)})
	if d.agents, err = followAgents(d.lab); err != nil {
		t.Fatal(err)
	}
	defer d.agents.close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var all []netip.Addr
	for _, a := range d.truth.Places() {
		all = append(all, a.Addr)
	}
	must(d.register(ctx, all))
	must(d.step(ctx, stepPlan{title: "the reflector is killed", want: truth.Notices{}, quiet: demoRestart,
		do: func() (time.Time, error) { return d.lab.Kill("spine", "inofd") }}))

	here, across := truth.Notices{}, truth.Notices{}
	gone := d.truth.info(d.truth.of("t1", "A"))
	for n := range d.truth.goes(truth.LinkDown, gone.Addr) {
		if d.truth.info(n.Host).Switch == gone.Switch {
			here[n] = true
		} else {
			across[n] = true
		}
	}
	must(d.step(ctx, stepPlan{title: "a cable is pulled", want: here, about: []netip.Addr{gone.Addr},
		do: func() (time.Time, error) { return d.lab.Fault(gone.Switch, gone.Port, false) }}))
	must(d.step(ctx, stepPlan{title: "the reflector is back", want: across, about: []netip.Addr{gone.Addr}, quiet: demoRestart,
		do: func() (time.Time, error) { return time.Now(), d.lab.Start(ctx, "spine", "inofd") }}))
	must(d.step(ctx, stepPlan{title: "an access switch's daemon is killed: its hosts are still there", want: truth.Notices{}, quiet: demoRestart,
		do: func() (time.Time, error) { return d.lab.Kill("tor2", "inofd") }}))
	for _, p := range d.problem {
		t.Error(p)
	}
	if len(here) == 0 || len(across) == 0 {
		t.Errorf("the truth has %d hosts here and %d across", len(here), len(across))
	}
}

// Every topology that comes with the project can be built, and the daemon takes its
// configurations.
func TestShippedLabsAreValid(t *testing.T) {
	files, err := fs.Glob(labs.FS, "*.clab.yml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		topo, err := LoadFS(labs.FS, f)
		if err != nil {
			t.Error(err)
			continue
		}
		l := newLab(Options{Root: "/run/x"}, topo.Name, &state{})
		for _, n := range topo.Nodes {
			for k, v := range n.Env {
				t.Setenv(k, v)
			}
			for _, name := range []string{n.StartupConfig, n.Zones} {
				if name == "" {
					continue
				}
				to := filepath.Join(t.TempDir(), filepath.Base(name))
				if err := copyFile(topo, name, to, l.nodeVars(n.Name)); err != nil {
					t.Errorf("%s: %s: %v", f, n.Name, err)
				} else if _, _, err := config.Check(to, config.Environment()); err != nil {
					t.Errorf("%s: %s: %v", f, n.Name, err)
				}
			}
		}
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
