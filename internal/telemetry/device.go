package telemetry

import (
	"strings"
	"time"

	"github.com/openinof/inof/internal/api"
)

var device = group[api.Status]{
	path: "/inof/state", source: "daemon",
	rows: func(s *Snapshot, give func(time.Time, *api.Status, ...string)) { give(s.At, &s.Status) },
	leaves: []leaf[api.Status]{
		{Leaf{Path: "id", Type: "inet:ip-address", Class: Config, Doc: "device id"}, func(s *api.Status) any { return s.Device.String() }},
		{Leaf{Path: "name", Type: "string", Class: Config, Doc: "device.name", Metric: Metric{Name: "device_info", As: "name"}}, func(s *api.Status) any { return s.Name }},
		{Leaf{Path: "role", Type: "string", Class: Config, Doc: "reflector, client, both with +, or standalone"}, func(s *api.Status) any {
			if len(s.Roles) == 0 {
				return "standalone"
			}
			return strings.Join(s.Roles, "+")
		}},
		{Leaf{Path: "version", Type: "string", Class: Config, Doc: "of inofd", Metric: Metric{Name: "build_info", As: "version"}}, func(s *api.Status) any { return some(s.Version) }},
		{Leaf{Path: "start-time", Type: "yang:date-and-time", Class: Config, Doc: "of inofd", Metric: Metric{Name: "start_time_seconds"}}, func(s *api.Status) any { return moment(&s.Started) }},
		{Leaf{Path: "synced", Type: "boolean", Class: Event, Doc: "false while a client waits for its reflectors' end of sync", Metric: Metric{Name: "synced"}}, func(s *api.Status) any { return s.Synced }},
	},
}

var counts = group[Snapshot]{
	path: "/inof/state/counts", source: "daemon", least: time.Second,
	rows: func(s *Snapshot, give func(time.Time, *Snapshot, ...string)) { give(s.At, s) },
	leaves: []leaf[Snapshot]{
		count("warnings", "what an operator should look at (docs/warnings.md)", "warnings", func(s *Snapshot) int { return len(s.Status.Warnings) }),
		count("conflicts", "addresses that two hosts claim", "conflicts", func(s *Snapshot) int { return s.Status.Counts.Conflicts }),
		count("faults", "faults that stand, of ports and paths", "faults", func(s *Snapshot) int { return s.Status.Counts.Faults }),
		count("neighbours", "LLDP neighbours", "lldp_neighbours", func(s *Snapshot) int { return s.Status.Counts.Neighbours }),
		count("zones", "configured zones", "zones", func(s *Snapshot) int { return s.Status.Counts.Zones }),
		{Leaf{Path: "zones-inconsistent", Type: "uint32", Class: Gauge, Doc: "zones about which the reflectors differ", Metric: Metric{Name: "zones_inconsistent"}}, func(s *Snapshot) any {
			if s.Inconsistent < 0 {
				return nil
			}
			return uint64(s.Inconsistent)
		}},
	},
}

// count is a leaf that is a number of things.
func count[T any](path, doc, metric string, of func(*T) int) leaf[T] {
	return leaf[T]{Leaf{Path: path, Type: "uint32", Class: Gauge, Doc: doc, Metric: Metric{Name: metric}}, func(r *T) any { return uint64(of(r)) }}
}

var hostCounts = group[int]{
	path: "/inof/state/counts/hosts[type]", source: "daemon", least: time.Second,
	rows: func(s *Snapshot, give func(time.Time, *int, ...string)) {
		give(s.At, &s.Status.Counts.HostsLocal, "local")
		give(s.At, &s.Status.Counts.HostsRemote, "remote")
	},
	leaves: []leaf[int]{
		{Leaf{Path: "count", Type: "uint32", Class: Gauge, Doc: "hosts that are known here", Metric: Metric{Name: "hosts", Labels: "type"}}, func(n *int) any { return uint64(*n) }},
	},
}

var machine = group[Machine]{
	path: "/inof/state/machine", source: "/proc/stat, /proc/meminfo", least: 10 * time.Millisecond,
	rows: func(s *Snapshot, give func(time.Time, *Machine, ...string)) {
		if !s.Machine.At.IsZero() {
			give(s.Machine.At, &s.Machine)
		}
	},
	leaves: []leaf[Machine]{
		{Leaf{Path: "cpu-busy", Type: "decimal64", Class: Gauge, Unit: "ratio", Doc: "share of all processors that was used", Metric: Metric{Name: "device_cpu_ratio"}}, func(m *Machine) any {
			if m.Busy < 0 {
				return nil
			}
			return m.Busy
		}},
		{Leaf{Path: "memory", Type: "uint64", Class: Config, Unit: "bytes", Doc: "of the machine", Metric: Metric{Name: "device_memory_bytes"}}, func(m *Machine) any { return some(m.Memory) }},
		{Leaf{Path: "memory-available", Type: "uint64", Class: Gauge, Unit: "bytes", Doc: "without swapping", Metric: Metric{Name: "device_memory_available_bytes"}}, func(m *Machine) any { return some(m.Available) }},
	},
}

var counters = group[api.Counter]{
	path: "/inof/counters/counter[room name]", source: "daemon", least: time.Second,
	rows: func(s *Snapshot, give func(time.Time, *api.Counter, ...string)) {
		for i := range s.Counters {
			c := &s.Counters[i]
			give(s.At, c, c.Room, c.Name)
		}
	},
	leaves: []leaf[api.Counter]{
		{Leaf{Path: "value", Type: "decimal64", Class: Gauge, Doc: "docs/counters.md says what each counts", Metric: Metric{Name: "internal", Labels: "room name"}}, func(c *api.Counter) any { return c.Value }},
	},
}
