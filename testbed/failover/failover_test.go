package failover

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/labtest"
	"github.com/openinof/inof/testbed/vm"
)

var suite = labtest.New("failover")

func TestMain(m *testing.M) {
	os.Setenv("CGO_ENABLED", "0") // the machine has no C library
	vm.UseImage("../../out/vm")
	os.Exit(suite.Main(m))
}

// EnvRows chooses what is measured: a regular expression over "fault/method"; `make failover` has
// all.
const EnvRows = "INOF_FAILOVER"

// EnvBFD is how often BFD sends while the table is made, such as 100ms, where a machine has so much
// else to do that silence is found where there is none.
const EnvBFD = "INOF_FAILOVER_BFD"

// How soon a silent path is found out: where the table is made on a machine that has nothing else
// to do, and beside other tests, which must not make a path look silent.
var (
	quick   = Detection{10 * time.Millisecond, 3}
	patient = Detection{100 * time.Millisecond, 5}
)

func up(t *testing.T, over Transport, bfd Detection) *Bed {
	t.Helper()
	labtest.RequireNetns(t)
	netnstest.Programs(t, "qemu-system-x86_64")
	_, err := vm.Image()
	netnstest.Require(t, "virtual machines", err)
	bin := suite.Programs(t)
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "iotime"), "./iotime").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	b, err := Up(ctx, Config{Dir: t.TempDir(), Root: suite.Root(), Bin: bin, Over: over, BFD: bfd, Say: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			array, _, _ := over.at(0)
			for _, name := range []string{"host1.out", "host2.out", "host.out", "io.out"} {
				text, _ := os.ReadFile(b.share(name))
				t.Logf("%s:\n%s", name, text)
			}
			for _, name := range []string{"array1.out", "array2.out"} {
				text, _ := os.ReadFile(b.shareOf(array, name))
				t.Logf("%s:\n%s", name, text)
			}
		}
		if err := b.Down(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// tries is how often a row is measured, at most, until nothing disturbs it.
const tries = 4

// goals are how much longer than it takes to find out I/O may stand still on an idle machine.
var goals = map[Transport]time.Duration{TCP: 50 * time.Millisecond, RDMA: 300 * time.Millisecond}

// However a path fails, no I/O fails while there is another one, and with our agent it stands still
// no longer than it takes to find out and what the goal allows.
func TestFailOver(t *testing.T) { measure(t, TCP, Faults) }

// Over RDMA there are no sockets to destroy: controllers are reset by a child process.
func TestFailOverOverRDMA(t *testing.T) {
	measure(t, RDMA, slices.DeleteFunc(slices.Clone(Faults), func(f Fault) bool {
		return f.Name != "array cable cut" && f.Name != "path silent, both ways"
	}))
}

func measure(t *testing.T, over Transport, faults []Fault) {
	pattern, bfd := os.Getenv(EnvRows), quick
	if text := os.Getenv(EnvBFD); text != "" {
		var err error
		if bfd.Interval, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", EnvBFD, err)
		}
	}
	if over == RDMA { // two machines are emulated
		bfd = patient
	}
	if pattern == "" {
		pattern, bfd = "^array cable cut.*/ours", patient
	}
	only, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var b *Bed
	var rows []Row
	for i := range faults {
		for j := range Methods {
			f, m := &faults[i], &Methods[j]
			name := f.name(over)
			if !only.MatchString(name + "/" + m.Name) {
				continue
			}
			if b == nil {
				b = up(t, over, bfd)
			}
			t.Logf("%s, %s", name, m.Name)
			r, err := b.Run(context.Background(), f, m)
			for n := 1; n < tries && errors.Is(err, ErrBusy); n++ {
				t.Logf("%s, %s, once more: %v", name, m.Name, err)
				r, err = b.Run(context.Background(), f, m)
			}
			if err != nil {
				t.Errorf("%s, %s: %v", name, m.Name, err)
				continue
			}
			t.Logf("%+v", r)
			rows = append(rows, r)
			if r.Errors > 0 {
				t.Errorf("%s, %s: %d I/O errors", name, m.Name, r.Errors)
			}
			switch {
			case m.Off:
				hold(t, &r, goals[over], bfd == patient && over == TCP)
			case m.Ours && over == TCP: // Debian 13's kernel does not show its target's controllers over RDMA
				fenced(t, &r)
			}
		}
	}
	var table strings.Builder
	Print(&table, rows)
	t.Log("\n" + table.String())
	if over == TCP && bfd == quick {
		compare(t, rows)
	}
}

// fenced checks that the array confirmed that no old write can follow, before its path was left. How long
// that took is for the table. Where nothing is broken, what was in flight was finished.
func fenced(t *testing.T, r *Row) {
	t.Helper()
	finished := strings.Contains(r.Fault, "in order") || strings.Contains(r.Fault, "withdrawn")
	if !finished && !slices.ContainsFunc(r.Said, func(s string) bool { return strings.Contains(s, "fenced: array by") }) {
		t.Errorf("%s: the array's agent fenced nothing: %q", r.Fault, r.Said)
	}
}

// back is how long I/O may stand still while the path comes back.
const back = time.Second

// hold checks a row of our agent. What this machine does by itself is no fault of the agent: where
// it does much else, all that is not the fault's counts as that.
func hold(t *testing.T, r *Row, goal time.Duration, busy bool) {
	t.Helper()
	own := 3 * r.Other
	if busy {
		own = 3 * max(r.Other, r.Later, r.Back)
	}
	if r.Beyond > goal+own {
		t.Errorf("%s: I/O stood still %v longer than until the notice, want at most %v", r.Fault, r.Beyond, goal+own)
	}
	if r.Later > goal+own {
		t.Errorf("%s: I/O begun after the path was left took %v, want at most %v", r.Fault, r.Later, goal+own)
	}
	if r.Back > back+own {
		t.Errorf("%s: I/O took %v when the path came back, want at most %v", r.Fault, r.Back, back+own)
	}
}

// better is how many times as long I/O stands still by the existing agent's method, at least, where
// a path is dead at once and nothing was said before.
const better = 20

func compare(t *testing.T, rows []Row) {
	t.Helper()
	for _, ours := range rows {
		for _, theirs := range rows {
			if !ours.off || theirs.Method != "existing agent" || theirs.Fault != ours.Fault || strings.Contains(ours.Fault, "in order") || strings.Contains(ours.Fault, "withdrawn") {
				continue
			}
			if theirs.Stall < better*ours.Stall {
				t.Errorf("%s: I/O stood still %v with ours, %v with the existing agent: want %d times as long at least", ours.Fault, ours.Stall, theirs.Stall, better)
			}
		}
	}
}
