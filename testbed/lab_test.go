package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// smallLab has every kind of node. The scripts of fakeDaemons stand in for the
// programs.
const smallLab = `
name: small
topology:
  kinds:
    inof-switch: {startup-config: sw.yaml}
  nodes:
    sw1: {kind: inof-switch, exec: ["ip addr add 192.0.2.1/24 dev eth1"], sysctls: {net.ipv4.ip_forward: "1"}}
    h1: {kind: inof-host, exec: ["ip addr add 192.0.2.11/24 dev eth1"], labels: {inof.address: 192.0.2.11}, env: {COLOUR: red}}
    l1: {kind: linux}
  links:
    - endpoints: ["sw1:eth1", "h1:eth1"]
      mtu: 9000
    - {endpoints: ["h1:eth2", "l1:eth1"]}
`

// fakeDaemons are scripts; a shell cannot send a datagram, so readiness is told by
// the test binary.
func fakeDaemons(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fakeBin(t, map[string]string{
		"inofd": fmt.Sprintf("echo \"$*\" >&2\n%s=ready %s || exit 1\nexec sleep 1000\n", envHelper, self),
		"snsd":  "echo \"$*\"\nexec sleep 1000\n",
	})
}

func smallTopo(t testing.TB) *Topology {
	t.Helper()
	dir := testRoot(t)
	if err := os.WriteFile(filepath.Join(dir, "sw.yaml"), []byte("socket: ${INOF_NODE_RUN}/inofd.sock\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return mustParse(t, smallLab, dir)
}

func TestUpBuildsWhatTheFileSaysAndDownLeavesNothing(t *testing.T) {
	requireNetns(t)
	ctx := context.Background()
	root := testRoot(t)
	before := takeTraces(t, root)
	l := mustUp(t, smallTopo(t), Options{Root: root, BinDir: fakeDaemons(t)})

	st := l.Status()
	if !st.Alive || len(st.Nodes) != 3 || len(st.Links) != 2 {
		t.Fatalf("status: %+v", st)
	}
	for _, k := range st.Links {
		if !k.Up || k.A.Index == k.B.Index {
			t.Errorf("link %+v: want carrier and different ifindexes", k)
		}
	}
	if st.Links[0].MTU != 9000 || st.Links[1].MTU != 1500 {
		t.Errorf("MTU %d and %d, want 9000 and 1500", st.Links[0].MTU, st.Links[1].MTU)
	}
	if out, err := l.Exec(ctx, "h1", "ping", "-c1", "-W2", "192.0.2.1"); err != nil && !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("h1 does not reach sw1: %v%s", err, out)
	}
	for _, c := range []struct{ node, cmd, want string }{
		{"h1", "echo $COLOUR $INOF_NODE; hostname", "red h1\nh1"},
		{"h1", "ls /sys/class/net", "eth1\neth2\nlo"},
		{"sw1", "cat /proc/sys/net/ipv4/ip_forward", "1"},
		{"l1", "cat /proc/sys/net/ipv4/ip_forward", "0"},
	} {
		out, err := l.Exec(ctx, c.node, "sh", "-c", c.cmd)
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%s: %s: %q, %v, want %q", c.node, c.cmd, got, err, c.want)
		}
	}
	cfg, err := os.ReadFile(l.ConfigFile("sw1"))
	if want := "socket: " + l.NodeDir("sw1") + "/run/inofd.sock\n"; err != nil || string(cfg) != want {
		t.Errorf("configuration %q, %v, want %q", cfg, err, want)
	}
	p, err := l.Process("h1", "snsd-eth1")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "snsd's arguments in its output", func() bool {
		out, _ := os.ReadFile(p.Output)
		return string(out) == "--interface eth1 --address 192.0.2.11 --output json\n"
	})
	if _, err := os.Stat(netnsDir); err == nil {
		if out, err := exec.Command("ip", "netns", "exec", "small-l1", "ip", "-o", "link", "show", "eth1").CombinedOutput(); err != nil {
			t.Errorf("ip netns exec: %v: %s", err, out)
		}
	}
	if err := l.Down(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, takeTraces(t, root)); diff != "" {
		t.Errorf("left behind:\n%s", diff)
	}
}

