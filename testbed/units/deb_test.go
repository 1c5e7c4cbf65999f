package units

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/labtest"
)

// packages builds the Debian packages of this tree into dir and gives their files by name.
func packages(t testing.TB, dir string) map[string]string {
	t.Helper()
	if out, err := exec.Command("../../scripts/deb", dir).CombinedOutput(); err != nil {
		t.Fatalf("scripts/deb: %v\n%s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range found {
		name, _, _ := strings.Cut(filepath.Base(f), "_")
		files[name] = f
	}
	return files
}

// newer is the same package of a later version, packed in no time.
func newer(t testing.TB, deb string) string {
	t.Helper()
	dir := t.TempDir()
	tree, out := filepath.Join(dir, "tree"), filepath.Join(dir, "newer.deb")
	script := `dpkg-deb -R "$1" "$2" && sed -i 's/^Version: .*/Version: 9:1/' "$2/DEBIAN/control" && dpkg-deb -Znone --root-owner-group -b "$2" "$3"`
	if text, err := exec.Command("sh", "-c", script, "newer", deb, tree, out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func TestPackages(t *testing.T) {
	netnstest.Programs(t, "dpkg-deb", "lintian", "systemctl")
	debs := packages(t, t.TempDir())
	t.Run("from install to purge", func(t *testing.T) { fromInstallToPurge(boot(t), debs["inofd"]) })
	t.Run("the agent from install to purge", func(t *testing.T) { theAgentFromInstallToPurge(boot(t), debs["snsd"]) })
	t.Run("lintian", func(t *testing.T) { lintianClean(t, debs) })
}

// The package installs without a configuration, runs with one, is upgraded without losing
// state, and leaves nothing behind when it is purged.
func fromInstallToPurge(m *machine, deb string) {
	t := m.t
	m.copy(map[string]string{"/root/inofd.deb": deb, "/root/later.deb": newer(t, deb)})
	keepSlice(t)
	m.run("echo 100 >" + slice)
	m.run("rm -f /usr/sbin/policy-rc.d") // of a container's image: it forbids to start anything
	if out := m.run("dpkg -i inofd.deb 2>&1"); !strings.Contains(out, "write /etc/inof/inofd.yaml") {
		t.Errorf("without a configuration dpkg says: %s", out)
	}
	if s := m.run("stat -c '%U %G %a' /etc/inof; id -un inof"); s != "root inof 750\ninof" {
		t.Errorf("after the installation: %s", s)
	}
	if s := m.run("cat " + slice); s != "4" {
		t.Errorf("threads for real time take turns each %s ms, want 4", s)
	}
	for _, unit := range []string{"inofd", "inofd-bfd"} {
		if s := m.show(unit, "ActiveState") + " " + m.show(unit, "UnitFileState"); s != "inactive enabled" {
			t.Errorf("%s without a configuration: %s", unit, s)
		}
	}
	m.run("cp /usr/share/doc/inofd/examples/standalone.yaml /etc/inof/inofd.yaml; inofd check /etc/inof/inofd.yaml; systemctl start inofd")
	m.run("inofctl show status")
	labtest.Eventually(t, "the start in the journal, as fields", func() error {
		out, err := m.try("journalctl -q -o cat --output-fields=MESSAGE INOF_KIND=daemon _SYSTEMD_UNIT=inofd.service")
		if err != nil || !strings.Contains(out, "is running") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	for _, page := range []string{"man8/inofd.8", "man8/inofd-check.8", "man1/inofctl.1", "man1/inofctl-show-status.1"} {
		m.run("zcat /usr/share/man/" + page + ".gz | grep -q '^.SH NAME'")
	}

	before := m.show("inofd", "MainPID")
	kept := m.run("ls /var/lib/inof")
	if kept == "" {
		t.Error("no state is kept")
	}
	m.run("dpkg -i later.deb")
	if now := m.show("inofd", "MainPID"); now == before || m.show("inofd", "ActiveState") != "active" {
		t.Errorf("after the upgrade the daemon is process %s, before %s, %s", now, before, m.show("inofd", "ActiveState"))
	}
	labtest.Eventually(t, "an answer after the upgrade", func() error {
		out, err := m.try("inofctl show status")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if now := m.run("ls /var/lib/inof"); now != kept {
		t.Errorf("state before the upgrade %q, after it %q", kept, now)
	}

	m.run("systemctl disable inofd; dpkg -i inofd.deb")
	if s := m.show("inofd", "UnitFileState"); s != "disabled" {
		t.Errorf("what an administrator disabled is %s after an upgrade", s)
	}
	m.run("systemctl start inofd; dpkg -r inofd")
	if s := m.run("ls /etc/inof /var/lib/inof; pgrep -x inofd || echo stopped"); !strings.Contains(s, "inofd.yaml") || !strings.HasSuffix(s, "stopped") {
		t.Errorf("after the removal: %s", s)
	}
	m.run("dpkg -P inofd")
	if s := m.run("ls -d /etc/inof /var/lib/inof /usr/sbin/inofd /lib/systemd/system/inofd* /usr/lib/sysctl.d/*inof* 2>/dev/null || true"); s != "" {
		t.Errorf("after the purge there is still %s", s)
	}
}

// Debian's own judge finds nothing to say.
func lintianClean(t *testing.T, debs map[string]string) {
	for name, file := range debs {
		out, err := exec.Command("lintian", "--fail-on", "error,warning", "--allow-root", file).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
