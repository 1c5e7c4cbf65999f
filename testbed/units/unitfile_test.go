package units

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/config"
)

// capabilities gives a list of capabilities of a unit file.
func capabilities(t *testing.T, file, key string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if list, ok := strings.CutPrefix(line, key+"="); ok {
			return strings.Fields(list)
		}
	}
	return nil
}

// The daemon's unit lets it listen where it listens unless it is told otherwise: NETCONF has a
// port below 1024, which a user that is not root needs a right for. What it may have it has.
func TestTheUnitMayListenOnThePortsOfTheStandards(t *testing.T) {
	const unit, right = "../../dist/systemd/inofd.service", "CAP_NET_BIND_SERVICE"
	bounding, ambient := capabilities(t, unit, "CapabilityBoundingSet"), capabilities(t, unit, "AmbientCapabilities")
	if !slices.Equal(bounding, ambient) {
		t.Errorf("it may have %q and has %q", bounding, ambient)
	}
	if config.DefaultNetconf < 1024 && !slices.Contains(ambient, right) {
		t.Errorf("port %d of NETCONF takes %s, it has %q", config.DefaultNetconf, right, ambient)
	}
}
