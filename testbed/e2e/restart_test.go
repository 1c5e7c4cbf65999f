package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/openinof/inof/testbed/labtest"
)

// flap is what both initiators are told by one stillTells.
func flap(host string) []notice {
	return []notice{{host, target, "inactive", "link-down"}, {host, target, "active", "none"}}
}

// onlyFlap checks that since the marks the initiators were told of the target's
// pulled cable and of nothing else, and t1, which hears everything anew when its
// cable is back, of no fault.
func (f *fab) onlyFlap(what string, since map[string]int) {
	f.t.Helper()
	for node, addr := range map[string]string{"i1": init1, "i2": init2} {
		if got := f.notices(node, since[node]); !slices.Equal(got, flap(addr)) {
			f.t.Errorf("%s: %s was told %v, want %v", what, node, got, flap(addr))
		}
	}
	for _, n := range f.notices("t1", since["t1"]) {
		if n.State != "active" {
			f.t.Errorf("%s: t1 was told %v", what, n)
		}
	}
}

// heardAgain waits until a switch that was restarted has heard its hosts.
func (f *fab) heardAgain(node string, hosts int) {
	f.t.Helper()
	labtest.Eventually(f.t, fmt.Sprintf("%s to hear its %d hosts", node, hosts), func() error {
		ns, err := ask(f, node, neighboursOf)
		if err != nil {
			return err
		}
		started, n := f.status(node).Uptime, 0
		for _, v := range ns {
			if v.Age < started && len(v.Addresses) > 0 {
				n++
			}
		}
		if n != hosts {
			return fmt.Errorf("it has heard %d", n)
		}
		return nil
	})
}

// A daemon that is killed and comes back causes no notice: neither a client, nor the
// reflector, nor both.
func TestAKilledDaemonComesBackWithoutANotice(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "killed"})
	hosts := map[string]int{"tor1": 2, "tor2": 1}
	for _, c := range []struct {
		name  string
		nodes []string
		end   func(node string)
	}{
		{"client killed", []string{"tor1"}, f.kill},
		{"other client killed", []string{"tor2"}, f.kill},
		{"reflector killed", []string{"spine"}, f.kill},
		{"reflector and a client killed", []string{"spine", "tor1"}, f.kill},
		{"all killed", []string{"spine", "tor1", "tor2"}, f.kill},
		{"reflector stopped", []string{"spine"}, f.stop},
		{"client stopped", []string{"tor1"}, f.stop},
	} {
		f.kept()
		since := f.marks("i1", "i2", "t1")
		for _, n := range c.nodes {
			c.end(n)
		}
		for _, n := range c.nodes {
			f.start(n)
		}
		for _, n := range []string{"tor1", "tor2"} {
			f.established(n)
		}
		for _, n := range c.nodes {
			if hosts[n] > 0 {
				f.heardAgain(n, hosts[n])
			}
		}
		f.stillTells()
		f.onlyFlap(c.name, since)
	}
}

// stop ends a daemon as SIGTERM does.
func (f *fab) stop(node string) {
	f.t.Helper()
	if err := f.lab.Stop(node, "inofd", labtest.Patience); err != nil {
		f.t.Fatal(err)
	}
}

// What happens while a daemon is away is told when it is back: nobody is told that
// anything is gone because somebody could not be asked.
func TestAFaultWhileADaemonIsAwayIsToldLater(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "away"})

	// The reflector is away: the host at the same switch is told at once.
	f.kept()
	since := f.marks("i1", "i2", "t1")
	f.kill("spine")
	f.fault("tor1", "eth1", false)
	f.awaitNotice("i1", since["i1"], flap(init1)[0])
	f.quiet("i2", since["i2"])
	f.start("spine")
	f.awaitNotice("i2", since["i2"], flap(init2)[0])
	f.fault("tor1", "eth1", true)
	f.awaitNotice("i1", since["i1"], flap(init1)[1])
	f.awaitNotice("i2", since["i2"], flap(init2)[1])
	f.onlyFlap("reflector away", since)

	// The switch itself is away.
	f.kept()
	since = f.marks("i1", "i2", "t1")
	f.kill("tor1")
	f.fault("tor1", "eth1", false)
	f.quiet("i1", since["i1"])
	f.quiet("i2", since["i2"])
	f.start("tor1")
	f.awaitNotice("i1", since["i1"], flap(init1)[0])
	f.awaitNotice("i2", since["i2"], flap(init2)[0])
	f.fault("tor1", "eth1", true)
	f.awaitNotice("i1", since["i1"], flap(init1)[1])
	f.awaitNotice("i2", since["i2"], flap(init2)[1])
	f.onlyFlap("client away", since)
}
