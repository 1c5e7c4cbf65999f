package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/model/serve"
	"github.com/openinof/inof/testbed/labtest"
)

// simulated is the example fabric of docs/examples/model with real daemons: sessions
// over TCP of the loopback interface, ports and hosts of the simulation.
type simulated struct {
	t      *testing.T
	dir    string
	net    string // 127.x.y., of this run alone
	fabric string
}

// newSimulated starts the fabric; it needs no namespaces.
func newSimulated(t *testing.T) *simulated {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	s := &simulated{t: t, dir: shortDir(t), net: fmt.Sprintf("127.%d.%d.", 1+os.Getpid()>>8&0x7f, os.Getpid()&0xff)}
	s.fabric = filepath.Join(s.dir, "f.sock")
	s.write("password", "a password of the test")
	s.start("inofctl", "fabric", "serve", "../../docs/examples/model/fabric.yaml", "--fabric", s.fabric)
	labtest.Eventually(t, "the fabric", func() error { _, err := s.status(); return err })
	return s
}

// shortDir is a directory whose name leaves room for the name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "inof")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (s *simulated) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *simulated) start(name string, args ...string) *proc {
	s.t.Helper()
	c := exec.Command(suite.Program(s.t, name), args...)
	return launch(s.t, c, c)
}

// daemon starts the daemon of a switch with the configuration of the example, moved to
// the directory and addresses of this run.
func (s *simulated) daemon(name string, more string) *proc {
	s.t.Helper()
	text, err := os.ReadFile("../../docs/examples/model/" + name + ".yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	moved := strings.NewReplacer("/tmp/inof-model/fabric.sock", s.fabric, "/tmp/inof-model", s.dir, "127.0.0.", s.net).Replace(string(text))
	return s.start("inofd", "run", "-c", s.write(name+".yaml", moved+more))
}

func (s *simulated) ctl(args ...string) (string, error) {
	out, err := exec.Command(suite.Program(s.t, "inofctl"), args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("inofctl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

func (s *simulated) fault(args ...string) {
	s.t.Helper()
	if _, err := s.ctl(append([]string{"fabric", "fault", "--fabric", s.fabric}, args...)...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *simulated) status() (st serve.Status, err error) {
	out, err := s.ctl("-o", "json", "fabric", "status", "--fabric", s.fabric)
	if err == nil {
		err = json.Unmarshal([]byte(out), &st)
	}
	return st, err
}

// told waits until the initiator's first port was told this last about an address.
func (s *simulated) told(addr, state, reason string) {
	s.t.Helper()
	labtest.Eventually(s.t, addr+" "+state, func() error {
		st, err := s.status()
		if err != nil {
			return err
		}
		for _, h := range st.Hosts[0].Ports[0].Heard {
			if h.Subject.String() == addr && h.State.String() == state && h.Reason.String() == reason {
				return nil
			}
		}
		return fmt.Errorf("%+v", st.Hosts[0].Ports[0].Heard)
	})
}

// paths waits until the load uses so many paths and I/O goes on.
func (s *simulated) paths(n int) {
	s.t.Helper()
	done := uint64(0)
	labtest.Eventually(s.t, fmt.Sprintf("%d paths", n), func() error {
		st, err := s.status()
		if err != nil {
			return err
		}
		l := st.Loads[0]
		before := done
		done = l.Done
		if l.PathsUp != n || before == 0 || l.Done == before {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
}

// notices counts what all hosts were told so far.
func (s *simulated) notices() int {
	st, err := s.status()
	if err != nil {
		s.t.Fatal(err)
	}
	n := 0
	for _, e := range st.Events {
		if strings.HasPrefix(e.Text, "notice") {
			n++
		}
	}
	return n
}

// Real daemons on a simulated fabric: hosts are learned and told of a cut, I/O moves to
// the other path and back; a daemon that is killed and started again tells nobody
// anything; a storm is read from the simulated counters.
func TestDaemonsOnASimulatedFabric(t *testing.T) {
	t.Parallel()
	s := newSimulated(t)
	s.daemon("spine", "")
	leaf1 := s.daemon("leaf1", "")
	s.daemon("leaf2", "error-down: {pfc-storm: {action: notify, detect: 10ms, deadlocks: 1, window: 1s, hold-up: 1s}}\n")
	const array, other = "10.0.0.3", "10.0.0.4" // on leaf2 and on leaf1
	s.told(array, "active", "none")
	s.told(other, "active", "none")
	out, err := s.ctl("--socket", filepath.Join(s.dir, "leaf1.sock"), "show", "host")
	if err != nil || strings.Count(out, "10.0.0.") != 4 || strings.Count(out, "local") != 3+3 && strings.Count(out, "remote") != 1 {
		t.Errorf("%v\n%s", err, out)
	}
	s.paths(2)

	s.fault("link-down", "t0-leaf2")
	s.told(array, "inactive", "link-down")
	s.paths(1)
	s.fault("link-up", "t0-leaf2")
	s.told(array, "active", "none")
	s.paths(2)

	before := s.notices()
	leaf1.signal(unix.SIGKILL)
	leaf1.exit()
	s.daemon("leaf1", "")
	labtest.Eventually(t, "the daemon that was started again", func() error {
		out, err := s.ctl("--socket", filepath.Join(s.dir, "leaf1.sock"), "show", "host")
		if err == nil && strings.Count(out, "10.0.0.") != 4 {
			err = fmt.Errorf("%s", out)
		}
		return err
	})
	// Whatever it had to say after its start it said before this reached the host.
	s.fault("storm", "t0/0", "--for", "5s")
	s.told(array, "inactive", "pfc-storm")
	s.told(array, "active", "none")
	if n := s.notices() - before; n != 2*2 { // two each for both ports of the initiator
		st, _ := s.status()
		t.Errorf("the hosts were told %d things, want 4: %+v", n, st.Events)
	}
}