func TestTheOutputOfExecLinesIsShown(t *testing.T) {
	requireNetns(t)
	topo := mustParse(t, "name: said\ntopology:\n  nodes:\n    a: {kind: linux, exec: [\"echo hello from __clabNodeName__\", \"ip link set lo up\"]}\n", testRoot(t))
	var said []string
	mustUp(t, topo, Options{Root: testRoot(t), OnOutput: func(node, text string) { said = append(said, node+": "+text) }})
	if !slices.Equal(said, []string{"a: hello from a"}) {
		t.Errorf("%q", said)
	}
}

// What the user's shell says to daemons does not reach those of a lab.
func TestVariablesOfTheUserDoNotReachNodes(t *testing.T) {
	for name, value := range map[string]string{"INOF_LOG_LEVEL": "debug", "INVOCATION_ID": "0", "INOF_BIN_DIR": "/bin", "COLOUR": "blue"} {
		t.Setenv(name, value)
	}
	l := newLab(Options{Root: t.TempDir()}, "x", &state{Nodes: []nodeState{{Name: "sw1", Env: map[string]string{"INOF_LLDP_TTL": "9s"}}}})
	env := l.environment("sw1")
	for entry, there := range map[string]bool{"INOF_LOG_LEVEL=debug": false, "INVOCATION_ID=0": false, "INOF_BIN_DIR=/bin": true, "COLOUR=blue": true,
		"INOF_LLDP_TTL=9s": true, "INOF_NODE=sw1": true} {
		if slices.Contains(env, entry) != there {
			t.Errorf("%s there: %t", entry, !there)
		}
	}
}

