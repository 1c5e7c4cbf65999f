package telemetry

import (
	"slices"
	"time"

	"github.com/openinof/inof/internal/api"
)

var device = group[api.Status]{
	path: "/inof/state", source: "daemon",
	rows: func(s *Snapshot, give func(time.Time, *api.Status, ...string)) { give(s.At, &s.Status) },
	leaves: []leaf[api.Status]{
		{Leaf{Path: "id", Type: TypeAddress, Class: Config, Doc: "device id"}, func(s *api.Status) any { return s.Device.String() }},
		{Leaf{Path: "name", Type: TypeString, Class: Config, Doc: "device.name", Metric: Metric{Name: "device_info", As: "name"}}, func(s *api.Status) any { return s.Name }},
		{Leaf{Path: "role", Type: TypeEnum, Values: []string{"reflector", "client"}, Many: true, Class: Config, Doc: "none: standalone"}, func(s *api.Status) any { return list(s.Roles) }},
		{Leaf{Path: "version", Type: TypeString, Class: Config, Doc: "of inofd", Metric: Metric{Name: "build_info", As: "version"}}, func(s *api.Status) any { return some(s.Version) }},
		{Leaf{Path: "boot-time", Type: TypeTime, Class: Config, Doc: "of inofd", Metric: Metric{Name: "start_time_seconds"}}, func(s *api.Status) any { return moment(&s.Started) }},
		{Leaf{Path: "synced", Type: TypeBool, Class: Event, Doc: "false while a client waits for its reflectors' end of sync", Metric: Metric{Name: "synced"}}, func(s *api.Status) any { return s.Synced }},
		{Leaf{Path: "warning", Type: TypeString, Many: true, Class: Event, Doc: "what an operator should look at (docs/warnings.md)"}, func(s *api.Status) any {
			texts := make([]string, 0, len(s.Warnings))
			for _, w := range s.Warnings {
				if !slices.Contains(texts, w.Text) {
					texts = append(texts, w.Text)
				}
			}
			return list(texts)
		}},
	},
}

var zoningState = group[Zoning]{
	path: "/inof/state", source: "zones", rows: zoningRow,
	leaves: []leaf[Zoning]{
		{Leaf{Path: "hard-zoning", Type: TypeBool, Class: Config, Doc: "zones.hard-zoning"}, func(z *Zoning) any { return z.Hard }},
		{Leaf{Path: "default-zone-auto-join", Type: TypeBool, Class: Config, Doc: "zones.default-zone-auto-join"}, func(z *Zoning) any { return z.AutoJoin }},
		{Leaf{Path: "active-zone-set", Type: TypeString, Class: Event, Doc: "whose zones are in force; absent: all zones are"}, func(z *Zoning) any { return some(z.Plan.Active) }},
		{Leaf{Path: "config-version", Type: TypeUint64, Class: Event, Doc: "number of the zones in force", Metric: Metric{Name: "config_version"}}, func(z *Zoning) any { return z.Version.Number }},
		{Leaf{Path: "confirm-deadline", Type: TypeTime, Class: Event, Doc: "when they go back if nobody confirms them"}, func(z *Zoning) any { return moment(z.Version.Confirm) }},
	},
}

var counts = group[Snapshot]{
	path: "/inof/state/counts", source: "daemon", least: time.Second,
	rows: wholeRow,
	leaves: []leaf[Snapshot]{
		hostCount("hosts-local", "attached here", "local", func(s *Snapshot) int { return s.Status.Counts.HostsLocal }),
		hostCount("hosts-remote", "of other devices", "remote", func(s *Snapshot) int { return s.Status.Counts.HostsRemote }),
		count("warnings", "what an operator should look at (docs/warnings.md)", "warnings", func(s *Snapshot) int { return len(s.Status.Warnings) }),
		count("conflicts", "addresses that two hosts claim", "conflicts", func(s *Snapshot) int { return s.Status.Counts.Conflicts }),
		count("faults", "faults that stand, of ports and paths", "faults", func(s *Snapshot) int { return s.Status.Counts.Faults }),
		count("neighbours", "LLDP neighbours", "lldp_neighbours", func(s *Snapshot) int { return s.Status.Counts.Neighbours }),
		count("zones", "configured zones", "zones", func(s *Snapshot) int { return s.Status.Counts.Zones }),
		{Leaf{Path: "zones-inconsistent", Type: TypeUint32, Class: Gauge, Doc: "zones about which the reflectors differ", Metric: Metric{Name: "zones_inconsistent"}}, func(s *Snapshot) any {
			if s.Inconsistent < 0 {
				return nil
			}
			return uint64(s.Inconsistent)
		}},
	},
}

// hostCount is a number of hosts.
func hostCount(path, doc, typ string, of func(*Snapshot) int) leaf[Snapshot] {
	l := count(path, "host addresses "+doc, "hosts", of)
	l.Metric.Fixed = "type=" + typ
	return l
}

// count is a leaf that is a number of things.
func count[T any](path, doc, metric string, of func(*T) int) leaf[T] {
	return leaf[T]{Leaf{Path: path, Type: TypeUint32, Class: Gauge, Doc: doc, Metric: Metric{Name: metric}}, func(r *T) any { return uint64(of(r)) }}
}

var machine = group[Machine]{
	path: "/inof/state/machine", source: "/proc/stat, /proc/meminfo", reader: ReadMachine,
	rows: machineRow,
	leaves: []leaf[Machine]{
		{Leaf{Path: "cpu-busy", Type: TypeDecimal, Class: Gauge, Unit: "ratio", Doc: "share of all processors that was used", Metric: Metric{Name: "device_cpu_ratio"}}, func(m *Machine) any {
			if m.Busy < 0 {
				return nil
			}
			return m.Busy
		}},
		{Leaf{Path: "memory", Type: TypeUint64, Class: Config, Unit: "bytes", Doc: "of the machine", Metric: Metric{Name: "device_memory_bytes"}}, func(m *Machine) any { return some(m.Memory) }},
		{Leaf{Path: "memory-available", Type: TypeUint64, Class: Gauge, Unit: "bytes", Doc: "without swapping", Metric: Metric{Name: "device_memory_available_bytes"}}, func(m *Machine) any { return some(m.Available) }},
	},
}

var counters = group[api.Counter]{
	path: "/inof/counters/counter[room name]/state", source: "daemon", least: time.Second, keys: keysOf("room", "name"),
	rows: func(s *Snapshot, give func(time.Time, *api.Counter, ...string)) {
		for i := range s.Counters {
			c := &s.Counters[i]
			give(s.At, c, c.Room, c.Name)
		}
	},
	leaves: []leaf[api.Counter]{
		{Leaf{Path: "value", Type: TypeDecimal, Class: Gauge, Doc: "docs/counters.md says what each counts", Metric: Metric{Name: "internal", Labels: "room name"}}, func(c *api.Counter) any { return c.Value }},
	},
}
