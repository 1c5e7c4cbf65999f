package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed"
	"github.com/openinof/inof/testbed/labtest"
)

// detection is the detection time of the tests' fabric: long enough for a machine
// with a lot else to do.
const detection = 5 * 200 * time.Millisecond

// pathFabric is the fabric with a path between tor1 and tor2 over spine, watched by BFD.
func pathFabric(t *testing.T, name string) *fab {
	return newPathFabric(t, name, map[string]func(string) string{})
}

// newPathFabric is pathFabric with changes of the other switches' configuration.
func newPathFabric(t *testing.T, name string, edit map[string]func(string) string) *fab {
	edit["spine"] = func(c string) string { return c + "bfd: {interval: 200ms, detect-multiplier: 5}\n" }
	f := newFabric(t, spec{name: name, edit: edit})
	f.path12()
	return f
}

func (f *fab) forward(on bool) time.Time {
	f.t.Helper()
	at, err := f.lab.Forward("spine", on)
	if err != nil {
		f.t.Fatal(err)
	}
	return at
}

func bfdOf(ctx context.Context, c *api.Client) (api.BFD, error) {
	return api.Ask[api.BFD](ctx, c, "bfd", nil)
}

// awaitPath waits until a switch says this of the path to the other one.
func (f *fab) awaitPath(node, what string, good func(b api.BFD, s api.BFDSession) bool) api.BFDSession {
	f.t.Helper()
	var s api.BFDSession
	labtest.Eventually(f.t, node+": path "+what, func() error {
		b, err := ask(f, node, bfdOf)
		if err != nil {
			return err
		}
		if len(b.Sessions) != 1 || !good(b, b.Sessions[0]) {
			return fmt.Errorf("%+v", b)
		}
		s = b.Sessions[0]
		return nil
	})
	return s
}

func (f *fab) pathsUp() {
	f.t.Helper()
	for _, n := range []string{"tor1", "tor2"} {
		f.awaitPath(n, "up", func(_ api.BFD, s api.BFDSession) bool { return s.State == "Up" && s.Report == "up" && !s.Fault })
	}
}

// overPath is what the hosts are told when the path fails or works again.
func overPath(state, reason string) map[string][]notice {
	return map[string][]notice{
		"i1": {{init1, init2, state, reason}},
		"t1": {{target, init2, state, reason}},
		"i2": {{init2, init1, state, reason}, {init2, target, state, reason}},
	}
}

func (f *fab) awaitAll(since map[string]int, want map[string][]notice) {
	f.t.Helper()
	for node, list := range want {
		for _, n := range list {
			f.awaitNotice(node, since[node], n)
		}
	}
}

// only checks that hosts were told this and nothing else.
func (f *fab) only(what string, since map[string]int, want map[string][]notice) {
	f.t.Helper()
	for node, from := range since {
		got, exp := f.notices(node, from), slices.Clone(want[node])
		order := func(a, b notice) int {
			return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
		}
		slices.SortFunc(got, order)
		slices.SortFunc(exp, order)
		if !slices.Equal(got, exp) {
			f.t.Errorf("%s: %s was told %v, want %v", what, node, got, exp)
		}
	}
}

// rest waits for a while in which nothing is to be told.
func (f *fab) rest(d time.Duration) { <-time.After(d) }

func (f *fab) signalBFD(node string, sig unix.Signal) {
	f.t.Helper()
	if _, err := f.lab.Signal(node, testbed.BFDProcess, sig); err != nil {
		f.t.Fatal(err)
	}
}

