package telemetry

import (
	"strconv"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
)

// The leaves of ports that are our own; openconfig.go has the others.

var portStates = []string{api.PortUp, api.PortDown, api.PortErrorDown, api.PortShutting, api.PortDraining, api.PortDrained, api.PortRemoved}

var interfaces = group[api.Port]{
	path: "/inof/interfaces/interface[name]/state", source: "daemon", least: time.Second,
	rows: portRows, keys: keysOf("name"),
	leaves: []leaf[api.Port]{
		{Leaf{Path: "state", Type: TypeEnum, Values: portStates, Class: Event, Doc: "as the control plane sees it"}, func(p *api.Port) any { return word(portStates, p.State) }},
		{Leaf{Path: "up", Type: TypeBool, Class: Event, Doc: "hosts can be reached over it", Metric: Metric{Name: "port_up", Labels: "port"}}, func(p *api.Port) any { return p.State == api.PortUp }},
		{Leaf{Path: "flaps", Type: TypeCounter, Class: Counter, Doc: "changes of the carrier that count", Metric: Metric{Name: "port_flaps_total", Labels: "port"}}, func(p *api.Port) any { return p.Flaps }},
		{Leaf{Path: "hosts", Type: TypeUint32, Class: Gauge, Doc: "host addresses there", Metric: Metric{Name: "port_hosts", Labels: "port"}}, func(p *api.Port) any { return uint64(p.Hosts) }},
		{Leaf{Path: "in-forbidden", Type: TypeCounter, Class: Counter, Unit: "frames", Doc: "LLDP and SNSD that its host sent to others, dropped", Metric: Metric{Name: "port_forbidden_frames_total", Labels: "port", Fixed: "direction=in"}}, forbidden(func(f *api.PortForbidden) uint64 { return f.In })},
		{Leaf{Path: "out-forbidden", Type: TypeCounter, Class: Counter, Unit: "frames", Doc: "LLDP and SNSD of others to its host, dropped", Metric: Metric{Name: "port_forbidden_frames_total", Labels: "port", Fixed: "direction=out"}}, forbidden(func(f *api.PortForbidden) uint64 { return f.Out })},
		{Leaf{Path: "neighbours", Type: TypeUint32, Class: Gauge, Doc: "LLDP neighbours there"}, func(p *api.Port) any { return uint64(p.Neighbours) }},
	},
}

// forbidden is absent where the port is not guarded.
func forbidden(of func(*api.PortForbidden) uint64) func(*api.Port) any {
	return func(p *api.Port) any {
		if p.Forbidden == nil {
			return nil
		}
		return of(p.Forbidden)
	}
}

// health is a leaf of what a driver tells, absent where it does not.
func health(l Leaf, needs fabric.Fields, of func(*Health) any) leaf[Health] {
	if needs&fabric.FieldsOfModule != 0 {
		l.Reader = ReadModules
	}
	return leaf[Health]{l, func(h *Health) any {
		if !h.Has(needs) {
			return nil
		}
		return of(h)
	}}
}

func healthRows(s *Snapshot, give func(time.Time, *Health, ...string)) {
	for i := range s.Health {
		give(s.Health[i].At, &s.Health[i], s.Health[i].Port)
	}
}

