package netnstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// EnvSonicVS names the script sonic-vs, which runs a SONiC switch without an ASIC: the real
// orchagent, portmgrd and syncd with a virtual ASIC. It is no part of this repository.
const EnvSonicVS = "INOF_SONIC_VS"

// Switch is a running SONiC switch; all tests of a process share it.
type Switch struct {
	tool, dir string
	hold      io.Closer // as long as it is open the switch runs
	programs  map[string]program
}

// program is one of the switch as it was started.
type program struct{ args, env []string }

// In the order in which SONiC starts them.
var sonicPrograms = []string{"syncd", "portsyncd", "orchagent", "portmgrd", "buffermgrd"}

var sonicSwitch = sync.OnceValues(startSonic)

// SONiC returns the switch, with all ports up and no ACL table of ours.
func SONiC(t testing.TB) *Switch {
	t.Helper()
	if os.Getenv(EnvSonicVS) == "" {
		what := EnvSonicVS + " does not name the script sonic-vs: nothing is tried with a real orchagent"
		note(t.Name(), what, "")
		t.Skipf("SKIPPED: %s", what)
	}
	Programs(t, "redis-server")
	s, err := sonicSwitch()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func startSonic() (*Switch, error) {
	dir, err := os.MkdirTemp("/tmp", "svs")
	if err != nil {
		return nil, err
	}
	s := &Switch{tool: os.Getenv(EnvSonicVS), dir: dir}
	// It ends with this process, however that ends.
	end := exec.Command("sh", "-c", `cat >/dev/null; "$0" down "$1"; rm -rf "$1"`, s.tool, dir)
	if s.hold, err = end.StdinPipe(); err != nil {
		return nil, err
	}
	if err := end.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	up := exec.CommandContext(ctx, s.tool, "up", dir)
	log, err := os.Create(filepath.Join(dir, "up.log")) // no pipe: what it starts would hold it open
	if err != nil {
		return nil, err
	}
	defer log.Close()
	up.Stdout, up.Stderr = log, log
	if err := up.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%s up: %w: %s", s.tool, err, text)
	}
	s.programs = map[string]program{}
	for _, name := range sonicPrograms {
		var p [2][]string
		for i, file := range []string{"cmdline", "environ"} {
			b, err := os.ReadFile("/proc/" + s.pid(name) + "/" + file)
			if err != nil {
				return nil, fmt.Errorf("%s of sonic-vs: %w", name, err)
			}
			p[i] = strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
		}
		s.programs[name] = program{p[0], p[1]}
	}
	return s, s.begin(ctx)
}

// begin waits until the switch counts.
func (s *Switch) begin(ctx context.Context) error {
	for ; !s.counts(); time.Sleep(100 * time.Millisecond) {
		if ctx.Err() != nil {
			return errors.New("the counters and the PFC watchdog of sonic-vs have not begun")
		}
	}
	return nil
}

// counts reports whether the flex counters and the watchdog have begun.
func (s *Switch) counts() bool {
	redis := func(args ...string) string {
		out, _ := exec.Command(s.tool, append([]string{"in", s.dir, "redis-cli", "-s", "/run/redis/redis.sock", "-n", "2"}, args...)...).Output()
		return strings.TrimSpace(string(out))
	}
	queue := redis("hget", "COUNTERS_QUEUE_NAME_MAP", "Ethernet12:4")
	port := redis("hget", "COUNTERS_PORT_NAME_MAP", "Ethernet28")
	return redis("hget", "COUNTERS:"+queue, "PFC_WD_STATUS") != "" && redis("hget", "COUNTERS:"+queue, "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS") != "" &&
		redis("hget", "COUNTERS:"+port, "SAI_PORT_STAT_IF_IN_ERRORS") != ""
}

func (s *Switch) pid(name string) string {
	b, _ := os.ReadFile(filepath.Join(s.dir, name+".pid"))
	return strings.TrimSpace(string(b))
}

// Redis is the path of the switch's own Redis.
func (s *Switch) Redis() string { return "/proc/" + s.pid("redis") + "/root/run/redis/redis.sock" }

// NetNS is the path of the network namespace that has the ports.
func (s *Switch) NetNS() string { return "/proc/" + s.pid("redis") + "/ns/net" }

func (s *Switch) run(t testing.TB, verb string, args ...string) string {
	t.Helper()
	out, err := exec.Command(s.tool, append([]string{verb, s.dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s %q: %v: %s", s.tool, verb, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// In runs a command inside the switch.
func (s *Switch) In(t testing.TB, args ...string) string { t.Helper(); return s.run(t, "in", args...) }

// Hosts runs a command at the other end of the cables: h1 is at Ethernet0, h2 at Ethernet4.
func (s *Switch) Hosts(t testing.TB, args ...string) string {
	t.Helper()
	return s.run(t, "hosts", args...)
}

// DB sends a command to a database of the switch.
func (s *Switch) DB(t testing.TB, number int, args ...string) string {
	t.Helper()
	return s.In(t, append([]string{"redis-cli", "-s", "/run/redis/redis.sock", "-n", fmt.Sprint(number)}, args...)...)
}

// Stat sets a statistic of the virtual ASIC, which the flex counters then read.
func (s *Switch) Stat(t testing.TB, kind, name string, stats ...string) {
	t.Helper()
	s.In(t, append([]string{"/usr/bin/python3", filepath.Join(filepath.Dir(s.tool), "stat.py"), kind, name}, stats...)...)
}

// Stop stops a program of the switch as if it hung (orchagent, syncd), until the test ends.
func (s *Switch) Stop(t testing.TB, program string) {
	t.Helper()
	pid := s.pid(program)
	if pid == "" {
		t.Fatal(errors.New("no such program: " + program))
	}
	s.In(t, "kill", "-STOP", pid)
	t.Cleanup(func() { s.In(t, "kill", "-CONT", pid) })
}

// Kill ends a program of the switch. Nothing starts it again but Restart.
func (s *Switch) Kill(t testing.TB, program string) {
	t.Helper()
	s.In(t, "kill", "-KILL", s.pid(program))
}

// Restart ends all programs of the switch and starts them with empty databases except CONFIG_DB, as
// SONiC does when one of them has died. The ports of the kernel go and come again.
func (s *Switch) Restart(t testing.TB) {
	t.Helper()
	for _, name := range sonicPrograms {
		_ = exec.Command(s.tool, "in", s.dir, "kill", "-KILL", s.pid(name)).Run() // it may be dead
	}
	for _, db := range []int{0, 1, 2, 5, 6} {
		s.DB(t, db, "flushdb")
	}
	ready := map[string]string{"syncd": "ASIC_STATE_CHANNEL@1", "orchagent": "PORT_TABLE_CHANNEL@0"}
	for _, name := range sonicPrograms {
		p := s.programs[name]
		args := append([]string{"env", "-i"}, p.env...)
		args = append(args, "sh", "-c", `cd "$0" && n=$1 && shift && (setsid "$@" >>"$n.log" 2>&1 & echo $! >"$n.pid")`, s.dir, name)
		s.In(t, append(args, p.args...)...)
		if channel := ready[name]; channel != "" {
			s.listens(t, channel)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.begin(ctx); err != nil {
		t.Fatal(err)
	}
}

// listens waits until a program is subscribed to a channel.
func (s *Switch) listens(t testing.TB, channel string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); strings.HasSuffix(s.DB(t, 0, "pubsub", "numsub", channel), "\n0"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is subscribed to " + channel)
		}
	}
}
