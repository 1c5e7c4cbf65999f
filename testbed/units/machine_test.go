package units

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/labtest"
)

var suite = labtest.New("units")

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }

// machine has a systemd as its first process: in namespaces of its own (testdata/boot.sh), or in a
// virtual machine.
type machine struct {
	t      testing.TB
	pid    int                                 // of its first process, in namespaces
	exec   func(script string) ([]byte, error) // in a virtual machine
	shared string                              // directory that it has as /lab/node
}

// boot starts a machine, which ends with the test. It has a cable: Ethernet0 leads to
// the interface host0.
func boot(t testing.TB) *machine {
	t.Helper()
	labtest.RequireNetns(t)
	netnstest.Programs(t, "systemctl", "systemd-sysusers")
	var err error
	if os.Geteuid() != 0 {
		err = errors.New("it needs root")
	}
	netnstest.Require(t, "a machine with a systemd of its own", err)
	dir, err := os.MkdirTemp("", "inof-units-machine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	var said bytes.Buffer
	c := exec.Command("bash", "testdata/boot.sh", dir)
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- c.Wait() }()
	m := &machine{t: t}
	t.Cleanup(func() {
		if t.Failed() && m.pid != 0 {
			out, _ := m.try("systemctl --no-pager status 'inofd*' || true; cat /var/log/inof.log")
			t.Logf("the machine says:\n%s", out)
		}
		_ = c.Process.Signal(os.Interrupt)
		<-over
	})
	labtest.Eventually(t, "systemd to run", func() error {
		select {
		case err := <-over:
			over <- err
			netnstest.Require(t, "a machine with a systemd of its own", fmt.Errorf("%w: %s", err, said.String()))
		default:
		}
		if m.pid = systemd(c.Process.Pid); m.pid == 0 {
			return errors.New("it has not begun")
		}
		out, err := m.try("systemctl is-active multi-user.target && mkdir -p /run/systemd/system.control")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	m.run(cable)
	return m
}

// cable gives a machine Ethernet0. The addresses are those of the examples.
const cable = "ip link set lo up; ip link add Ethernet0 type veth peer name host0; ip link set Ethernet0 up; ip link set host0 up; ip addr add 192.0.2.11/32 dev lo; ip addr add 192.0.2.250/32 dev lo"

// systemd finds the first process of a machine below pid; 0: there is none yet.
func systemd(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, f := range strings.Fields(string(b)) {
		child, _ := strconv.Atoi(f)
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child)); string(comm) == "systemd\n" {
			return child
		}
		if p := systemd(child); p != 0 {
			return p
		}
	}
	return 0
}

// try runs a shell script in the machine, as root.
func (m *machine) try(script string) (string, error) {
	script = "cd /root; " + script
	if m.exec != nil {
		out, err := m.exec("set -e; " + script)
		return strings.TrimSpace(string(out)), err
	}
	c := exec.Command("nsenter", "--target", strconv.Itoa(m.pid), "--all",
		"env", "-i", "HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "sh", "-ec", script)
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// run is try that must succeed.
func (m *machine) run(script string) string {
	m.t.Helper()
	out, err := m.try(script)
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

// at is the path of one of the machine's files here.
func (m *machine) at(file string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", m.pid), file)
}

func (m *machine) write(file, text string) {
	m.t.Helper()
	to := m.at(file)
	if m.exec != nil {
		to = filepath.Join(m.shared, "file")
	}
	if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
	if m.exec != nil {
		m.run("cp /lab/node/file " + file)
	}
}

// copy puts files of this machine there, by their names there.
func (m *machine) copy(files map[string]string) {
	m.t.Helper()
	for to, from := range files {
		b, err := os.ReadFile(from)
		if err != nil {
			m.t.Fatal(err)
		}
		m.write(to, string(b))
	}
}

// show is a property of a unit.
func (m *machine) show(unit, property string) string {
	m.t.Helper()
	return m.run("systemctl show --value -p " + property + " " + unit)
}
