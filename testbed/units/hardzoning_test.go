package units

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
)

// The daemon's own user guards ports and enforces zones. A crash and a stop leave both in force; the
// end of hard zoning leaves the guard.
func TestTheUnitHasTheRightsOfProgramsInTheKernel(t *testing.T) {
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
	guarded := func(when string) {
		t.Helper()
		labtest.Eventually(t, when+": the port to be guarded by pinned programs", func() error {
			out, err := m.try("ls /sys/fs/bpf/inof/guard-*")
			if err != nil || strings.Count(out, "link-") != 2 {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	guarded("at first")
	m.run("systemctl kill -s KILL inofd")
	state(api.HardNormal, "native", "")
	m.run("systemctl stop inofd")
	xdp(true)
	guarded("without a daemon")
	m.run("systemctl start inofd")
	state(api.HardNormal, "native", "")
	m.write("/etc/inof/inofd.yaml", text)
	m.run("systemctl reload inofd")
	state(api.HardOff, "", "")
	xdp(false)
	guarded("without hard zoning")
}
