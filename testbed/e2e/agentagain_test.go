package e2e

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/testbed/labtest"
)

// An agent that is killed and started again, with its link up all the time and the same LLDP, has
// forgotten everything: it is told which peers are active and which are not.
func TestAnAgentThatIsStartedAgainIsToldWhatIsTrue(t *testing.T) {
	t.Parallel()
	const addr = "192.0.2.77"
	f := newFabric(t, spec{
		name:  "agentagain",
		zones: "zones:\n  - {name: oltp, members: [192.0.2.11, 192.0.2.12, 192.0.2.21, " + addr + "]}\n",
		nodes: "    a: {kind: linux}\n",
		links: "    - endpoints: [\"tor1:eth3\", \"a:eth1\"]\n",
	})
	told := func(p *proc, want ...notice) {
		t.Helper()
		labtest.Eventually(t, fmt.Sprintf("the agent to be told %v", want), func() error {
			got := p.told(f)
			for _, n := range want {
				if !slices.Contains(got, n) {
					return fmt.Errorf("it was told %v", got)
				}
			}
			return nil
		})
	}
	active := func(peer string) notice { return notice{addr, peer, "active", "none"} }
	down := notice{addr, target, "inactive", "link-down"}

	first := f.agent("a", addr, "--role", "initiator")
	told(first, active(init1), active(init2), active(target))
	f.fault("tor1", "eth1", false)
	told(first, down)
	changed := f.counter("tor1", "lldp.updated")
	first.signal(unix.SIGKILL)
	first.exit()
	second := f.agent("a", addr, "--role", "initiator")
	told(second, active(init1), active(init2), down)
	if n := f.counter("tor1", "lldp.updated"); n != changed {
		t.Errorf("its LLDP differs from before: %d changes, %d before", n, changed)
	}
	f.fault("tor1", "eth1", true)
	told(second, active(target))
}