var drivers = group[Health]{
	path: "/inof/interfaces/interface[name]/state", source: "driver, module; SONiC: the ASIC", reader: ReadDrivers,
	rows: healthRows,
	leaves: []leaf[Health]{
		health(Leaf{Path: "optic-input-power", Type: TypeDecimal, Class: Gauge, Unit: "dBm", Doc: "received by the weakest lane; -40: no light",
			Metric: Metric{Name: "optic_rx_power_dbm", Labels: "port"}}, fabric.FieldRxPower, func(h *Health) any { return float64(h.RxPower) / 1000 }),
		health(Leaf{Path: "optic-output-power", Type: TypeDecimal, Class: Gauge, Unit: "dBm", Doc: "sent by the weakest lane; -40: no light",
			Metric: Metric{Name: "optic_tx_power_dbm", Labels: "port"}}, fabric.FieldOptic, func(h *Health) any { return float64(h.Optic.TxPower) / 1000 }),
		health(Leaf{Path: "optic-bias", Type: TypeDecimal, Class: Gauge, Unit: "amperes", Doc: "of the laser that takes most",
			Metric: Metric{Name: "optic_bias_amperes", Labels: "port"}}, fabric.FieldOptic, func(h *Health) any { return float64(h.Optic.Bias) / 1e6 }),
		health(Leaf{Path: "optic-temperature", Type: TypeDecimal, Class: Gauge, Unit: "celsius", Doc: "of the module",
			Metric: Metric{Name: "optic_temperature_celsius", Labels: "port"}}, fabric.FieldOptic, func(h *Health) any { return float64(h.Optic.Temperature) / 1000 }),
		health(Leaf{Path: "optic-voltage", Type: TypeDecimal, Class: Gauge, Unit: "volts", Doc: "of the module",
			Metric: Metric{Name: "optic_voltage_volts", Labels: "port"}}, fabric.FieldOptic, func(h *Health) any { return float64(h.Optic.Voltage) / 1000 }),
		health(Leaf{Path: "optic-vendor", Type: TypeString, Class: Event, Doc: "who made the module"}, fabric.FieldOptic, func(h *Health) any { return some(h.Optic.Vendor) }),
		health(Leaf{Path: "optic-serial", Type: TypeString, Class: Event, Doc: "the module's serial number"}, fabric.FieldOptic, func(h *Health) any { return some(h.Optic.Serial) }),
		health(Leaf{Path: "speed", Type: TypeUint64, Class: Event, Unit: "bits per second", Doc: "of the link"}, fabric.FieldSpeed, func(h *Health) any { return h.Speed }),
		health(Leaf{Path: "speed-bytes", Type: TypeUint64, Class: Event, Unit: "bytes per second", Doc: "of the link, as Prometheus counts",
			Metric: Metric{Name: "port_speed_bytes_per_second", Labels: "port"}}, fabric.FieldSpeed, func(h *Health) any { return h.Speed / 8 }),
		health(Leaf{Path: "ecn-marked", Type: TypeCounter, Class: Counter, Unit: "frames", Doc: "marked on their way out (CE), of all queues",
			Metric: Metric{Name: "port_ecn_marked_frames_total", Labels: "port"}}, fabric.FieldPortECN, func(h *Health) any { return h.ECNMarked }),
		health(Leaf{Path: "in-utilization", Type: TypeDecimal, Class: Gauge, Unit: "ratio", Doc: "of the link, 0..1, between the last two readings",
			Metric: Metric{Name: "port_utilization_ratio", Labels: "port", Fixed: "direction=in"}}, fabric.FieldSpeed|fabric.FieldCounters, func(h *Health) any { return h.share(h.InRate) }),
		health(Leaf{Path: "out-utilization", Type: TypeDecimal, Class: Gauge, Unit: "ratio", Doc: "of the link, 0..1, between the last two readings",
			Metric: Metric{Name: "port_utilization_ratio", Labels: "port", Fixed: "direction=out"}}, fabric.FieldSpeed|fabric.FieldCounters, func(h *Health) any { return h.share(h.OutRate) }),
	},
}

// priority is one priority of a port.
type priority struct {
	*Health
	n int
}

// perPriority is a leaf of a priority, absent where the driver does not tell.
func perPriority(path, typ, unit string, class Class, doc, metric, fixed string, needs fabric.Fields, of func(h *Health, n int) any) leaf[priority] {
	l := Leaf{Path: path, Type: typ, Unit: unit, Class: class, Doc: doc}
	if metric != "" {
		l.Metric = Metric{Name: metric, Labels: "port priority", Fixed: fixed, Bulk: BulkPriority}
	}
	return leaf[priority]{l, func(p *priority) any {
		if !p.Has(needs) {
			return nil
		}
		return of(p.Health, p.n)
	}}
}

func priorityRows(s *Snapshot, give func(time.Time, *priority, ...string)) {
	for i := range s.Health {
		h := &s.Health[i]
		for n := range fabric.Priorities {
			// It has seen PFC, ECN or a queue.
			if h.RxPause[n]+h.TxPause[n]+h.Deadlocks[n]+h.ECNMarks[n]+h.QueuePeak[n]+h.HeadroomPeak[n] > 0 || h.Deadlocked&(1<<n) != 0 {
				give(h.At, &priority{h, n}, h.Port, strconv.Itoa(n))
			}
		}
	}
}

