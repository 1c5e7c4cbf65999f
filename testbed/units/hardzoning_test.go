package units

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
)

// dropIn is what the document gives the unit for hard zoning.
func dropIn(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(b), "\n## Hard zoning\n")
	m := regexp.MustCompile("(?s)```ini\n(.*?)```").FindStringSubmatch(chapter)
	if m == nil {
		t.Fatal("docs/operations.md has no drop-in for hard zoning")
	}
	return m[1]
}

// Without the drop-in it is said what is missing; with it the daemon's own user enforces
// zones, a crash and a stop leave them in force, and an orderly end of it takes all away.
func TestTheDropInGivesTheRightsOfHardZoning(t *testing.T) {
	m := boot(t)
	start := install(m, "standalone.yaml", false)
	b, err := os.ReadFile(m.at("/etc/inof/inofd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	m.write("/etc/inof/inofd.yaml", strings.Replace(text, "\nzones:\n", "\nzones:\n  hard-zoning: true\n", 1))
	m.run("mountpoint -q /sys/fs/bpf || mount -t bpf -o mode=700 bpf /sys/fs/bpf; chmod 700 /sys/fs/bpf")
	m.run(start)
	state := func(want api.HardState, attach, why string) {
		t.Helper()
		labtest.Eventually(t, "hard zoning to be "+string(want), func() error {
			var h api.HardZoning
			out, err := m.try("inofctl hard-zoning show -o json")
			if err == nil {
				err = json.Unmarshal([]byte(out), &h)
			}
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			if h.State != want || !strings.Contains(strings.Join(h.Why, " "), why) || attach != "" && (len(h.Ports) != 1 || h.Ports[0].Attach != attach) {
				return fmt.Errorf("%+v", h)
			}
			return nil
		})
	}
	state(api.HardAbnormal, "", "will not outlive the daemon")
	m.run("mkdir -p /etc/systemd/system/inofd.service.d")
	m.write("/etc/systemd/system/inofd.service.d/hard-zoning.conf", dropIn(t))
	m.run("systemctl daemon-reload; systemctl restart inofd")
	state(api.HardNormal, "native", "")
	if s := m.run("stat -c %U /proc/" + m.show("inofd", "MainPID")); s != "inof" {
		t.Errorf("inofd runs as %s", s)
	}
	xdp := func(want bool) {
		t.Helper()
		if got := strings.Contains(m.run("ip -d link show Ethernet0"), "xdp"); got != want {
			t.Errorf("a filter is at the port: %t, want %t", got, want)
		}
	}
	xdp(true)
	m.run("systemctl kill -s KILL inofd")
	state(api.HardNormal, "native", "")
	m.run("systemctl stop inofd")
	xdp(true)
	m.run("systemctl start inofd")
	state(api.HardNormal, "native", "")
	m.write("/etc/inof/inofd.yaml", text)
	m.run("systemctl reload inofd")
	state(api.HardOff, "", "")
	xdp(false)
}
