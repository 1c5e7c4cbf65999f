package telemetry

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
)

// The leaves that OpenConfig has a path for (public@94f58962: interfaces 3.8.1, qos 2.2.0, lldp
// 1.1.0, bfd 0.5.0, system 3.1.0), with its types.

const interfaceState = "/interfaces/interface[name]/state"

func portRows(s *Snapshot, give func(time.Time, *api.Port, ...string)) {
	for i := range s.Ports {
		give(s.At, &s.Ports[i], s.Ports[i].Name)
	}
}

var (
	adminStates = []string{"UP", "DOWN", "TESTING"}
	operStates  = []string{"UP", "DOWN", "TESTING", "UNKNOWN", "DORMANT", "NOT_PRESENT", "LOWER_LAYER_DOWN"}
)

var openInterfaces = group[api.Port]{
	path: interfaceState, source: "kernel",
	rows: portRows,
	leaves: []leaf[api.Port]{
		{Leaf{Path: "name", Type: TypeString, Class: Config, Doc: "name"}, func(p *api.Port) any { return p.Name }},
		{Leaf{Path: "ifindex", Type: TypeUint32, Class: Config, Doc: "index of the kernel"}, func(p *api.Port) any { return uint64(p.Index) }},
		{Leaf{Path: "mtu", Type: TypeUint16, Class: Event, Unit: "octets", Doc: "MTU"}, func(p *api.Port) any { return some(uint64(min(p.MTU, math.MaxUint16))) }},
		{Leaf{Path: "enabled", Type: TypeBool, Class: Event, Doc: "it is not shut"}, func(p *api.Port) any { return p.AdminUp }},
		{Leaf{Path: "admin-status", Type: TypeEnum, Values: adminStates, Class: Event, Doc: "UP or DOWN"}, func(p *api.Port) any { return upper(p.AdminUp) }},
		{Leaf{Path: "oper-status", Type: TypeEnum, Values: operStates, Class: Event, Doc: "UP or DOWN"}, func(p *api.Port) any { return upper(p.Carrier) }},
		{Leaf{Path: "last-change", Type: TypeTime, Class: Event, Doc: "last flap of the carrier"}, func(p *api.Port) any { return moment(p.LastFlap) }},
	},
}

func upper(up bool) string {
	if up {
		return "UP"
	}
	return "DOWN"
}

var openEthernet = group[api.Port]{
	path: "/interfaces/interface[name]/ethernet/state", source: "kernel",
	rows: portRows,
	leaves: []leaf[api.Port]{
		{Leaf{Path: "mac-address", Type: TypeMAC, Class: Config, Doc: "of the port"}, func(p *api.Port) any { return p.MAC.String() }},
	},
}

// total is a counter of the kernel's for a port.
func total(path, unit, doc, metric, fixed string, of func(*fabric.Counters) uint64) leaf[fabric.Counters] {
	l := Leaf{Path: path, Type: TypeCounter, Class: Counter, Unit: unit, Doc: doc}
	if metric != "" {
		l.Metric = Metric{Name: metric, Labels: "port", Fixed: fixed}
	}
	return leaf[fabric.Counters]{l, func(c *fabric.Counters) any { return of(c) }}
}

