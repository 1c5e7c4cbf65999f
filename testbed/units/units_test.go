package units

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/labtest"
)

// steps are the shell lines of the chapter about installation, block by block.
func steps(t testing.TB) []string {
	t.Helper()
	b, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(b), "## Install on a switch")
	chapter, _, _ = strings.Cut(chapter, "\n##") // the next one, or one within it
	var out []string
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(chapter, -1) {
		out = append(out, m[1])
	}
	if len(out) != 3 {
		t.Fatalf("%d blocks: %q", len(out), out)
	}
	return out
}

// slice is a setting of the kernel, which a machine may share with this one.
const slice = "/proc/sys/kernel/sched_rr_timeslice_ms"

// keepSlice has the setting at the end of the test be what it is now.
func keepSlice(t testing.TB) {
	was, err := os.ReadFile(slice)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(slice, was, 0); err != nil {
			t.Error(err)
		}
	})
}

// install does what the document says, with one of its example files, up to the start.
func install(m *machine, example string, password bool) (start string) {
	m.t.Helper()
	keepSlice(m.t)
	for _, dir := range []string{"bin", "dist/systemd", "docs/examples"} {
		if err := os.MkdirAll(m.at(filepath.Join("/root", dir)), 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	files := map[string]string{"bin/inofd": suite.Program(m.t, "inofd"), "bin/inofctl": suite.Program(m.t, "inofctl")}
	for _, f := range []string{"dist/systemd/inofd.service", "dist/systemd/inofd-bfd.service", "dist/systemd/inof.sysusers", "dist/systemd/inofd.sysctl", "docs/examples/" + example} {
		files[f] = filepath.Join("../..", f)
	}
	for to, from := range files {
		b, err := os.ReadFile(from)
		if err != nil {
			m.t.Fatal(err)
		}
		if err := os.WriteFile(m.at(filepath.Join("/root", to)), b, 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	s := steps(m.t)
	m.run(s[0])
	m.run("install -m 644 docs/examples/" + example + " /etc/inof/inofd.yaml")
	if password {
		m.run("echo 'a password of the fabric' |" + s[1])
	}
	// There is no journal here.
	for _, u := range []string{"inofd", "inofd-bfd"} {
		m.run("mkdir -p /etc/systemd/system/" + u + ".service.d")
		m.write("/etc/systemd/system/"+u+".service.d/log.conf", "[Service]\nStandardError=append:/var/log/inof.log\n")
	}
	m.run("systemctl daemon-reload")
	return s[2]
}

// The units start, reload, restart and stop on systemd 252 as the document says, as a
// user of their own that can do what is needed and nothing else.
func TestTheUnitsOfAClient(t *testing.T) {
	m := boot(t)
	start := install(m, "client.yaml", true)
	if out := m.run("setpriv --reuid inof --regid inof --clear-groups inofd check /etc/inof/inofd.yaml"); !strings.Contains(out, "good") {
		t.Errorf("check as the daemon's user: %s", out)
	}
	m.run("mountpoint -q /sys/fs/bpf || mount -t bpf -o mode=700 bpf /sys/fs/bpf; chmod 700 /sys/fs/bpf")
	m.run(start)
	may := func(caps ...int) string {
		sum := 0
		for _, c := range caps {
			sum |= 1 << c
		}
		return fmt.Sprintf("%016x", sum)
	}
	for unit, caps := range map[string]string{
		"inofd":     may(unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_NET_BIND_SERVICE),
		"inofd-bfd": may(unix.CAP_NET_ADMIN, unix.CAP_IPC_LOCK, unix.CAP_SYS_NICE),
	} {
		if s := m.run("systemctl is-active " + unit + "; systemctl is-enabled " + unit); s != "active\nenabled" {
			t.Errorf("%s is %s", unit, s)
		}
		pid := m.show(unit, "MainPID")
		if s := m.run("stat -c %U /proc/" + pid); s != "inof" {
			t.Errorf("%s runs as %s", unit, s)
		}
		if s := m.run("sed -n 's/^CapEff:[[:space:]]*//p' /proc/" + pid + "/status"); s != caps {
			t.Errorf("%s has the capabilities %s, want %s", unit, s, caps)
		}
	}
	if s := m.run("stat -c '%U %G %a' /run/inof/inofd.sock"); s != "inof inof 660" {
		t.Errorf("the socket: %s", s)
	}
	if s := m.run("inofctl show port"); !strings.Contains(s, "Ethernet0") {
		t.Errorf("ports: %s", s)
	}
	labtest.Eventually(t, "BFD at its priority", func() error {
		_, err := m.try(`grep '"SCHED_FIFO 10, memory locked"' /var/log/inof.log`)
		return err
	})
	if s := m.run("cat /var/log/inof.log"); strings.Contains(s, "not permitted") || strings.Contains(s, "denied") {
		t.Errorf("something is forbidden: %s", s)
	}

	daemon, bfd := m.show("inofd", "MainPID"), m.show("inofd-bfd", "MainPID")
	m.run("sed -i 's/level: info/level: debug/' /etc/inof/inofd.yaml; systemctl reload inofd")
	if s := m.run("inofctl reload"); !strings.Contains(s, "nothing has changed") {
		t.Errorf("after a reload of the unit: %s", s)
	}
	m.run("cp /etc/inof/inofd.yaml good; echo 'nonsense: 1' >>/etc/inof/inofd.yaml")
	if out, err := m.try("systemctl reload inofd"); err == nil {
		t.Errorf("a broken configuration is reloaded: %s", out)
	}
	m.run("cp good /etc/inof/inofd.yaml; systemctl reload inofd")
	if now := m.show("inofd", "MainPID"); now != daemon || m.show("inofd", "ActiveState") != "active" {
		t.Errorf("reloads left process %s, before %s, %s", now, daemon, m.show("inofd", "ActiveState"))
	}

	m.run("kill -9 " + daemon)
	labtest.Eventually(t, "inofd to come back", func() error {
		if now := m.show("inofd", "MainPID"); now == "0" || now == daemon || m.show("inofd", "ActiveState") != "active" {
			return fmt.Errorf("process %s, before %s", now, daemon)
		}
		return nil
	})
	m.run("systemctl restart inofd")
	if now := m.show("inofd-bfd", "MainPID"); now != bfd {
		t.Errorf("BFD process %s, before the restart of inofd %s", now, bfd)
	}
	m.run("systemctl stop inofd-bfd inofd")
	for _, unit := range []string{"inofd", "inofd-bfd"} {
		if s := m.show(unit, "ActiveState") + " " + m.show(unit, "Result"); s != "inactive success" {
			t.Errorf("%s is stopped: %s", unit, s)
		}
	}
}

// A device that needs no password starts without its file.
func TestTheUnitsNeedNoPassword(t *testing.T) {
	for _, c := range []struct{ name, example, more string }{
		{"standalone", "standalone.yaml", ""},
		{"certificates", "reflector.yaml", "session: {auth: tls, certificate-file: /etc/inof/device.pem, key-file: /etc/inof/device.key, ca-file: /etc/inof/ca.pem}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := boot(t)
			start := install(m, c.example, false)
			if c.more != "" {
				b, err := os.ReadFile(m.at("/etc/inof/inofd.yaml"))
				if err != nil {
					t.Fatal(err)
				}
				text := regexp.MustCompile(`(?m)^session:\n(  .*\n)+`).ReplaceAllString(string(b), c.more)
				m.write("/etc/inof/inofd.yaml", text)
				labtest.NewAuthority(t, "CA").Issue(m.at("/etc/inof"), "192.0.2.250")
				m.run("chown inof:inof /etc/inof/device.*; chmod 644 /etc/inof/ca.pem")
			}
			m.run(start)
			if s := m.run("inofctl show status"); !strings.Contains(s, "192.0.2.") {
				t.Errorf("status: %s", s)
			}
			labtest.Eventually(t, "the BFD unit to end, where there is nothing to do", func() error {
				if s := m.show("inofd-bfd", "ActiveState") + " " + m.show("inofd-bfd", "Result"); s != "inactive success" {
					return fmt.Errorf("it is %s", s)
				}
				return nil
			})
			if s := m.show("inofd", "ActiveState") + " " + m.show("inofd", "NRestarts"); s != "active 0" {
				t.Errorf("inofd is %s", s)
			}
		})
	}
}

// What systemd thinks of the units: 0 is a process that can do nothing, 100 one that can do all.
func TestTheUnitsAreConfined(t *testing.T) {
	netnstest.Programs(t, "systemd-analyze")
	// inofd may load programs into the kernel (carrier, hard zoning).
	for u, most := range map[string]string{"inofd": "27", "inofd-bfd": "25", "snsd": "40"} { // the last one is root, for sysfs
		c := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold="+most, "../../dist/systemd/"+u+".service")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", u, err, out)
		}
	}
}

// What the kernel ends first when memory is short, and at which size a process ends itself, go
// together: none of ours may take the machine, none is what others' want of memory ends first,
// and the one that others hang on, the process of BFD, is spared before its owner. What is
// bounded in bytes is above what its documents say that it takes, and what is bounded by a part
// of the machine leaves it the larger part.
func TestMemoryAndOOMScoresGoTogether(t *testing.T) {
	type bounds struct {
		score int
		most  string
	}
	read := func(unit string) (b bounds) {
		text, err := os.ReadFile("../../dist/systemd/" + unit + ".service")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
			case "OOMScoreAdjust":
				if b.score, err = strconv.Atoi(value); err != nil {
					t.Fatalf("%s: %v", unit, err)
				}
			case "MemoryMax":
				b.most = value
			case "Restart":
				if value == "no" {
					t.Errorf("%s: who ends at its bound does not come back", unit)
				}
			}
		}
		return b
	}
	daemon, paths, agent := read("inofd"), read("inofd-bfd"), read("snsd")
	for unit, b := range map[string]bounds{"inofd": daemon, "inofd-bfd": paths, "snsd": agent} {
		// -1000 would keep the kernel from ending it at its own MemoryMax too.
		if b.score > -500 || b.score <= -1000 {
			t.Errorf("%s: OOMScoreAdjust %d, want less than -500 and more than -1000", unit, b.score)
		}
		if percent, is := strings.CutSuffix(b.most, "%"); is {
			if n, err := strconv.Atoi(percent); err != nil || n < 10 || n > 50 {
				t.Errorf("%s: MemoryMax %s of the machine, want 10..50", unit, b.most)
			}
		} else if mib, is := strings.CutSuffix(b.most, "M"); !is {
			t.Errorf("%s: MemoryMax %q, want a bound in percent or M", unit, b.most)
		} else if n, err := strconv.Atoi(mib); err != nil || n < 128 || n > 1024 {
			t.Errorf("%s: MemoryMax %s, want 128M..1024M", unit, b.most)
		}
	}
	if paths.score >= daemon.score {
		t.Errorf("the process of BFD has %d, its owner %d: it goes first, and all paths with it", paths.score, daemon.score)
	}
}
