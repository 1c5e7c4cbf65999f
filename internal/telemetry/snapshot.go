package telemetry

import (
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/zone/change"
)

// Snapshot is what a device knows, each part with the time when it was read. Parts that the
// device does not have, or that nobody asked for, are empty.
type Snapshot struct {
	At       time.Time // of what has no time of its own
	Status   api.Status
	Peers    []api.Peer
	Ports    []api.Port
	Faults   []api.ErrorDown
	Paths    api.BFD
	Latency  api.Latency
	Cluster  *api.Cluster // nil: the device is in none
	Counters []api.Counter
	Events   map[string]uint64 // since the start, by kind
	Latest   *api.Event        // nil: there was none
	// Inconsistent is how many zones the reflectors differ about; negative: nobody compares.
	Inconsistent int
	// CountersAt is when the counters of the ports were read.
	CountersAt time.Time
	// Health is what was read last of each port, the module's apart.
	Health []Health
	// Machine is zero where that is not known.
	Machine Machine
	// Settings of zones; nil where the device has none of its own.
	Zoning *Zoning

	Hosts      Part[api.Host]      // NeedHosts
	Zones      Part[api.Zone]      // NeedZones
	Neighbours Part[api.Neighbour] // NeedNeighbours
}

// Part is a large table, with the time when it was read.
type Part[T any] struct {
	At   time.Time
	Rows []T
}

// Zoning is what a device that owns zones was told of them.
type Zoning struct {
	Version        api.ZoneVersion
	Plan           *change.Plan // not to be changed
	AutoJoin, Hard bool
}

// Health is a reading of a port.
type Health struct {
	Port string
	fabric.Health
	// InRate and OutRate are bits a second since the reading before; negative: there was none,
	// or the totals went back.
	InRate, OutRate float64
}

// share is a rate as a part of the speed of the link.
func (h *Health) share(rate float64) any {
	if rate < 0 || h.Speed == 0 {
		return nil
	}
	return min(rate/float64(h.Speed), 1)
}

// Machine is the load of the machine that the daemon runs on.
type Machine struct {
	At time.Time // zero: it was not read
	// Busy is the share of all processors that was used, 0..1, since the reading before;
	// negative: there was none.
	Busy float64
	// Bytes of memory.
	Memory, Available uint64
	Boot              time.Time // zero: not known
}