var openCounters = group[fabric.Counters]{
	path: interfaceState + "/counters", source: "kernel; SONiC: the ASIC", reader: ReadTotals,
	rows: func(s *Snapshot, give func(time.Time, *fabric.Counters, ...string)) {
		read := map[string]*Health{} // what the sampler read: of the ASIC, where the kernel's are the processor's
		for i := range s.Health {
			if h := &s.Health[i]; h.Has(fabric.FieldCounters) && (read[h.Port] == nil || h.At.After(read[h.Port].At)) {
				read[h.Port] = h
			}
		}
		for i := range s.Ports {
			name := s.Ports[i].Name
			if h := read[name]; h != nil {
				give(h.At, &h.Counters, name)
			} else if c := s.Ports[i].Counters; c != nil {
				give(s.CountersAt, c, name)
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
		total("out-errors", "frames", "that could not be sent", "port_errors_total", "direction=out", func(c *fabric.Counters) uint64 { return c.TxErrors }),
		total("link-transitions", "changes", "of the carrier", "port_carrier_changes_total", "", func(c *fabric.Counters) uint64 { return c.CarrierChanges }),
		total("carrier-transitions", "changes", "of the carrier, by its name of before", "", "", func(c *fabric.Counters) uint64 { return c.CarrierChanges }),
	},
}

var openDrivers = group[Health]{
	path: interfaceState + "/counters", source: "driver; SONiC: the ASIC", reader: ReadDrivers,
	rows: healthRows,
	leaves: []leaf[Health]{
		health(Leaf{Path: "in-fcs-errors", Type: TypeCounter, Class: Counter, Unit: "frames", Doc: "received with a wrong checksum",
			Metric: Metric{Name: "port_crc_errors_total", Labels: "port"}}, fabric.FieldCRC, func(h *Health) any { return h.RxCRC }),
		health(Leaf{Path: "in-broadcast-pkts", Type: TypeCounter, Class: Counter, Unit: "frames", Doc: "received",
			Metric: Metric{Name: "port_received_broadcast_frames_total", Labels: "port"}}, fabric.FieldBroadcast, func(h *Health) any { return h.RxBroadcast }),
		health(Leaf{Path: "in-multicast-pkts", Type: TypeCounter, Class: Counter, Unit: "frames", Doc: "received; of some drivers with broadcast",
			Metric: Metric{Name: "port_received_multicast_frames_total", Labels: "port"}}, fabric.FieldMulticast, func(h *Health) any { return h.RxMulticast }),
		health(Leaf{Path: "out-broadcast-pkts", Type: TypeCounter, Class: Counter, Unit: "frames", Doc: "sent",
			Metric: Metric{Name: "port_sent_broadcast_frames_total", Labels: "port"}}, fabric.FieldTxCast, func(h *Health) any { return h.TxBroadcast }),
		health(Leaf{Path: "out-multicast-pkts", Type: TypeCounter, Class: Counter, Unit: "frames", Doc: "sent",
			Metric: Metric{Name: "port_sent_multicast_frames_total", Labels: "port"}}, fabric.FieldTxCast, func(h *Health) any { return h.TxMulticast }),
	},
}

var openQueues = group[priority]{
	path: "/qos/interfaces/interface[interface-id]/output/queues/queue[name]/state", source: "driver; SONiC: the ASIC", reader: ReadDrivers,
	rows: priorityRows, keys: keysOf("name"),
	leaves: []leaf[priority]{
		perPriority("transmit-pkts", TypeCounter, "frames", Counter, "sent of the priority", "port_priority_frames_total", "", fabric.FieldTxFrames,
			func(h *Health, n int) any { return h.TxFrames[n] }),
		perPriority("ecn-marked-pkts", TypeCounter, "frames", Counter, "marked on their way out (CE)", "ecn_marked_frames_total", "", fabric.FieldECN,
			func(h *Health, n int) any { return h.ECNMarks[n] }),
		perPriority("max-queue-len", TypeUint64, "bytes", Gauge, "the longest it was", "", "", fabric.FieldBufferPeak,
			func(h *Health, n int) any { return h.QueuePeak[n] }),
	},
}

// lldpRow are the counters of LLDP by their names.
type lldpRow map[string]float64

var openLLDP = group[lldpRow]{
	path: "/lldp/state/counters", source: "daemon", least: time.Second,
	rows: func(s *Snapshot, give func(time.Time, *lldpRow, ...string)) {
		row := lldpRow{}
		for i := range s.Counters {
			if c := &s.Counters[i]; c.Room == "lldp" {
				row[c.Name] = c.Value
			}
		}
		if len(row) > 0 {
			give(s.At, &row)
		}
	},
	leaves: []leaf[lldpRow]{
		lldpCount("frame-in", "frames_in", "received"),
		lldpCount("frame-discard", "frames_discarded", "refused as a whole"),
		lldpCount("frame-error-in", "frames_in_errors", "with any error"),
		lldpCount("tlv-discard", "tlvs_discarded", "optional TLVs dropped"),
		lldpCount("tlv-unknown", "tlvs_unrecognized", "TLVs of reserved types"),
		lldpCount("entries-aged-out", "ageouts", "neighbours that were not heard any more"),
	},
}

func lldpCount(path, counter, doc string) leaf[lldpRow] {
	return leaf[lldpRow]{Leaf{Path: path, Type: TypeCounter, Class: Counter, Doc: doc}, func(r *lldpRow) any {
		v, ok := (*r)[counter]
		if !ok {
			return nil
		}
		return uint64(v)
	}}
}

var openNeighbours = group[api.Neighbour]{
	path: "/lldp/interfaces/interface[name]/neighbors/neighbor[id]/state", source: "LLDP", needs: NeedNeighbours,
	rows: func(s *Snapshot, give func(time.Time, *api.Neighbour, ...string)) {
		for i := range s.Neighbours.Rows {
			n := &s.Neighbours.Rows[i]
			give(s.Neighbours.At, n, n.Port, n.ChassisID+" "+n.PortID)
		}
	},
	keys: keysOf("id"),
	leaves: []leaf[api.Neighbour]{
		{Leaf{Path: "chassis-id", Type: TypeString, Class: Event, Doc: "of the neighbour"}, func(n *api.Neighbour) any { return some(n.ChassisID) }},
		{Leaf{Path: "port-id", Type: TypeString, Class: Event, Doc: "of the neighbour"}, func(n *api.Neighbour) any { return some(n.PortID) }},
		{Leaf{Path: "system-name", Type: TypeString, Class: Event, Doc: "of the neighbour"}, func(n *api.Neighbour) any { return some(n.SysName) }},
		{Leaf{Path: "ttl", Type: TypeUint16, Unit: "seconds", Class: Event, Doc: "time to live"}, func(n *api.Neighbour) any { return uint64(n.TTL) }},
		{Leaf{Path: "age", Type: TypeUint64, Unit: "seconds", Class: Gauge, Least: time.Second, Doc: "since it was heard last"}, func(n *api.Neighbour) any { return uint64(time.Duration(n.Age) / time.Second) }},
	},
}

// bfdStates are OpenConfig's of those that RFC 5880 names.
var bfdStates = []string{"UP", "DOWN", "ADMIN_DOWN", "INIT"}

// bfdState is a state of a session as OpenConfig writes it; absent while it is not known.
func bfdState(state string) any {
	return word(bfdStates, strings.ToUpper(strings.Replace(state, "AdminDown", "Admin_Down", 1)))
}

var openBFD = group[api.BFDSession]{
	path: "/bfd/interfaces/interface[id]/peers/peer[local-discriminator]/state", source: "BFD process", least: time.Second,
	rows: func(s *Snapshot, give func(time.Time, *api.BFDSession, ...string)) {
		for i := range s.Paths.Sessions {
			if b := &s.Paths.Sessions[i]; b.LocalDiscr != 0 {
				give(s.At, b, "multihop", strconv.FormatUint(uint64(b.LocalDiscr), 10))
			}
		}
	},
	keys: keysOf("local-discriminator"),
	leaves: []leaf[api.BFDSession]{
		{Leaf{Path: "local-address", Type: TypeAddress, Class: Config, Doc: "of this device"}, func(b *api.BFDSession) any {
			if !b.Local.IsValid() {
				return nil
			}
			return b.Local.String()
		}},
		{Leaf{Path: "remote-address", Type: TypeAddress, Class: Config, Doc: "of the other device"}, func(b *api.BFDSession) any { return b.Device.String() }},
		{Leaf{Path: "session-state", Type: TypeEnum, Values: bfdStates, Class: Event, Doc: "RFC 5880"}, func(b *api.BFDSession) any { return bfdState(b.State) }},
		{Leaf{Path: "remote-session-state", Type: TypeEnum, Values: bfdStates, Class: Event, Doc: "as last received"}, func(b *api.BFDSession) any { return bfdState(b.RemoteState) }},
		{Leaf{Path: "last-failure-time", Type: TypeTime, Class: Event, Doc: "when it failed last"}, func(b *api.BFDSession) any { return moment(b.LastDown) }},
		{Leaf{Path: "failure-transitions", Type: TypeUint64, Class: Counter, Doc: "times that it failed"}, func(b *api.BFDSession) any { return b.Flaps }},
		{Leaf{Path: "remote-discriminator", Type: TypeString, Class: Event, Doc: "of the other device"}, func(b *api.BFDSession) any {
			if b.RemoteDiscr == 0 {
				return nil
			}
			return strconv.FormatUint(uint64(b.RemoteDiscr), 10)
		}},
		{Leaf{Path: "async/transmitted-packets", Type: TypeUint64, Class: Counter, Unit: "packets", Doc: "sent"}, func(b *api.BFDSession) any { return b.PacketsOut }},
		{Leaf{Path: "async/received-packets", Type: TypeUint64, Class: Counter, Unit: "packets", Doc: "received"}, func(b *api.BFDSession) any { return b.PacketsIn }},
	},
}

var openSystem = group[Snapshot]{
	path: "/system/state", source: "daemon",
	rows: wholeRow,
	leaves: []leaf[Snapshot]{
		{Leaf{Path: "hostname", Type: TypeString, Class: Config, Doc: "device.name"}, func(s *Snapshot) any { return some(s.Status.Name) }},
		{Leaf{Path: "software-version", Type: TypeString, Class: Config, Doc: "of inofd"}, func(s *Snapshot) any { return some(s.Status.Version) }},
		{Leaf{Path: "boot-time", Type: TypeTime, Class: Config, Doc: "of the machine"}, func(s *Snapshot) any { return moment(&s.Machine.Boot) }},
	},
}

func wholeRow(s *Snapshot, give func(time.Time, *Snapshot, ...string)) { give(s.At, s) }

var openMachine = group[Machine]{
	path: "/system/memory/state", source: "/proc/meminfo", reader: ReadMachine,
	rows: machineRow,
	leaves: []leaf[Machine]{
		{Leaf{Path: "physical", Type: TypeUint64, Class: Config, Unit: "bytes", Doc: "of the machine"}, func(m *Machine) any { return some(m.Memory) }},
	},
}

func machineRow(s *Snapshot, give func(time.Time, *Machine, ...string)) {
	if !s.Machine.At.IsZero() {
		give(s.Machine.At, &s.Machine)
	}
}

// alarm is a kind of warning that stands.
type alarm struct {
	rule  string
	texts []string
}

var openAlarms = group[alarm]{
	path: "/system/alarms/alarm[id]/state", source: "daemon",
	rows: func(s *Snapshot, give func(time.Time, *alarm, ...string)) {
		var all []*alarm
		for _, w := range s.Status.Warnings {
			i := slices.IndexFunc(all, func(a *alarm) bool { return a.rule == w.Rule })
			if i < 0 {
				i, all = len(all), append(all, &alarm{rule: w.Rule})
			}
			all[i].texts = append(all[i].texts, w.Text)
		}
		for _, a := range all {
			give(s.At, a, a.rule)
		}
	},
	keys: keysOf("id"),
	leaves: []leaf[alarm]{
		{Leaf{Path: "text", Type: TypeString, Class: Event, Doc: "of the warnings of that kind (docs/warnings.md)"}, func(a *alarm) any { return strings.Join(a.texts, "\n") }},
	},
}

var openMessage = group[api.Event]{
	path: "/system/messages/state/message", source: "daemon", each: true,
	rows: func(s *Snapshot, give func(time.Time, *api.Event, ...string)) {
		if s.Latest != nil {
			give(s.Latest.Time, s.Latest)
		}
	},
	leaves: []leaf[api.Event]{
		{Leaf{Path: "msg", Type: TypeString, Class: Event, Doc: "the last event"}, func(e *api.Event) any { return e.Text }},
		{Leaf{Path: "msgid", Type: TypeString, Class: Event, Doc: "its kind"}, func(e *api.Event) any { return e.Kind }},
		{Leaf{Path: "app-name", Type: TypeString, Class: Event, Doc: "inofd"}, func(*api.Event) any { return "inofd" }},
	},
}
