package apitest

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/internal/api"
)

// sampleLatency has a stage of every kind: with and without values, of two clocks, with
// a reason, with values left out.
func sampleLatency() api.Latency {
	return api.Latency{
		Since: Now.Add(-time.Hour), Recent: 1024, Bounds: []float64{0.0005, 0.001},
		Stages: []api.Stage{
			{Scope: api.ScopeOwn, Name: "decided", From: "fault seen", To: "taken up by this device", Buckets: []uint64{0, 0, 0}},
			{Scope: api.ScopeTold, Name: "received", From: "passed on", To: "read by this device", Between: true, Buckets: []uint64{3, 4, 4},
				Total: api.Quantiles{Count: 4, P50: 87.5, P90: 612.3, P99: 612.3, Max: 612.3}, Newest: api.Quantiles{Count: 4, P50: 87.5, P90: 640, P99: 640, Max: 640},
				Sum: 0.000874, Skewed: 2},
			{Scope: api.ScopeTold, Name: "notice", From: "fault seen", To: "frame handed to the port", Reason: "link-down", Between: true, Buckets: []uint64{0, 1, 2},
				Total: api.Quantiles{Count: 2, P50: 980, P90: 1_530_000, P99: 1_530_000, Max: 1_530_000}, Newest: api.Quantiles{Count: 2, P50: 980, P90: 1_530_000, P99: 1_530_000, Max: 1_530_000},
				Sum: 1.53098, Held: 1},
		},
		Clocks:     []api.Clock{{Reflector: netip.MustParseAddr("192.0.2.1"), Ahead: -1_200_000, RoundTrip: 380, Measured: Now.Add(-90 * time.Second)}},
		Unmeasured: 3,
	}
}