// A path that is silent while every carrier stays is found by BFD, and told at both
// ends to the hosts that share a zone; nobody else is.
func TestAFailedPathIsToldAtBothEnds(t *testing.T) {
	t.Parallel()
	f := pathFabric(t, "path")
	s := f.awaitPath("tor1", "negotiated", func(_ api.BFD, s api.BFDSession) bool { return time.Duration(s.DetectTime) == detection })
	if s.Configured.DetectMult != 5 || time.Duration(s.TxInterval) != detection/5 || !s.Multihop {
		t.Errorf("session %+v", s)
	}
	for range 2 {
		since, after := f.marks("i1", "i2", "t1"), f.lastEvent("tor2")
		f.forward(false)
		down := overPath("inactive", "bfd-down")
		f.awaitAll(since, down)
		e := f.awaitEvent("tor2", after, "path", "fails", tor1ID, "2 host address(es) unreachable")
		heard, err := time.Parse(time.RFC3339Nano, e.Fields["last_heard"])
		if took := e.Time.Sub(heard); err != nil || took < detection-detection/100 {
			t.Errorf("detected after %v, before the detection time %v is over: %+v, %v", took, detection, e, err)
		} else {
			t.Logf("detected %v after the last packet, %.2f of the detection time", took, float64(took)/float64(detection))
		}
		if st := f.status("tor1"); st.Counts.Paths.Failed != 1 || !hasAll(st.Warnings.String(), []string{"the path to device " + tor2ID + " fails"}) {
			t.Errorf("paths %+v, warnings %q", st.Counts.Paths, st.Warnings)
		}
		for _, addr := range []string{target, init1, init2} { // the reflector is told nothing
			if h := f.host("spine", addr); len(h) != 1 || h[0].State.String() != "active" {
				t.Errorf("spine shows %+v", h)
			}
		}
		f.only("path down", since, down)
		since = f.marks("i1", "i2", "t1")
		f.forward(true)
		up := overPath("active", "none")
		f.awaitAll(since, up)
		f.only("path up", since, up)
	}
	if c := f.awaitPath("tor1", "up", func(_ api.BFD, s api.BFDSession) bool { return !s.Fault }); c.Flaps != 2 || c.HoldUp < api.Duration(2*time.Second) {
		t.Errorf("two flaps, the second one damped: %+v", c)
	}
}

