package units

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/labtest"
	"github.com/openinof/inof/testbed/vm"
)

// EnvDebian names the directory of a Debian for a virtual machine, which scripts/debian made.
const EnvDebian = "INOF_DEBIAN"

// bootDebian starts Debian itself: its kernel and its systemd, with nothing but what a server has.
func bootDebian(t *testing.T, image string) *machine {
	t.Helper()
	netnstest.Programs(t, "qemu-system-x86_64", "dpkg-deb")
	dir := t.TempDir()
	socket := filepath.Join(dir, "vm.sock")
	ctx, cancel := context.WithCancel(context.Background())
	ready, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- vm.Run(ctx, vm.Config{Name: "debian", Dir: dir, Bin: dir, Image: image, Socket: socket, Memory: 1536, CPUs: 2, Ready: func() { close(ready) }})
	}()
	t.Cleanup(func() { cancel(); <-over })
	began := time.Now()
	select {
	case <-ready:
	case err := <-over:
		over <- err
		t.Fatal(err)
	case <-time.After(5 * time.Minute):
		t.Fatal("Debian does not come up")
	}
	m := &machine{t: t, shared: filepath.Join(dir, "share")}
	m.exec = func(script string) ([]byte, error) {
		// Bounded there: scripts run one at a time, and one that hangs must not hide why.
		r, err := vm.Do(ctx, socket, vm.Quote([]string{"timeout", "-k", "5", "300", "sh", "-c", script}))
		if err == nil && r.Status != 0 {
			err = fmt.Errorf("exit status %d", r.Status)
		}
		return r.Output, err
	}
	labtest.Eventually(t, "Debian to be up", func() error {
		out, err := m.try("systemctl is-system-running")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	t.Logf("%s, up after %.1f s", m.run("uname -r; . /etc/os-release; echo $PRETTY_NAME"), time.Since(began).Seconds())
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := m.try("ps -eLo pid,cls,rtprio,pcpu,stat,wchan:20,comm --sort -pcpu | head -n 15; systemctl --no-pager list-jobs; journalctl --no-pager -n 50 -u 'inofd*' -u snsd")
			t.Logf("the machine says:\n%s", out)
		}
	})
	m.run(cable)
	return m
}

// Both packages are installed, started, upgraded and purged on a Debian with its own kernel, where
// the agent finds NVMe and sockets that can be destroyed.
func TestPackagesOnDebian(t *testing.T) {
	image := os.Getenv(EnvDebian)
	if image == "" {
		netnstest.LeftTo(t, "make deb-vm")
	}
	image, err := filepath.Abs(image)
	if err != nil {
		t.Fatal(err)
	}
	debs := packages(t, t.TempDir())
	m := bootDebian(t, image)
	for _, c := range []struct {
		name string
		test func(*machine, string)
	}{{"snsd", theAgentFromInstallToPurge}, {"snsd", theAgentWithNVMe}, {"inofd", fromInstallToPurge}} {
		t.Run(c.name, func(t *testing.T) {
			of := *m
			of.t = t
			began := time.Now()
			c.test(&of, debs[c.name])
			t.Logf("after %.1f s", time.Since(began).Seconds())
		})
	}
}

// The agent by its unit, on a kernel with NVMe: nothing of it is denied, it has its priority and
// its memory locked, and it connects what this same kernel serves.
func theAgentWithNVMe(m *machine, deb string) {
	t := m.t
	m.copy(map[string]string{"/root/snsd.deb": deb})
	m.write("/root/array", `modprobe -a nvmet-tcp nvme-tcp tcp_diag brd
C=/sys/kernel/config/nvmet N=nqn.2026-01.net.example:array1
mkdir -p $C/subsystems/$N $C/ports/1
echo 1 >$C/subsystems/$N/attr_allow_any_host
mkdir $C/subsystems/$N/namespaces/1
echo -n /dev/ram0 >$C/subsystems/$N/namespaces/1/device_path
echo 1 >$C/subsystems/$N/namespaces/1/enable
echo tcp >$C/ports/1/addr_trtype; echo ipv4 >$C/ports/1/addr_adrfam; echo 192.0.2.1 >$C/ports/1/addr_traddr; echo 4420 >$C/ports/1/addr_trsvcid
ln -s $C/subsystems/$N $C/ports/1/subsystems/
`)
	m.run("sh -e array; dpkg -i snsd.deb; mkdir -p /etc/snsd")
	m.write("/etc/snsd/snsd.yaml", hostPort+"direct:\n  - {host: 192.0.2.1, target: 192.0.2.1, protocol: tcp, port: 4420, nqn: nqn.2026-01.net.example:array1}\n")
	m.run("systemctl enable --now snsd")
	labtest.Eventually(t, "the agent to connect the array", func() error {
		out, err := m.try("grep -l live /sys/class/nvme/nvme*/state && cat /run/nvme/registry/nvme*/owner")
		if err != nil || !strings.HasSuffix(out, "snsd") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	if s := m.run("snsd doctor || true"); !strings.Contains(s, "native multipath is on") || !strings.Contains(s, "sockets can be destroyed") {
		t.Errorf("doctor: %s", s)
	}
	pid := m.show("snsd", "MainPID")
	if s := m.run("chrt -p " + pid + "; grep VmLck /proc/" + pid + "/status"); !strings.Contains(s, "SCHED_RR") || strings.Contains(s, "VmLck:\t       0 kB") {
		t.Errorf("the agent runs with %s", s)
	}
	if s := m.run("journalctl -u snsd -o cat"); strings.Contains(s, "denied") || strings.Contains(s, "not permitted") || strings.Contains(s, "not locked") {
		t.Errorf("something is forbidden: %s", s)
	}
	m.run("dpkg -P snsd; for f in /sys/class/nvme/nvme*/delete_controller; do echo 1 >$f; done")
}
