package units

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/testbed/labtest"
)

// installHost does what docs/hosts.md says, but for what needs another kernel.
func installHost(m *machine) {
	m.t.Helper()
	b, err := os.ReadFile("../../docs/hosts.md")
	if err != nil {
		m.t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(b), "## 1. Install")
	block := regexp.MustCompile("(?s)```\n(install .*?)```").FindStringSubmatch(chapter)
	if block == nil {
		m.t.Fatal("docs/hosts.md does not say how to install")
	}
	for to, from := range map[string]string{"bin/snsd": suite.Program(m.t, "snsd"), "dist/systemd/snsd.service": "../../dist/systemd/snsd.service"} {
		b, err := os.ReadFile(from)
		if err != nil {
			m.t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(m.at("/root/"+to)), 0o755); err != nil {
			m.t.Fatal(err)
		}
		if err := os.WriteFile(m.at("/root/"+to), b, 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	for line := range strings.Lines(block[1]) {
		if strings.HasPrefix(line, "install ") {
			m.run(line)
		}
	}
	// There is no journal here, and a test does not wait for ten seconds.
	m.run("mkdir -p /etc/systemd/system/snsd.service.d /etc/snsd")
	m.write("/etc/systemd/system/snsd.service.d/test.conf", "[Service]\nStandardError=append:/var/log/inof.log\nWatchdogSec=2s\nTimeoutAbortSec=500ms\n")
	m.run("systemctl daemon-reload")
}

// agent waits until the agent's status is as wanted.
func (m *machine) agent(what string, good func(*hostagent.Status) bool) {
	m.t.Helper()
	labtest.Eventually(m.t, what, func() error {
		out, err := m.try("snsd status -o json")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		var s hostagent.Status
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			return err
		}
		if !good(&s) {
			return errors.New(out)
		}
		return nil
	})
}

// registers reports whether exactly these ports have registered something.
func registers(names ...string) func(*hostagent.Status) bool {
	return func(s *hostagent.Status) bool {
		var got []string
		for _, p := range s.Ports {
			if p.Link == "up" && p.Counters.Registrations > 0 {
				got = append(got, p.Interface)
			}
		}
		return slices.Equal(got, names)
	}
}

const (
	hostPort    = "ports:\n  - {interface: Ethernet0, protocol: tcp}\n"
	hostMetrics = "metrics: 127.0.0.1:9116\n"
)

// The unit of a storage host starts as the document says, on a kernel without NVMe too; a reload
// takes what is new and keeps what it has where the file is wrong; the watchdog has an agent that
// does not answer start anew; the metrics are there.
func TestTheUnitOfAStorageHost(t *testing.T) {
	m := boot(t)
	installHost(m)
	m.run("ip addr add 192.0.2.1/24 dev Ethernet0; ip link add Ethernet1 type veth peer name host1; ip link set Ethernet1 up; ip link set host1 up; ip addr add 198.51.100.1/24 dev Ethernet1")
	m.write("/etc/snsd/snsd.yaml", hostPort+hostMetrics)
	m.run("snsd check /etc/snsd/snsd.yaml; systemctl enable --now snsd")
	if s := m.run("systemctl is-active snsd; systemctl is-enabled snsd"); s != "active\nenabled" {
		t.Errorf("the unit is %s", s)
	}
	m.agent("the port to be registered", registers("Ethernet0"))
	if _, err := os.Stat("/sys/class/nvme"); err != nil {
		if s := m.run("cat /var/log/inof.log"); !strings.Contains(s, "no NVMe yet: modprobe nvme-tcp") {
			t.Errorf("without NVMe it says: %s", s)
		}
		if s, err := m.try("snsd doctor"); err == nil || !strings.Contains(s, "modprobe nvme-tcp") {
			t.Errorf("doctor: %v, %s", err, s)
		}
	}
	page := m.run(`bash -c 'exec 3<>/dev/tcp/127.0.0.1/9116; printf "GET /metrics HTTP/1.0\r\n\r\n" >&3; cat <&3'`)
	for _, want := range []string{`snsd_link_up{interface="Ethernet0"} 1`, `snsd_notices_total{interface="Ethernet0"} 0`, `snsd_hooks_total{result="done"} 0`} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("metrics have no %s: %s", want, page)
		}
	}

	// Reloads: one more port, nonsense, one port less.
	pid := m.show("snsd", "MainPID")
	m.write("/etc/snsd/snsd.yaml", hostPort+"  - {interface: Ethernet1, protocol: tcp}\n"+hostMetrics)
	m.run("systemctl reload snsd")
	m.agent("the second port to be registered", registers("Ethernet0", "Ethernet1"))
	m.write("/etc/snsd/snsd.yaml", "prots: []\n")
	m.run("systemctl reload snsd")
	labtest.Eventually(t, "the agent to say what is wrong", func() error {
		if s := m.run("cat /var/log/inof.log"); !strings.Contains(s, "the old configuration stays") || !strings.Contains(s, "field prots not found") {
			return errors.New(s)
		}
		return nil
	})
	m.agent("both ports, as before", registers("Ethernet0", "Ethernet1"))
	m.write("/etc/snsd/snsd.yaml", hostPort+hostMetrics)
	m.run("systemctl reload snsd")
	m.agent("one port", registers("Ethernet0"))
	if now := m.show("snsd", "MainPID"); now != pid || m.show("snsd", "NRestarts") != "0" {
		t.Errorf("reloads left process %s, before %s", now, pid)
	}

	// An agent that stands still.
	m.run("kill -STOP " + pid)
	labtest.Eventually(t, "the watchdog to start it anew", func() error {
		if now := m.show("snsd", "MainPID"); now == "0" || now == pid || m.show("snsd", "ActiveState") != "active" {
			return fmt.Errorf("process %s, before %s, %s", now, pid, m.show("snsd", "ActiveState"))
		}
		return nil
	})
	m.agent("the port, after the watchdog", registers("Ethernet0"))
	pid = m.show("snsd", "MainPID")
	for range 3 { // three times the dog's patience
		m.run("sleep 2")
	}
	if now := m.show("snsd", "MainPID"); now != pid {
		t.Error("the watchdog bites an agent that answers")
	}
	m.run("systemctl stop snsd")
	if s := m.show("snsd", "ActiveState") + " " + m.show("snsd", "Result"); s != "inactive success" {
		t.Errorf("stopped, it is %s", s)
	}
	if s := m.run("tail -n 3 /var/log/inof.log"); !strings.Contains(s, "withdrawn") {
		t.Errorf("at its end it says: %s", s)
	}
}

