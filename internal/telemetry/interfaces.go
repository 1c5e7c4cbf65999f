package telemetry

import (
	"strconv"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
)

// The leaves of ports. Those below /interfaces and /components are OpenConfig's.

const interfaceState = "/interfaces/interface[name]/state"

func portRows(s *Snapshot, give func(time.Time, *api.Port, ...string)) {
	for i := range s.Ports {
		give(s.At, &s.Ports[i], s.Ports[i].Name)
	}
}

var openInterfaces = group[api.Port]{
	path: interfaceState, source: "kernel",
	rows: portRows,
	leaves: []leaf[api.Port]{
		{Leaf{Path: "name", Type: "string", Class: Config, Doc: "name"}, func(p *api.Port) any { return p.Name }},
		{Leaf{Path: "ifindex", Type: "uint32", Class: Config, Doc: "index of the kernel"}, func(p *api.Port) any { return uint64(p.Index) }},
		{Leaf{Path: "mtu", Type: "uint16", Class: Event, Unit: "octets", Doc: "MTU"}, func(p *api.Port) any { return uint64(p.MTU) }},
		{Leaf{Path: "admin-status", Type: "enumeration", Class: Event, Doc: "UP or DOWN"}, func(p *api.Port) any { return upper(p.AdminUp) }},
		{Leaf{Path: "oper-status", Type: "enumeration", Class: Event, Doc: "UP or DOWN"}, func(p *api.Port) any { return upper(p.Carrier) }},
		{Leaf{Path: "last-change", Type: "yang:date-and-time", Class: Event, Doc: "last flap of the carrier"}, func(p *api.Port) any { return moment(p.LastFlap) }},
	},
}

func upper(up bool) string {
	if up {
		return "UP"
	}
	return "DOWN"
}

// total is a counter of the kernel's for a port.
func total(path, unit, doc, metric, fixed string, of func(*fabric.Counters) uint64) leaf[fabric.Counters] {
	l := Leaf{Path: path, Type: "yang:counter64", Class: Counter, Unit: unit, Doc: doc}
	if metric != "" {
		l.Metric = Metric{Name: metric, Labels: "port", Fixed: fixed}
	}
	return leaf[fabric.Counters]{l, func(c *fabric.Counters) any { return of(c) }}
}

var openCounters = group[fabric.Counters]{
	path: interfaceState + "/counters", source: "kernel; SONiC: the ASIC", least: 10 * time.Millisecond,
	rows: func(s *Snapshot, give func(time.Time, *fabric.Counters, ...string)) {
		for i := range s.Ports {
			if c := s.Ports[i].Counters; c != nil {
				give(s.CountersAt, c, s.Ports[i].Name)
			}
		}
	},
	leaves: []leaf[fabric.Counters]{
		total("in-octets", "octets", "received", "port_bytes_total", "direction=in", func(c *fabric.Counters) uint64 { return c.RxBytes }),
		total("out-octets", "octets", "sent", "port_bytes_total", "direction=out", func(c *fabric.Counters) uint64 { return c.TxBytes }),
		total("in-pkts", "frames", "received", "port_frames_total", "direction=in", func(c *fabric.Counters) uint64 { return c.RxFrames }),
		total("out-pkts", "frames", "sent", "port_frames_total", "direction=out", func(c *fabric.Counters) uint64 { return c.TxFrames }),
		total("in-discards", "frames", "received and dropped", "port_drops_total", "direction=in", func(c *fabric.Counters) uint64 { return c.RxDrops }),
		total("out-discards", "frames", "not sent but dropped", "port_drops_total", "direction=out", func(c *fabric.Counters) uint64 { return c.TxDrops }),
		total("in-errors", "frames", "received and bad", "port_errors_total", "direction=in", func(c *fabric.Counters) uint64 { return c.RxErrors }),
		total("carrier-transitions", "changes", "of the carrier", "port_carrier_changes_total", "", func(c *fabric.Counters) uint64 { return c.CarrierChanges }),
	},
}

var interfaces = group[api.Port]{
	path: "/inof/interfaces/interface[name]", source: "daemon", least: time.Second,
	rows: portRows,
	leaves: []leaf[api.Port]{
		{Leaf{Path: "state", Type: "enumeration", Class: Event, Doc: "up, down, error-down, draining, drained or removed"}, func(p *api.Port) any { return p.State }},
		{Leaf{Path: "up", Type: "boolean", Class: Event, Doc: "hosts can be reached over it", Metric: Metric{Name: "port_up", Labels: "port"}}, func(p *api.Port) any { return p.State == api.PortUp }},
		{Leaf{Path: "flaps", Type: "yang:counter64", Class: Counter, Doc: "changes of the carrier that count", Metric: Metric{Name: "port_flaps_total", Labels: "port"}}, func(p *api.Port) any { return p.Flaps }},
		{Leaf{Path: "hosts", Type: "uint32", Class: Gauge, Doc: "host addresses there", Metric: Metric{Name: "port_hosts", Labels: "port"}}, func(p *api.Port) any { return uint64(p.Hosts) }},
		{Leaf{Path: "neighbours", Type: "uint32", Class: Gauge, Doc: "LLDP neighbours there"}, func(p *api.Port) any { return uint64(p.Neighbours) }},
	},
}

// health is a leaf of what a driver tells, absent where it does not.
func health(l Leaf, needs fabric.Fields, of func(*Health) any) leaf[Health] {
	return leaf[Health]{l, func(h *Health) any {
		if !h.Has(needs) {
			return nil
		}
		return of(h)
	}}
}

