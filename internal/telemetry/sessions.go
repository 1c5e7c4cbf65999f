package telemetry

import (
	"time"

	"github.com/openinof/inof/internal/api"
)

// peerMetric is a metric of a peer; detail of many goes first.
func peerMetric(name, labels, fixed string) Metric {
	return Metric{Name: name, Labels: labels, Fixed: fixed, Bulk: BulkPeer}
}

var (
	sessionStates = []string{string(api.PeerConnect), string(api.PeerOpenSend), string(api.PeerOpenConfirm), string(api.PeerEstablished)}
	syncs         = []string{"resumed", "full"}
	reports       = []string{"unknown", "up", "down", "admin-down"}
)

var peers = group[api.Peer]{
	path: "/inof/peers/peer[role device address]/state", source: "daemon", least: time.Second, keys: []Leaf{{Path: "role", Type: TypeEnum, Values: []string{"reflector", "client"}}, {Path: "device", Type: TypeString}, {Path: "address", Type: TypeString}},
	rows: func(s *Snapshot, give func(time.Time, *api.Peer, ...string)) {
		for i := range s.Peers {
			p := &s.Peers[i]
			if p.Refused {
				continue // nothing is proved about it
			}
			device := p.Address
			if p.Device.IsValid() {
				device = p.Device.String()
			}
			give(s.At, p, p.Role, device, p.Address)
		}
	},
	leaves: []leaf[api.Peer]{
		{Leaf{Path: "session-state", Type: TypeEnum, Values: sessionStates, Class: Event, Doc: "of the session"}, func(p *api.Peer) any { return word(sessionStates, string(p.State)) }},
		{Leaf{Path: "established", Type: TypeBool, Class: Event, Doc: "the session stands", Metric: Metric{Name: "peer_up", Labels: "role peer"}}, func(p *api.Peer) any { return p.State == api.PeerEstablished }},
		{Leaf{Path: "since", Type: TypeTime, Class: Event, Doc: "of the state"}, func(p *api.Peer) any { return moment(&p.Since) }},
		{Leaf{Path: "reconnects", Type: TypeCounter, Class: Counter, Doc: "sessions that began anew", Metric: peerMetric("peer_reconnects_total", "role peer", "")}, func(p *api.Peer) any { return p.Reconnects }},
		{Leaf{Path: "messages-in", Type: TypeCounter, Class: Counter, Unit: "messages", Doc: "of this session", Metric: peerMetric("peer_messages_total", "role peer", "direction=in")}, func(p *api.Peer) any { return p.MessagesIn }},
		{Leaf{Path: "messages-out", Type: TypeCounter, Class: Counter, Unit: "messages", Doc: "of this session", Metric: peerMetric("peer_messages_total", "role peer", "direction=out")}, func(p *api.Peer) any { return p.MessagesOut }},
		{Leaf{Path: "last-error", Type: TypeString, Class: Event, Doc: "why the last session ended"}, func(p *api.Peer) any { return some(p.LastError) }},
		{Leaf{Path: "sync-in", Type: TypeEnum, Values: syncs, Class: Event, Doc: "resumed or full"}, func(p *api.Peer) any { return word(syncs, p.SyncIn) }},
		{Leaf{Path: "sync-out", Type: TypeEnum, Values: syncs, Class: Event, Doc: "resumed or full"}, func(p *api.Peer) any { return word(syncs, p.SyncOut) }},
		{Leaf{Path: "certificate-expiry", Type: TypeTime, Class: Config, Doc: "of the peer", Metric: peerMetric("certificate_expiry_timestamp_seconds", "role peer", "")}, func(p *api.Peer) any { return moment(p.CertificateExpires) }},
	},
}