// The package of the agent starts nothing by itself, is upgraded without a good-bye, and leaves
// nothing behind.
func theAgentFromInstallToPurge(m *machine, deb string) {
	t := m.t
	m.copy(map[string]string{"/root/snsd.deb": deb, "/root/later.deb": newer(t, deb)})
	m.run("rm -f /usr/sbin/policy-rc.d")
	if out := m.run("dpkg -i snsd.deb 2>&1"); !strings.Contains(out, "write /etc/snsd/snsd.yaml") {
		t.Errorf("without a configuration dpkg says: %s", out)
	}
	if s := m.show("snsd", "ActiveState"); s != "inactive" {
		t.Errorf("without a configuration it is %s", s)
	}
	m.run("zcat /usr/share/man/man8/snsd.8.gz | grep -q '^.SH NAME'; snsd check /usr/share/doc/snsd/examples/snsd.yaml")
	m.run("mkdir -p /etc/snsd; ip addr add 192.0.2.1/24 dev Ethernet0")
	m.write("/etc/snsd/snsd.yaml", hostPort)
	m.run("systemctl enable --now snsd")
	m.agent("the port to be registered", registers("Ethernet0"))
	before := m.show("snsd", "MainPID")
	m.run("dpkg -i later.deb")
	m.agent("the port to be registered by the new one", registers("Ethernet0"))
	if now := m.show("snsd", "MainPID"); now == before {
		t.Errorf("after the upgrade the old agent runs on")
	}
	m.run("dpkg -P snsd")
	if s := m.run("ls -d /etc/snsd /usr/sbin/snsd /lib/systemd/system/snsd* 2>/dev/null || true; pgrep -x snsd || true"); s != "" {
		t.Errorf("after the purge there is still %s", s)
	}
}