var priorities = group[priority]{
	path: "/inof/interfaces/interface[name]/priorities/priority[id]/state", source: "driver; SONiC: the ASIC, the PFC watchdog", reader: ReadDrivers, keys: keysOf("id:" + TypeUint8),
	rows: priorityRows,
	leaves: []leaf[priority]{
		perPriority("in-pfc-frames", TypeCounter, "frames", Counter, "PFC frames received", "port_pfc_frames_total", "direction=in", fabric.FieldPause,
			func(h *Health, n int) any { return h.RxPause[n] }),
		perPriority("out-pfc-frames", TypeCounter, "frames", Counter, "PFC frames sent", "port_pfc_frames_total", "direction=out", fabric.FieldPause,
			func(h *Health, n int) any { return h.TxPause[n] }),
		perPriority("in-pause-time", TypeCounter, "nanoseconds", Counter, "for which it was kept from sending", "port_pause_seconds_total", "", fabric.FieldPauseTime,
			func(h *Health, n int) any { return h.RxPauseTime[n] }),
		perPriority("deadlocks", TypeCounter, "deadlocks", Counter, "found by the switch's own PFC watchdog", "port_pfc_deadlocks_total", "", fabric.FieldDeadlocks,
			func(h *Health, n int) any { return h.Deadlocks[n] }),
		perPriority("recoveries", TypeCounter, "deadlocks", Counter, "that are over", "port_pfc_recoveries_total", "", fabric.FieldRestored,
			func(h *Health, n int) any { return h.Restored[n] }),
		perPriority("queue-bytes", TypeUint64, "bytes", Gauge, "waiting to be sent", "queue_bytes", "part=queue", fabric.FieldBuffer,
			func(h *Health, n int) any { return h.QueueBytes[n] }),
		perPriority("queue-peak-bytes", TypeUint64, "bytes", Gauge, "the most that waited", "queue_bytes", "part=queue-peak", fabric.FieldBufferPeak,
			func(h *Health, n int) any { return h.QueuePeak[n] }),
		perPriority("headroom-bytes", TypeUint64, "bytes", Gauge, "received and held in the headroom", "queue_bytes", "part=headroom", fabric.FieldBuffer,
			func(h *Health, n int) any { return h.HeadroomBytes[n] }),
		perPriority("headroom-peak-bytes", TypeUint64, "bytes", Gauge, "the most that was", "queue_bytes", "part=headroom-peak", fabric.FieldBufferPeak,
			func(h *Health, n int) any { return h.HeadroomPeak[n] }),
		perPriority("deadlocked", TypeBool, "", Event, "it holds it to be in one now", "port_pfc_deadlocked", "", fabric.FieldDeadlocks,
			func(h *Health, n int) any { return h.Deadlocked&(1<<n) != 0 }),
	},
}

var errorDown = group[api.ErrorDown]{
	path: "/inof/interfaces/interface[name]/faults/fault[cause]/state", source: "daemon", keys: keysOf("cause"),
	rows: func(s *Snapshot, give func(time.Time, *api.ErrorDown, ...string)) {
		for i := range s.Faults {
			if f := &s.Faults[i]; f.Cause != "" {
				give(s.At, f, f.Port, f.Cause)
			}
		}
	},
	leaves: []leaf[api.ErrorDown]{
		{Leaf{Path: "reason", Type: TypeEnum, Values: reasons, Class: Event, Doc: "as hosts are told"}, func(f *api.ErrorDown) any { return word(reasons, f.Reason.String()) }},
		{Leaf{Path: "active", Type: TypeBool, Class: Event, Doc: "the port has this fault", Metric: Metric{Name: "port_error_down", Labels: "port cause"}}, func(*api.ErrorDown) any { return true }},
		{Leaf{Path: "since", Type: TypeTime, Class: Event, Doc: "when it was seen"}, func(f *api.ErrorDown) any { return moment(f.Since) }},
		{Leaf{Path: "recovery-left", Type: TypeUint64, Unit: "nanoseconds", Class: Gauge, Least: time.Second, Doc: "until the port is opened again"}, func(f *api.ErrorDown) any {
			if f.TimeLeft <= 0 {
				return nil
			}
			return seconds(f.TimeLeft)
		}},
	},
}
