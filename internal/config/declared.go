package config

import (
	"time"

	"github.com/openinof/inof/internal/setting"
)

// A setting stands here once, with key, default, range, whether a change takes effect only after
// a restart (Fixed), and why one would change it. Reading, comparing, and the
// row of docs/config.md (go test ./internal/config -update) follow. Lists, addresses and what
// depends on other settings are read beside this; faults of ports are declared in errdown.

// declared are settings of a section.
type declared struct {
	prefix string // the section with its dot
	list   []setting.Setting
}

func (c *Config) declared() []declared {
	out := []declared{
		{"ports.", c.Ports.settings()},
		{"lldp.", c.LLDP.settings()},
		{"hosts.", c.Hosts.settings()},
		{"reflector.", c.Reflector.settings()},
		{"client.", c.Client.settings()},
		{"session.", c.Session.settings()},
		{"notify.", c.Notify.settings()},
		{"management.", c.Management.settings()},
	}
	for _, set := range c.ErrorDown.Sections() {
		out = append(out, declared{"error-down." + set.Name + ".", set.Settings})
	}
	return out
}

func (p *Ports) settings() []setting.Setting {
	return []setting.Setting{
		setting.Int("max", &p.Max, 1024, 1, 65536,
			"Bounds what a runaway glob (`*` on a machine with thousands of virtual ports) can cost.").Fixed(),
		setting.Span("removal-hold", &p.RemovalHold, 2*time.Minute, 0, 24*time.Hour,
			"How long the hosts of a port that `ports.access` does not name any more stay what they are, before they count as gone (reason "+
				"`aged-out`): the time in which a mistake can be corrected without any host hearing of it."),
	}
}

func (l *LLDP) settings() []setting.Setting {
	return []setting.Setting{
		setting.Choice("transmit", &l.Transmit, TransmitAuto, []TransmitMode{TransmitAuto, TransmitOn, TransmitOff},
			"`auto` sends own LLDPDUs unless another LLDP daemon (SONiC, lldpd) speaks on this device. Write `off` or `on` where that guess is "+
				"wrong."),
		setting.Span("interval", &l.Interval, 30*time.Second, time.Second, time.Hour,
			"How often own LLDPDUs are sent. Shorter makes hosts find the switch sooner, for more frames."),
		setting.Span("ttl", &l.TTL, 2*time.Minute, 2*time.Second, 65535*time.Second,
			"How long hosts remember a switch that fell silent. Keep it at three or four intervals. Whole seconds, more than `lldp.interval`."),
		setting.Int("max-neighbours-per-port", &l.MaxNeighboursPerPort, 128, 1, 4096,
			"Neighbours (LLDPDU sources, one per registered address) taken at one port. Raise it for hosts with more addresses, lower it against "+
				"hosts that invent them.").Fixed(),
		setting.Int("max-hosts", &l.MaxHosts, DefaultMaxHost, 8000, DefaultMaxHost,
			"Host addresses taken in all; bounds memory.").Fixed(),
	}
}

func (h *Hosts) settings() []setting.Setting {
	return []setting.Setting{
		setting.Choice("conflict", &h.Conflict, ConflictProbe, []Conflict{ConflictProbe, ConflictNewest, ConflictFirst},
			"What becomes of the address of a host here that another host claims, while both their ports are well. `probe`: the host is asked (ARP, "+
				"Neighbor Discovery, a repeated notice); it keeps the address if it answers within 200 ms, and loses it otherwise. `first`: it keeps "+
				"the address until its registration ends, as long as one waits for that. `newest`: whoever claims the address takes it, also by "+
				"mistake, and two hosts that both announce it take it from each other."),
		setting.Choice("multi-port", &h.MultiPort, MultiPortDevice, []MultiPort{MultiPortNever, MultiPortDevice, MultiPortFabric},
			"On which ports one host (one MAC address) with one address counts as one, so that it is reachable while one of them is well. `device`: "+
				"several ports of one device, a bond. `fabric`: ports of several devices too, where hosts have a bond over two switches; then a host "+
				"that copies another's MAC and IP address can hide that the other one is down. `never`: one port only, any other is a rival claim."),
		setting.Span("max-ttl", &h.MaxTTL, 5*time.Minute, 10*time.Second, 65535*time.Second,
			"The longest LLDP time to live taken from a host; a longer one is cut. It bounds how long a host that left without a word stays known. "+
				"Whole seconds."),
		setting.Choice("frame-source", &h.Source, FrameSourceDoubt, []FrameSource{FrameSourceDoubt, FrameSourceAny, FrameSourceRequired},
			"What becomes of a host whose LLDP frames come from another MAC address than their chassis id (where that is one), and that no binding "+
				"names. The agents of storage hosts send from it, bonds too; other LLDP daemons may not. `doubt`: it is taken, and has an address only "+
				"while no other host claims it; an event tells of it. `any`: it is taken like others. `required`: it is refused."),
	}
}