var drivers = group[Health]{
	path: "/inof/interfaces/interface[name]", source: "driver, module; SONiC: the ASIC", least: time.Second,
	rows: func(s *Snapshot, give func(time.Time, *Health, ...string)) {
		for i := range s.Health {
			give(s.Health[i].At, &s.Health[i], s.Health[i].Port)
		}
	},
	leaves: []leaf[Health]{
		health(Leaf{Path: "in-fcs-errors", Type: "yang:counter64", Class: Counter, Unit: "frames", Doc: "received with a wrong checksum",
			Metric: Metric{Name: "port_crc_errors_total", Labels: "port"}}, fabric.FieldCRC, func(h *Health) any { return h.RxCRC }),
		health(Leaf{Path: "in-broadcast-pkts", Type: "yang:counter64", Class: Counter, Unit: "frames", Doc: "received",
			Metric: Metric{Name: "port_received_broadcast_frames_total", Labels: "port"}}, fabric.FieldBroadcast, func(h *Health) any { return h.RxBroadcast }),
		health(Leaf{Path: "in-multicast-pkts", Type: "yang:counter64", Class: Counter, Unit: "frames", Doc: "received; of some drivers with broadcast",
			Metric: Metric{Name: "port_received_multicast_frames_total", Labels: "port"}}, fabric.FieldMulticast, func(h *Health) any { return h.RxMulticast }),
		health(Leaf{Path: "optic-input-power", Type: "decimal64", Class: Gauge, Unit: "dBm", Doc: "received by the weakest lane; -40: no light",
			Metric: Metric{Name: "optic_rx_power_dbm", Labels: "port"}}, fabric.FieldRxPower, func(h *Health) any { return float64(h.RxPower) / 1000 }),
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

var priorities = group[priority]{
	path: "/inof/interfaces/interface[name]/priorities/priority[id]", source: "driver; SONiC: the ASIC, the PFC watchdog", least: time.Second,
	rows: func(s *Snapshot, give func(time.Time, *priority, ...string)) {
		for i := range s.Health {
			h := &s.Health[i]
			for n := range fabric.Priorities {
				if h.RxPause[n]+h.TxPause[n]+h.Deadlocks[n] > 0 || h.Deadlocked&(1<<n) != 0 { // it has seen PFC
					give(h.At, &priority{h, n}, h.Port, strconv.Itoa(n))
				}
			}
		}
	},
	leaves: []leaf[priority]{
		perPriority("in-pfc-frames", "yang:counter64", "frames", Counter, "PFC frames received", "port_pfc_frames_total", "direction=in", fabric.FieldPause,
			func(h *Health, n int) any { return h.RxPause[n] }),
		perPriority("out-pfc-frames", "yang:counter64", "frames", Counter, "PFC frames sent", "port_pfc_frames_total", "direction=out", fabric.FieldPause,
			func(h *Health, n int) any { return h.TxPause[n] }),
		perPriority("in-pause-time", "yang:counter64", "nanoseconds", Counter, "for which it was kept from sending", "port_pause_seconds_total", "", fabric.FieldPauseTime,
			func(h *Health, n int) any { return h.RxPauseTime[n] }),
		perPriority("out-pkts", "yang:counter64", "frames", Counter, "sent", "port_priority_frames_total", "", fabric.FieldTxFrames,
			func(h *Health, n int) any { return h.TxFrames[n] }),
		perPriority("deadlocks", "yang:counter64", "deadlocks", Counter, "found by the switch's own PFC watchdog", "port_pfc_deadlocks_total", "", fabric.FieldDeadlocks,
			func(h *Health, n int) any { return h.Deadlocks[n] }),
		perPriority("deadlocked", "boolean", "", Event, "it holds it to be in one now", "port_pfc_deadlocked", "", fabric.FieldDeadlocks,
			func(h *Health, n int) any { return h.Deadlocked&(1<<n) != 0 }),
	},
}

var errorDown = group[api.ErrorDown]{
	path: "/inof/interfaces/interface[name]/faults/fault[cause]", source: "daemon",
	rows: func(s *Snapshot, give func(time.Time, *api.ErrorDown, ...string)) {
		for i := range s.Faults {
			if f := &s.Faults[i]; f.Cause != "" {
				give(s.At, f, f.Port, f.Cause)
			}
		}
	},
	leaves: []leaf[api.ErrorDown]{
		{Leaf{Path: "reason", Type: "enumeration", Class: Event, Doc: "as hosts are told"}, func(f *api.ErrorDown) any { return f.Reason.String() }},
		{Leaf{Path: "active", Type: "boolean", Class: Event, Doc: "the port has this fault", Metric: Metric{Name: "port_error_down", Labels: "port cause"}}, func(*api.ErrorDown) any { return true }},
		{Leaf{Path: "since", Type: "yang:date-and-time", Class: Event, Doc: "when it was seen"}, func(f *api.ErrorDown) any { return moment(f.Since) }},
		{Leaf{Path: "recovery-left", Type: "uint64", Unit: "nanoseconds", Class: Gauge, Least: time.Second, Doc: "until the port is opened again"}, func(f *api.ErrorDown) any {
			if f.TimeLeft <= 0 {
				return nil
			}
			return seconds(f.TimeLeft)
		}},
	},
}
