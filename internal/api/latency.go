package api

import (
	"net/netip"
	"time"
)

// Latency is how long the stages took from a fault to a host that was told.
type Latency struct {
	Since  time.Time `json:"since"`  // the totals count from here: the start of the daemon
	Recent int       `json:"recent"` // how many of the newest values a Stage's Recent is of
	// Bounds are the upper bounds, in seconds, of the fixed buckets of every Stage;
	// one without bound follows them.
	Bounds []float64 `json:"bounds_s"`
	Stages []Stage   `json:"stages"`
	Clocks []Clock   `json:"clocks"`
	// Unmeasured are notices that told of a fault whose time is not known: it was
	// learned by a sync.
	Unmeasured uint64 `json:"unmeasured"`
}

// Scope tells what a Stage is measured of.
type Scope string

// The values of Stage.Scope.
const (
	ScopeOwn       Scope = "own"       // events of this device, told to its reflectors
	ScopeReflector Scope = "reflector" // events of clients, passed on by this reflector
	ScopeTold      Scope = "told"      // events of any device, told to this one and its hosts
)

// Stage is the distribution of one step, or of the whole way, from a moment to a
// later one.
type Stage struct {
	Scope Scope  `json:"scope"`
	Name  string `json:"stage"`
	From  string `json:"from"`
	To    string `json:"to"`
	// Reason is set where the stage is told apart by what the hosts were told: a
	// reason, "active", or "other".
	Reason string `json:"reason,omitempty"`
	// Between two devices' clocks: what is negative or longer than 10 s is no
	// duration, and is counted by Skewed instead.
	Between bool      `json:"between_clocks"`
	Total   Quantiles `json:"total"`
	Newest  Quantiles `json:"recent"`
	Sum     float64   `json:"sum_s"`      // of the total
	Buckets []uint64  `json:"cumulative"` // of the total: values up to each bound, and all
	Skewed  uint64    `json:"clock"`
	// Held are left out because the host's own port was down meanwhile.
	Held uint64 `json:"held,omitempty"`
}

// Quantiles are in microseconds; each is too large by an eighth at most.
type Quantiles struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_us"`
	P90   float64 `json:"p90_us"`
	P99   float64 `json:"p99_us"`
	Max   float64 `json:"max_us"`
}

// Clock is what is known of a reflector's clock against this device's: from a message
// of this device that came back from it.
type Clock struct {
	Reflector netip.Addr `json:"reflector"`
	Ahead     float64    `json:"ahead_us"`      // of ours; right to half of RoundTrip
	RoundTrip float64    `json:"round_trip_us"` // without the reflector's own time
	Measured  time.Time  `json:"measured"`
}