func (r *Reflector) settings() []setting.Setting {
	return []setting.Setting{
		setting.Span("grace", &r.Grace, 2*time.Minute, time.Second, 24*time.Hour,
			"How long the records of a device that left stay in force, so that a restart or a short outage is not told to hosts as their peers' "+
				"loss. Longer than the longest restart of a switch daemon.").Fixed(),
		setting.Int("max-clients", &r.MaxClients, 4096, 1, 4096,
			"Bounds memory and sockets.").Fixed(),
		setting.Int("max-hosts-per-device", &r.MaxHostsPerDevice, 20_000, 100, 80_000,
			"Host addresses of one device, a quarter of all. Besides, the last fifth of the table is for devices with less than their fair share of "+
				"it. What does not fit is refused, shown on both sides, never told as gone, and asked for again when there is room.").Fixed(),
		setting.Int("records-per-second", &r.RecordsPerSecond, 2000, 100, 1_000_000,
			"Records (hosts, or 8 addresses of a fault) that one device may send a second in the long run; then it is not read any faster, others "+
				"do not wait for it, and a warning names it. More, if one device has tens of thousands of hosts that change all the time."),
		setting.Int("records-burst", &r.RecordsBurst, 20_000, 1000, 1_000_000,
			"Records that a device may send at once, as in a full sync."),
	}
}

func (c *Client) settings() []setting.Setting {
	return []setting.Setting{
		setting.Choice("zone-agreement", &c.Agreement, AgreeIdentical, []Agreement{AgreeIdentical, AgreeUnion},
			"Where the zones of two reflectors differ: with `identical` a zone member takes effect when both name it, with `union` when one does. "+
				"What differs is in `inofctl show zone --inconsistent`.").Fixed(),
		setting.Span("reflector-wait", &c.ReflectorWait, 10*time.Second, 0, 10*time.Minute,
			"How long after the first sync since the start a reflector that was never heard is waited for. Then the other one decides alone. Longer "+
				"where one is slow to be reached; new hosts wait meanwhile.").Fixed(),
		setting.Choice("interest", &c.Interest, InterestConcerned, []Interest{InterestConcerned, InterestAll},
			"`all` asks for all hosts, not only for those in zones with a member here: for a device that monitors; `reflector.monitors` "+
				"must name it. Costs memory.").Fixed(),
	}
}

func (s *Session) settings() []setting.Setting {
	return []setting.Setting{
		setting.Span("keepalive", &s.Keepalive, 3*time.Second, 100*time.Millisecond, 20*time.Minute,
			"How often an idle session says it is alive. The smaller value of both sides counts.").Fixed(),
		setting.Span("hold", &s.Hold, 9*time.Second, 300*time.Millisecond, time.Hour,
			"How long a silent session is taken to be alive. Shorter finds a dead reflector sooner; hosts are not told anything because of it. At "+
				"least three times `session.keepalive`.").Fixed(),
		setting.Span("connect-timeout", &s.ConnectTimeout, 5*time.Second, 100*time.Millisecond, 5*time.Minute,
			"How long an attempt to connect may take before the next one.").Fixed(),
	}
}

func (n *Notify) settings() []setting.Setting {
	return []setting.Setting{
		setting.Span("retry-first", &n.RetryFirst, 20*time.Millisecond, time.Millisecond, 10*time.Second,
			"The shortest time without any ack of a host after which its oldest notices are repeated. What its acks show to be too short is "+
				"stretched, and each further time is twice as long. While acks come nothing is repeated but what they prove lost; active notices are "+
				"repeated once, and then every 5 s.").Fixed(),
		setting.Span("retry-max", &n.RetryMax, time.Second, time.Millisecond, time.Minute,
			"The longest such time. Repetitions go on as long as the host is registered. At least `notify.retry-first`.").Fixed(),
		setting.Int("frames-per-window", &n.FramesPerWindow, 100, 1, floodFrames-1,
			"Most frames out of one port within the window. Less than 500 in 500 ms.").Fixed(),
		setting.Span("window", &n.Window, 500*time.Millisecond, 10*time.Millisecond, 10*time.Second,
			"The window of the above.").Fixed(),
		setting.Int("max-in-flight", &n.MaxInFlight, 256, 1, 1000,
			"Most notices to one host that wait for an ack; fewer while its acks show that it is overtaxed. Agents queue at most 1000.").Fixed(),
		setting.Choice("peers", &n.Peers, PeersByRole, []NotifyPeers{PeersByRole, PeersAll},
			"Of which hosts of its zones a host is told: initiators of targets and targets of initiators, as hard zoning lets them exchange traffic "+
				"(`both` and an unknown role count as either), or all of all. Agents log an error for each notice about an initiator.").Fixed(),
		setting.Int("history", &n.History, 4096, 1, 1_000_000,
			"Notices kept for `inofctl show notice`.").Fixed(),
	}
}

func (m *Management) settings() []setting.Setting {
	return []setting.Setting{
		setting.Int("events", &m.Events, 4096, 16, 1_000_000,
			"Events kept for `inofctl show event` and for a `watch` that was away.").Fixed(),
	}
}
