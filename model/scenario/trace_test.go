package scenario

import (
	"bytes"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/model"
	"github.com/openinof/inof/model/workload"
)

var updateTraces = flag.Bool("update-traces", false, "write testdata/traces.txt anew")

// tracedEvents is how many events of each scenario are compared: enough for its faults and
// its congestion, and few enough for an emulated processor.
const tracedEvents = 100_000

// trace gives the hash of the first events of a shipped scenario; not of one with a control
// plane, whose daemons are not the model's.
func trace(path string) (hash uint64, pure bool, err error) {
	f, err := Load(path)
	if err != nil || f.Control != nil {
		return 0, false, err
	}
	f.Trace = true
	b, err := f.build()
	if err != nil {
		return 0, true, err
	}
	if err := b.begin(); err != nil {
		return 0, true, err
	}
	if err := b.sim.RunWhile(f.Duration, func() bool { return b.sim.Events() < tracedEvents }); err != nil {
		return 0, true, err
	}
	return b.sim.TraceHash(), true, b.broken
}

// arrivals gives a hash of 200,000 random flows: when they start, how long they are, and to whom.
func arrivals() uint64 {
	a := workload.Arrivals{Sizes: workload.WebSearch, Load: 0.7, Until: 2 * model.Second, Seed: 1}
	for i := range model.EndpointID(16) {
		a.From, a.To = append(a.From, workload.Sender{ID: i, Rate: 100 * model.Gbps}), append(a.To, i)
	}
	h := fnv.New64a()
	for _, f := range workload.Poisson(a) {
		fmt.Fprintln(h, f.Src, f.Dst, f.Bytes, int64(f.Start))
	}
	return h.Sum64()
}

// TestTracesAreTheSameEverywhere: every shipped scenario of the dataplane does the same things at
// the same moments as on the machine where testdata/traces.txt was written. A change that is meant
// to alter what the model does writes it anew: go test ./model/scenario -run Traces -update-traces
func TestTracesAreTheSameEverywhere(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	slices.Sort(files)
	var got bytes.Buffer
	fmt.Fprintf(&got, "arrivals %016x\n", arrivals())
	for _, path := range files {
		hash, pure, err := trace(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if pure {
			fmt.Fprintf(&got, "%s %016x\n", strings.TrimSuffix(filepath.Base(path), ".yaml"), hash)
		}
	}
	const name = "testdata/traces.txt"
	if *updateTraces {
		if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Split(got.String(), "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(have) || have[i] != line {
			t.Errorf("%s/%s: line %d: got %q, want %q", runtime.GOOS, runtime.GOARCH, i+1, have[min(i, len(have)-1)], line)
		}
	}
}

// TestTracesOnArm64 runs the same comparison on an emulated arm64, whose compiler fuses
// products with sums and whose logarithm is not amd64's.
func TestTracesOnArm64(t *testing.T) {
	const qemu = "qemu-aarch64-static"
	netnstest.Programs(t, qemu)
	bin := filepath.Join(t.TempDir(), "scenario.test")
	build := exec.Command("go", "test", "-c", "-o", bin, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), qemu, bin, "-test.run", "^TestTracesAreTheSameEverywhere$", "-test.v").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Errorf("%v\n%s", err, out)
	}
}