var paths = group[api.BFDSession]{
	path: "/inof/paths/path[device]/state", source: "BFD process", least: time.Second, keys: keysOf("device:" + TypeAddress),
	rows: func(s *Snapshot, give func(time.Time, *api.BFDSession, ...string)) {
		for i := range s.Paths.Sessions {
			give(s.At, &s.Paths.Sessions[i], s.Paths.Sessions[i].Device.String())
		}
	},
	leaves: []leaf[api.BFDSession]{
		{Leaf{Path: "report", Type: TypeEnum, Values: reports, Class: Event, Doc: "unknown: it was never up"}, func(b *api.BFDSession) any { return word(reports, b.Report) }},
		{Leaf{Path: "up", Type: TypeBool, Class: Event, Doc: "absent while it was never up", Metric: Metric{Name: "path_up", Labels: "peer", Bulk: BulkPeer}}, func(b *api.BFDSession) any {
			if b.Report != "up" && b.Report != "down" {
				return nil
			}
			return b.Report == "up" && !b.Fault
		}},
		{Leaf{Path: "fault", Type: TypeBool, Class: Event, Doc: "hosts are told that those of the device cannot be reached"}, func(b *api.BFDSession) any { return b.Fault }},
		{Leaf{Path: "flaps", Type: TypeCounter, Class: Counter, Doc: "times that it failed", Metric: peerMetric("path_flaps_total", "peer", "")}, func(b *api.BFDSession) any { return b.Flaps }},
		{Leaf{Path: "last-down", Type: TypeTime, Class: Event, Doc: "when it failed last"}, func(b *api.BFDSession) any { return moment(b.LastDown) }},
		{Leaf{Path: "hold-left", Type: TypeUint64, Unit: "nanoseconds", Class: Gauge, Doc: "until it is told that it works"}, func(b *api.BFDSession) any {
			if b.HoldLeft <= 0 {
				return nil
			}
			return seconds(b.HoldLeft)
		}},
	},
}

var clocks = group[api.Clock]{
	path: "/inof/clocks/clock[reflector]/state", source: "messages that came back", least: time.Second, keys: keysOf("reflector:" + TypeAddress),
	rows: func(s *Snapshot, give func(time.Time, *api.Clock, ...string)) {
		for i := range s.Latency.Clocks {
			c := &s.Latency.Clocks[i]
			give(c.Measured, c, c.Reflector.String())
		}
	},
	leaves: []leaf[api.Clock]{
		{Leaf{Path: "offset", Type: TypeInt64, Unit: "nanoseconds", Class: Gauge, Doc: "of the reflector's clock ahead of ours", Metric: peerMetric("clock_offset_seconds", "peer", "")}, func(c *api.Clock) any { return time.Duration(c.Ahead * 1e3) }},
		{Leaf{Path: "round-trip", Type: TypeInt64, Unit: "nanoseconds", Class: Gauge, Doc: "without the reflector's own time; the offset is right to half of it"}, func(c *api.Clock) any { return time.Duration(c.RoundTrip * 1e3) }},
	},
}

var cluster = group[api.Cluster]{
	path: "/inof/cluster/state", source: "daemon", least: time.Second,
	rows: func(s *Snapshot, give func(time.Time, *api.Cluster, ...string)) {
		if s.Cluster != nil {
			give(s.At, s.Cluster)
		}
	},
	leaves: []leaf[api.Cluster]{
		{Leaf{Path: "leader", Type: TypeAddress, Class: Event, Doc: "absent: none is known"}, func(c *api.Cluster) any {
			if !c.Leader.IsValid() {
				return nil
			}
			return c.Leader.String()
		}},
		{Leaf{Path: "has-leader", Type: TypeBool, Class: Event, Doc: "a leader is known", Metric: Metric{Name: "cluster_has_leader"}}, func(c *api.Cluster) any { return c.Leader.IsValid() }},
		{Leaf{Path: "accepts-changes", Type: TypeBool, Class: Event, Doc: "of zones, here and now", Metric: Metric{Name: "cluster_accepts_changes"}}, func(c *api.Cluster) any { return c.Accepts }},
		count("members", "voters and those that catch up", "cluster_members", func(c *api.Cluster) int { return len(c.Members) }),
		{Leaf{Path: "committed", Type: TypeUint64, Class: Counter, Doc: "index of the log"}, func(c *api.Cluster) any { return c.Committed }},
	},
}