// A socket that a daemon of root makes there can be opened by the user who called sudo.
func TestSocketsOfALabBelongToTheGroupOfTheUserOfSudo(t *testing.T) {
	requireNetns(t)
	t.Setenv("SUDO_GID", "12345")
	l := mustUp(t, smallTopo(t), Options{Root: testRoot(t), NoDaemons: true})
	s, err := net.Listen("unix", l.Socket("sw1"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var st unix.Stat_t
	if err := unix.Stat(l.Socket("sw1"), &st); err != nil || st.Gid != 12345 {
		t.Errorf("group %d, %v", st.Gid, err)
	}
}

func TestFaultChangesCarrierAndNothingElse(t *testing.T) {
	requireNetns(t)
	l := mustUp(t, smallTopo(t), Options{Root: testRoot(t), NoDaemons: true})
	carrier := func(node, port string) bool {
		c, err := l.Carrier(node, port)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, end := range []struct{ node, port string }{{"sw1", "eth1"}, {"h1", "eth1"}} {
		before := time.Now()
		at, err := l.Fault(end.node, end.port, false)
		if err != nil || at.Before(before) || at.After(time.Now()) {
			t.Fatalf("fault at %v, %v", at, err)
		}
		eventually(t, "carrier loss at both ends", func() bool { return !carrier("sw1", "eth1") && !carrier("h1", "eth1") })
		for _, k := range l.Status().Links {
			if k.A.Node == "sw1" && !k.A.AdminUp {
				t.Error("the switch's own port was shut: it must see carrier loss alone")
			}
		}
		if !carrier("h1", "eth2") {
			t.Error("another link lost its carrier")
		}
		if _, err := l.Fault(end.node, end.port, true); err != nil {
			t.Fatal(err)
		}
		eventually(t, "carrier back", func() bool { return carrier("sw1", "eth1") && carrier("h1", "eth1") })
	}
	for _, bad := range [][2]string{{"sw1", "eth9"}, {"nobody", "eth1"}} {
		if _, err := l.Fault(bad[0], bad[1], false); err == nil {
			t.Errorf("fault %v: no error", bad)
		}
	}
}

func TestStopKillAndStartOfADaemon(t *testing.T) {
	requireNetns(t)
	l := mustUp(t, smallTopo(t), Options{Root: testRoot(t), BinDir: fakeDaemons(t)})
	first, err := l.Process("sw1", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Start(context.Background(), "sw1", ""); err != nil {
		t.Fatal(err)
	}
	if again, _ := l.Process("sw1", ""); again.PID != first.PID {
		t.Error("a running daemon was started a second time")
	}
	if err := l.Stop("sw1", "inofd", time.Second); err != nil {
		t.Fatal(err)
	}
	if l.Status().Alive {
		t.Error("a lab without one of its daemons counts as alive")
	}
	if err := l.Start(context.Background(), "sw1", "inofd"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Kill("h1", "snsd-eth1"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Kill("h1", "snsd-eth1"); !errors.Is(err, errGone) {
		t.Errorf("killing a dead process: %v, want %v", err, errGone)
	}
	if err := l.Start(context.Background(), "h1", "snsd-eth7"); err == nil {
		t.Error("a process that is not the node's was started")
	}
}

func TestUpRefusesALabThatIsUpAndReplacesItWhenAsked(t *testing.T) {
	requireNetns(t)
	opt := Options{Root: testRoot(t), BinDir: fakeDaemons(t)}
	topo := smallTopo(t)
	old := mustUp(t, topo, opt)
	if _, err := Up(context.Background(), topo, opt); !errors.Is(err, ErrExists) {
		t.Fatalf("second up: %v, want %v", err, ErrExists)
	}
	p, _ := old.Process("sw1", "")
	opt.Replace = true
	l := mustUp(t, topo, opt)
	if p.Alive() {
		t.Error("a daemon of the replaced lab still runs")
	}
	if !l.Status().Alive {
		t.Error("the new lab is not alive")
	}
}

func TestUpThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	requireNetns(t)
	ok := fakeDaemons(t)
	for _, c := range []struct{ name, text, cfg, bin, want string }{
		{"exec", strings.Replace(smallLab, "ip addr add 192.0.2.1/24", "ip addr add 192.0.2.300/24", 1), "", ok, "192.0.2.300"},
		{"no such program", smallLab, "", testRoot(t), "program inofd not found"},
		{"variable", smallLab, "a: 1\nb: ${HOME}\n", ok, "line 2: ${HOME} is not known here"},
		{"daemon dies", smallLab, "", fakeBin(t, map[string]string{"inofd": "echo no such zone >&2; exit 1", "snsd": "exit"}), "no such zone"},
		{"daemon never ready", smallLab, "", fakeBin(t, map[string]string{"inofd": "echo hm >&2; exec sleep 100", "snsd": "exit"}), "not ready after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("INOF_BIN_DIR", "")
			t.Chdir(testRoot(t))
			dir, root := testRoot(t), testRoot(t)
			if err := os.WriteFile(filepath.Join(dir, "sw.yaml"), []byte(c.cfg), 0o600); err != nil {
				t.Fatal(err)
			}
			before := takeTraces(t, root)
			_, err := Up(context.Background(), mustParse(t, c.text, dir), Options{Root: root, BinDir: c.bin, ReadyTimeout: 300 * time.Millisecond})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if diff := cmp.Diff(before, takeTraces(t, root)); diff != "" {
				t.Errorf("left behind:\n%s", diff)
			}
		})
	}
}

// helperUpAndDie is the killed process of the test below: it kills itself before
// step number INOF_TEST_STEP and prints OK if it got to the end alive.
func helperUpAndDie() {
	topo, err := Load(os.Getenv("INOF_TEST_FILE"))
	if err == nil {
		stop, _ := strconv.Atoi(os.Getenv("INOF_TEST_STEP"))
		n := 0
		opt := Options{Root: os.Getenv("INOF_TEST_ROOT"), BinDir: os.Getenv("INOF_TEST_BIN")}
		opt.OnStep = func(string) {
			if n++; n == stop {
				killSelf()
			}
		}
		_, err = Up(context.Background(), topo, opt)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("OK")
	os.Exit(0)
}

func TestWhatAKilledUpLeftIsCleanedUp(t *testing.T) {
	requireNetns(t)
	dir, root, bin := testRoot(t), testRoot(t), fakeDaemons(t)
	file := filepath.Join(dir, "small.clab.yml")
	for name, text := range map[string]string{"small.clab.yml": smallLab, "sw.yaml": "a: 1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, _ := os.Executable()
	before := takeTraces(t, root)
	t.Cleanup(func() { _ = Down("small", Options{Root: root}) })
	run := func(step int) (string, error) {
		c := exec.Command(self)
		c.Env = append(os.Environ(), envHelper+"=up-and-die", "INOF_TEST_FILE="+file, "INOF_TEST_ROOT="+root,
			"INOF_TEST_BIN="+bin, "INOF_TEST_STEP="+strconv.Itoa(step))
		out, err := c.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	last := 0
	for step := 1; ; step++ {
		out, err := run(step)
		if err == nil { // it got to its end: the lab outlives its builder
			if out != "OK" {
				t.Fatalf("step %d: %s", step, out)
			}
			last = step
			break
		}
		st, serr := StatusOf("small", Options{Root: root})
		if serr != nil || st.Phase == PhaseUp {
			t.Fatalf("killed at step %d (%s): phase %q, %v", step, out, st.Phase, serr)
		}
		if step%2 == 0 { // every other time the next up has to clean up itself
			continue
		}
		if err := Down("small", Options{Root: root}); err != nil {
			t.Fatalf("killed at step %d: down: %v", step, err)
		}
		if diff := cmp.Diff(before, takeTraces(t, root)); diff != "" {
			t.Fatalf("killed at step %d, left behind:\n%s", step, diff)
		}
	}
	if last < 8 {
		t.Errorf("only %d steps: the test does not see the building", last)
	}
	l, err := Open("small", Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !l.Status().Alive {
		t.Errorf("the lab does not outlive its builder: %+v", l.Status())
	}
	// A process that somebody started in a node goes too.
	c := l.Command("l1", "sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Wait() }()
	if err := Down("small", Options{Root: root}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, takeTraces(t, root)); diff != "" {
		t.Errorf("left behind:\n%s", diff)
	}
}

func TestARecycledPidIsNeverKilled(t *testing.T) {
	requireNetns(t)
	innocent := exec.Command("sleep", "1000")
	if err := innocent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = innocent.Process.Kill(); _ = innocent.Wait() }()
	root := testRoot(t)
	l := mustUp(t, smallTopo(t), Options{Root: root, NoDaemons: true})
	if err := l.update(func(s *state) {
		s.node("sw1").Processes = []Process{{Name: "inofd", PID: innocent.Process.Pid, Start: 1}}
	}); err != nil {
		t.Fatal(err)
	}
	if err := Down("small", Options{Root: root}); err != nil {
		t.Fatal(err)
	}
	if err := innocent.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("a process with a recycled pid was killed: %v", err)
	}
}

func TestTwoCommandsOnOneLabDoNotMix(t *testing.T) {
	requireNetns(t)
	root := testRoot(t)
	l := mustUp(t, smallTopo(t), Options{Root: root, NoDaemons: true})
	lock, err := lockLab(l.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Down("small", Options{Root: root}); !errors.Is(err, ErrBusy) {
		t.Errorf("down while another works: %v, want %v", err, ErrBusy)
	}
	lock.Close()
	own := mustUp(t, smallTopo(t), Options{Root: root, NoDaemons: true, Replace: true, Own: true})
	if _, err := Up(context.Background(), smallTopo(t), Options{Root: root, NoDaemons: true, Replace: true}); !errors.Is(err, ErrBusy) {
		t.Errorf("replacing a lab that belongs to a living process: %v, want %v", err, ErrBusy)
	}
	if err := own.Down(); err != nil {
		t.Error(err)
	}
	if err := Down("none", Options{Root: root}); !errors.Is(err, ErrNoLab) {
		t.Errorf("down of no lab: %v, want %v", err, ErrNoLab)
	}
}

func TestStatusIsJSONWithEveryField(t *testing.T) {
	requireNetns(t)
	l := mustUp(t, smallTopo(t), Options{Root: testRoot(t), NoDaemons: true})
	b, err := json.Marshal(l.Status())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"name":"small"`, `"carrier":true`, `"ignored":`, `"processes":[]`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("status %s lacks %s", b, want)
		}
	}
}
