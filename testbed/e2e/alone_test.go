package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
)

const secondNode = `
    r2:
      kind: inof-switch
      startup-config: r2.yaml
      labels: {inof.zones: zones.yaml}
      exec:
        - ip addr add 10.0.0.2/32 dev lo
        - ip addr add 10.2.1.0/31 dev eth1
        - ip addr add 10.2.2.0/31 dev eth2
        - ip route add 10.0.0.11/32 via 10.2.1.1 src 10.0.0.2
        - ip route add 10.0.0.12/32 via 10.2.2.1 src 10.0.0.2
`

const secondLinks = `
    - endpoints: ["r2:eth1", "tor1:eth50"]
    - endpoints: ["r2:eth2", "tor2:eth50"]
`

// aloneFabric has two reflectors, and a path between the switches that BFD watches, with keys of
// the reflectors.
func aloneFabric(t *testing.T, name string) *fab {
	bfd := func(c string) string { return c + "bfd: {interval: 200ms, detect-multiplier: 5}\n" }
	both := func(c string) string {
		return strings.Replace(c, "reflectors: [{address: "+spineID+"}]", "reflectors: [{address: "+spineID+"}, {address: "+secondID+"}]", 1)
	}
	f := newFabric(t, spec{name: name, second: true, nodes: secondNode, links: secondLinks,
		edit: map[string]func(string) string{"spine": bfd, "r2": bfd, "tor1": both, "tor2": both}})
	return f
}

// A switch that starts while no reflector answers, after its daemon was killed or with nothing left
// below /run as after a start of its machine, notifies its hosts of what it can see: a cable that
// is pulled, and a path that fails. When the reflectors are back, everything is true again.
func TestASwitchAloneAfterARestartNotifies(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(f *fab)
	}{
		{"killed", func(f *fab) { f.kill("tor1") }},
		{"rebooted", func(f *fab) {
			f.kill("tor1")
			f.signalBFD("tor1", unix.SIGKILL)
			f.emptyRun("tor1")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := aloneFabric(t, "alone"+c.name)
			f.path12()
			f.keptBy("tor1", 4)
			f.kill("spine")
			f.kill("r2")
			f.awaitEvent("tor1", 0, "peer", "session with reflector "+secondID+" is down")
			since := f.marks("i1", "t1")
			c.end(f)
			f.start("tor1")
			f.heardAgain("tor1", 2)
			f.awaitPath("tor1", "up", func(_ api.BFD, s api.BFDSession) bool { return s.State == "Up" })
			f.only("nothing has happened", since, nil)
			st := f.status("tor1")
			if st.Synced || st.LastSync == nil || !hasAll(st.Warnings.String(), []string{"not synchronized with a reflector since"}) {
				t.Errorf("synced %v, last %v, warnings %q", st.Synced, st.LastSync, st.Warnings)
			}
			if out := f.ctl("tor1", "why", init1, init2).stdout; !strings.Contains(out, "deciding by what was known then") || strings.Contains(out, "zone member") {
				t.Errorf("why says %s", out)
			}

			pulled := time.Now()
			f.fault("tor1", "eth1", false)
			f.awaitNotice("i1", since["i1"], notice{init1, target, "inactive", "link-down"})
			report(t, "a cable of this switch", time.Since(pulled), time.Second)

			cut := f.forward(false)
			f.awaitNotice("i1", since["i1"], notice{init1, init2, "inactive", "bfd-down"})
			report(t, "the path to another switch, without the detection time", time.Since(cut)-detection, time.Second)

			f.forward(true)
			f.fault("tor1", "eth1", true)
			f.start("spine")
			f.start("r2")
			f.settled()
			if st := f.status("tor1"); st.LastSync != nil {
				t.Errorf("it still decides by what was known at %v", st.LastSync)
			}
		})
	}
}

// report says how long it took that hosts were notified; the bound that fails is generous, since
// the machine may have a lot else to do.
func report(t *testing.T, what string, took, aim time.Duration) {
	t.Helper()
	t.Logf("%s: notified after %v (aim %v)", what, took.Round(time.Millisecond), aim)
	if took > 20*aim {
		t.Errorf("%s: notified after %v", what, took)
	}
}

// path12 makes the path between the two switches over spine.
func (f *fab) path12() {
	f.t.Helper()
	f.run("tor1", "ip", "route", "add", tor2ID, "via", "10.1.1.0", "src", tor1ID)
	f.run("tor2", "ip", "route", "add", tor1ID, "via", "10.1.2.0", "src", tor2ID)
	f.forward(true)
	f.pathsUp()
}

// emptyRun removes what a start of the machine removes.
func (f *fab) emptyRun(node string) {
	f.t.Helper()
	dir := filepath.Join(f.lab.NodeDir(node), "run")
	files, err := os.ReadDir(dir)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range files {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			f.t.Fatal(err)
		}
	}
}