// The daemon may be killed, stopped or started again: nobody notices, whether the path
// works or fails meanwhile.
func TestADaemonThatIsAwayDoesNotTakeItsSessionsAlong(t *testing.T) {
	t.Parallel()
	f := pathFabric(t, "pathkill")
	f.kept()
	since := f.marks("i1", "i2", "t1")
	again := func() {
		f.rest(2 * detection)
		f.start("tor1")
		f.established("tor1")
		f.heardAgain("tor1", 2)
	}
	f.kill("tor1")
	again()
	f.stop("tor1")
	again()
	f.pathsUp()
	f.only("killed and stopped", since, nil)

	if _, err := f.lab.Signal("tor1", "inofd", unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f.rest(2 * detection)
	if _, err := f.lab.Signal("tor1", "inofd", unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	f.rest(detection)
	f.only("SIGSTOP of the daemon", since, nil)

	// Away while the path fails: told by the switch that is there, later by the other.
	f.kill("tor1")
	f.forward(false)
	down := overPath("inactive", "bfd-down")
	f.awaitAll(since, map[string][]notice{"i2": down["i2"]})
	f.start("tor1")
	f.awaitAll(since, down)
	f.only("away while the path failed", since, down)

	// A restart while the path fails tells nothing new.
	f.rest(detection)
	since = f.marks("i1", "i2", "t1")
	f.kill("tor1")
	again()
	f.only("restart while the path fails", since, nil)
	f.forward(true)
	up := overPath("active", "none")
	f.awaitAll(since, up)
	f.only("path up", since, up)
}

// A BFD process that was stopped for longer than the detection time: its peers see
// that, its own hosts are not told that all others are gone.
func TestABFDProcessThatWasStoppedDoesNotDeclareItsPeersDead(t *testing.T) {
	t.Parallel()
	f := pathFabric(t, "pathstop")
	since := f.marks("i1", "i2", "t1")
	f.signalBFD("tor1", unix.SIGSTOP)
	down, up := overPath("inactive", "bfd-down"), overPath("active", "none")
	f.awaitAll(since, map[string][]notice{"i2": down["i2"]})
	f.rest(detection)
	f.signalBFD("tor1", unix.SIGCONT)
	f.awaitAll(since, map[string][]notice{"i2": up["i2"]})
	f.pathsUp()
	f.rest(detection)
	f.only("SIGSTOP of the BFD process", since, map[string][]notice{"i2": append(slices.Clone(down["i2"]), up["i2"]...)})
}

// A BFD process that ends is started again: by SIGTERM without a fault, and killed
// without one if it is back within the detection time.
func TestABFDProcessThatEndsIsStartedAgain(t *testing.T) {
	t.Parallel()
	f := pathFabric(t, "pathproc")
	// A busy machine may take longer than a second to start a process.
	const detection = 3 * detection
	f.overwrite("spine", "inofd.yaml", strings.ReplaceAll(f.nodeConfig("spine"), "detect-multiplier: 5", "detect-multiplier: 15"))
	f.reload("spine")
	for _, n := range []string{"tor1", "tor2"} {
		f.awaitPath(n, "renegotiated", func(_ api.BFD, s api.BFDSession) bool {
			return s.State == "Up" && time.Duration(s.DetectTime) == detection
		})
	}
	since := f.marks("i1", "i2", "t1")
	for i, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		before, err := f.lab.Process("tor1", testbed.BFDProcess)
		if err != nil {
			t.Fatal(err)
		}
		f.signalBFD("tor1", sig)
		f.awaitPath("tor1", "watched by a new process", func(b api.BFD, s api.BFDSession) bool {
			return b.Process.Connected && b.Process.PID != before.PID && s.State == "Up"
		})
		f.pathsUp()
		f.rest(detection) // the next one is not to end it while it has only begun
		f.awaitCounter("tor1", "bfd_process.lost", uint64(i+1))
		if w := f.status("tor1").Warnings.String(); !hasAll(w, []string{"BFD process was lost"}) {
			t.Errorf("warnings %q", w)
		}
	}
	f.rest(6 * time.Second) // longer than a peer that was started again is waited for
	f.only("the BFD process ended", since, nil)
}

// Timers change by a reload of the reflector without a flap; BFD that is switched off
// ends the faults it found.
func TestAReloadOfTheReflectorReachesTheSessions(t *testing.T) {
	t.Parallel()
	f := pathFabric(t, "pathreload")
	config := f.nodeConfig("spine")
	set := func(bfd string) {
		f.overwrite("spine", "inofd.yaml", strings.ReplaceAll(config, "bfd: {interval: 200ms, detect-multiplier: 5}", bfd))
		f.reload("spine")
	}
	since := f.marks("i1", "i2", "t1")
	set("bfd: {interval: 300ms, detect-multiplier: 6}")
	for _, n := range []string{"tor1", "tor2"} {
		s := f.awaitPath(n, "renegotiated", func(_ api.BFD, s api.BFDSession) bool {
			return s.State == "Up" && time.Duration(s.DetectTime) == 1800*time.Millisecond && time.Duration(s.TxInterval) == 300*time.Millisecond
		})
		if s.Flaps != 0 {
			t.Errorf("%s: %d flaps", n, s.Flaps)
		}
	}
	f.only("new timers", since, nil)
	f.forward(false)
	down, up := overPath("inactive", "bfd-down"), overPath("active", "none")
	f.awaitAll(since, down)
	since = f.marks("i1", "i2", "t1")
	set("bfd: {enabled: false}")
	f.awaitAll(since, up)
	f.only("BFD is off", since, up)
	if o := f.ctl("tor1", "show", "bfd"); !strings.Contains(o.stdout, "off: the reflectors do not ask for it") {
		t.Errorf("%+v", o)
	}
}

// nodeConfig is what a node was started with.
func (f *fab) nodeConfig(node string) string {
	return readText(f.lab.NodeDir(node) + "/inofd.yaml")
}

// Sessions are authenticated, and their keys are changed by reloads without a flap. A
// key that the other side does not know is a path that fails.
func TestPathsAreAuthenticated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, k := range []string{"1", "2"} {
		if err := os.WriteFile(filepath.Join(dir, k), []byte("bfd key "+k+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys := func(ids ...string) string {
		var list []string
		for _, id := range ids {
			list = append(list, fmt.Sprintf("{id: %s, file: %s}", id, filepath.Join(dir, id)))
		}
		return "bfd: {auth: meticulous-keyed-sha1, keys: [" + strings.Join(list, ", ") + "]}\n"
	}
	first := func(c string) string { return c + keys("1") }
	f := newPathFabric(t, "pathauth", map[string]func(string) string{"tor1": first, "tor2": first})
	config := map[string]string{"tor1": f.nodeConfig("tor1"), "tor2": f.nodeConfig("tor2")}
	set := func(node string, ids ...string) {
		f.overwrite(node, "inofd.yaml", strings.ReplaceAll(config[node], keys("1"), keys(ids...)))
		f.reload(node)
	}
	since := f.marks("i1", "i2", "t1")
	for _, ids := range [][]string{{"1", "2"}, {"2", "1"}, {"2"}} {
		set("tor1", ids...)
		set("tor2", ids...)
		f.rest(2 * detection)
	}
	s := f.awaitPath("tor1", "up", func(_ api.BFD, s api.BFDSession) bool { return s.State == "Up" })
	if s.Flaps != 0 || s.Auth != "meticulous keyed SHA1" {
		t.Errorf("session %+v", s)
	}
	f.only("keys changed", since, nil)
	set("tor2", "1")
	down := overPath("inactive", "bfd-down")
	f.awaitAll(since, down)
	f.only("a wrong key", since, down)
}

// A host that speaks BFD in the name of another switch, to the switch that it is connected
// to, neither fails the path between the two nor is it read at all: the kernel drops it.
func TestAHostThatSpeaksBFDFailsNoPath(t *testing.T) {
	t.Parallel()
	f := pathFabric(t, "pathspoof")
	since := f.marks("i1", "i2", "t1")
	f.run("tor1", "ip", "addr", "add", "192.0.2.1/32", "dev", "eth2")
	f.run("tor1", "ip", "route", "add", init1+"/32", "dev", "eth2")
	f.run("i1", "ip", "addr", "add", tor2ID+"/32", "dev", "eth1")
	f.run("i1", "ip", "route", "add", "192.0.2.1/32", "dev", "eth1")
	f.run("i1", "ip", "route", "add", tor1ID+"/32", "via", "192.0.2.1", "dev", "eth1")
	overflow := func() uint64 {
		b, err := ask(f, "tor1", bfdOf)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(b.Process.Counters)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			BFD       bfd.Counters          `json:"bfd"`
			Transport bfd.TransportCounters `json:"transport"`
		}
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		if c.BFD.Unnamed+c.BFD.NoSession+c.BFD.BadTTL > 0 {
			t.Fatalf("what a host sent was read: %+v", c.BFD)
		}
		return c.Transport.RxOverflow
	}
	before := overflow()
	var conn net.Conn
	err := f.lab.Do("i1", func() (err error) {
		conn, err = net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(tor2ID), Port: 49152}, &net.UDPAddr{IP: net.ParseIP(tor1ID), Port: bfd.PortMultihop})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, st := range []bfd.State{bfd.StateDown, bfd.StateAdminDown} {
		p := bfd.Packet{State: st, DetectMult: 3, MyDiscr: 4711, DesiredMinTx: 200_000, RequiredMinRx: 200_000}
		for range 100 {
			if _, err := conn.Write(p.Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
	}
	labtest.Eventually(t, "the kernel to drop what the host sent", func() error {
		if n := overflow() - before; n < 200 {
			return fmt.Errorf("%d of 200 were dropped", n)
		}
		return nil
	})
	s := f.awaitPath("tor1", "up", func(_ api.BFD, s api.BFDSession) bool { return s.State == "Up" && !s.Fault })
	if s.Flaps != 0 {
		t.Errorf("session %+v", s)
	}
	f.only("spoofed", since, nil)
}

// A reflector that lost what it makes the keys of paths from hands out others: the paths go on
// with the old ones until both ends have the new, and nobody notices.
func TestAReflectorThatLosesItsPathSecretFlapsNoPath(t *testing.T) {
	t.Parallel()
	f := pathFabric(t, "pathsecret")
	f.kept()
	since := f.marks("i1", "i2", "t1")
	taken := map[string]uint64{}
	for _, n := range []string{"tor1", "tor2"} {
		taken[n] = f.counter(n, "mesh.keys_taken")
	}
	f.stop("spine")
	secrets, err := filepath.Glob(filepath.Join(f.lab.NodeDir("spine"), "*", "path-secret"))
	if err != nil || len(secrets) != 1 {
		t.Fatalf("secrets %v, %v", secrets, err)
	}
	if err := os.Remove(secrets[0]); err != nil {
		t.Fatal(err)
	}
	f.start("spine")
	for n, before := range taken {
		f.established(n)
		f.awaitCounter(n, "mesh.keys_taken", before+1)
	}
	f.rest(3 * detection)
	for n := range taken {
		if s := f.awaitPath(n, "up", func(_ api.BFD, s api.BFDSession) bool { return s.State == "Up" && !s.Fault }); s.Flaps != 0 {
			t.Errorf("%s: session %+v", n, s)
		}
	}
	f.only("another secret", since, nil)
}
