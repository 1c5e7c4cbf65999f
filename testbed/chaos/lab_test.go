package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed"
)

// rootPrefix begins the names of this package's labs in the temporary directory.
const rootPrefix = "inof-chaostest-"

func TestMain(m *testing.M) {
	if err := testbed.RemoveLeftovers(rootPrefix); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	code := m.Run()
	os.RemoveAll(binDir())
	os.Remove(testbed.OwnRoot(rootPrefix)) // only when it is empty
	os.Exit(code)
}

func binDir() string { return testbed.OwnRoot(rootPrefix) + "-bin" }

var built = sync.OnceValue(func() error {
	c := exec.Command("go", "build", "-tags", "clocksteps", "-o", binDir()+"/", "./cmd/inofd", "./cmd/inofctl", "./cmd/snsd")
	c.Dir = filepath.Join("..", "..")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
})

// Environment of these tests: how long faults strike, and the seed. Without a length
// the runs are short and have a seed of their own; with one it is drawn, and printed.
const (
	envLength = "INOF_CHAOS"
	envSeed   = "INOF_CHAOS_SEED"
)

// run is one run on a lab of its own.
func run(t *testing.T, opt Options, short time.Duration) *Report {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	netnstest.Require(t, "namespaces are not to be had here", testbed.Privileged())
	if err := built(); err != nil {
		t.Fatal(err)
	}
	opt.Seed = 1
	if s := os.Getenv(envLength); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil || d < time.Second {
			t.Fatalf("%s=%q: want a time of 1s or more", envLength, s)
		}
		if opt.Duration == 0 {
			opt.Duration = d
		}
		opt.Seed = rand.Uint64N(1_000_000)
	} else {
		opt.Duration = short
	}
	if s := os.Getenv(envSeed); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q: %v", envSeed, s, err)
		}
		opt.Seed = n
	}
	opt.ClockSteps = true
	opt.Root, opt.BinDir, opt.Out = testbed.OwnRoot(rootPrefix), binDir(), t.Output()
	rep, err := Run(context.Background(), opt)
	var b strings.Builder
	rep.Text(&b)
	t.Log(b.String())
	if err != nil {
		t.Fatal(err)
	}
	if rep.Failed() {
		t.Errorf("%d unexpected and %d missing notices, %d findings", rep.Notices.Unexpected, rep.Notices.Missing, len(rep.Findings))
	}
	if rep.Notices.Received == 0 || rep.Rounds == 0 {
		t.Error("nothing was told at all")
	}
	return rep
}

// Reflectors, access switches and host agents are killed in a loop while cables flap:
// no notice is unexpected, none is missing.
func TestDaemonsKilledWhilePortsFlap(t *testing.T) {
	rep := run(t, Options{Name: "chaos-kill", Kinds: []Kind{Kill, Kill, Flap, Carrier}, Duration: time.Minute, Storm: 10 * time.Second}, 10*time.Second)
	if rep.Faults[Kill] < 5 || rep.Faults[Flap] < 2 {
		t.Errorf("too little happened: %v", rep.Faults)
	}
}

// All kinds of faults at once.
func TestChaos(t *testing.T) {
	rep := run(t, Options{Name: "chaos-all"}, 20*time.Second)
	for _, k := range Kinds {
		if rep.Faults[k] == 0 && len(rep.LeftOut) == 0 {
			t.Errorf("no fault of kind %s", k)
		}
	}
	for _, what := range rep.LeftOut {
		netnstest.LeftOut(t, what, "nft")
	}
}
