package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
)

func latencyOf(ctx context.Context, c *api.Client) (api.Latency, error) {
	return api.Ask[api.Latency](ctx, c, "latency", nil)
}

// After one fault and its end every stage of the way has a value at the device that
// measures it: the switch that saw it, the reflector, the switch whose host was told.
func TestEveryStageHasValuesAfterAFault(t *testing.T) {
	t.Parallel()
	f := newFabric(t, spec{name: "latency"})
	f.stillTells()
	for _, c := range []struct {
		node   string
		scope  api.Scope
		stages []string // with its reason, if it is told apart by one
	}{
		{"tor1", api.ScopeOwn, []string{"decided", "sent"}},
		{"spine", api.ScopeReflector, []string{"taken", "reflected"}},
		{"tor2", api.ScopeTold, []string{"decided", "sent", "at-reflector", "reflected", "received", "applied", "frame", "ack",
			"notice link-down", "acked link-down", "notice active", "acked active"}},
		{"tor1", api.ScopeTold, []string{"frame", "ack", "notice link-down", "acked link-down"}}, // i1, on the same switch
	} {
		labtest.Eventually(t, fmt.Sprintf("values in every stage of scope %s at %s", c.scope, c.node), func() error {
			l, err := ask(f, c.node, latencyOf)
			if err != nil {
				return err
			}
			have := map[string]api.Stage{}
			for _, s := range l.Stages {
				if s.Scope == c.scope {
					have[strings.TrimSpace(s.Name+" "+s.Reason)] = s
				}
			}
			for _, name := range c.stages {
				if s := have[name]; s.Total.Count == 0 || s.Newest.Count == 0 || s.Total.Max <= 0 || s.Buckets[len(s.Buckets)-1] != s.Total.Count || s.Skewed > 0 {
					return fmt.Errorf("%s: %+v", name, s)
				}
			}
			return nil
		})
	}
	l, err := ask(f, "tor2", latencyOf)
	if err != nil {
		t.Fatal(err)
	}
	// Both read the clock of this machine.
	if len(l.Clocks) != 1 || l.Clocks[0].Reflector.String() != spineID || l.Clocks[0].RoundTrip <= 0 || l.Clocks[0].Ahead*l.Clocks[0].Ahead > l.Clocks[0].RoundTrip*l.Clocks[0].RoundTrip {
		t.Errorf("clocks %+v", l.Clocks)
	}
	if o := f.ctl("tor2", "show", "latency"); o.code != 0 || !hasAll(o.stdout, []string{"notice", "link-down", "Clock of reflector " + spineID}) {
		t.Errorf("show latency: %+v", o)
	} else {
		t.Logf("at tor2:\n%s", o.stdout)
	}
	if o := f.ctl("tor2", "show", "notice", "--times"); o.code != 0 || !hasAll(o.stdout, []string{"AT-REFLECTOR", "link-down", tor1ID}) {
		t.Errorf("show notice --times: %+v", o)
	} else {
		t.Logf("notices at tor2:\n%s", o.stdout)
	}
}
