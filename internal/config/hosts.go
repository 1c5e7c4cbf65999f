package config

import (
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/snsd"
)

// Conflict says what becomes of a local host's address when another host claims it.
type Conflict string

// The values of hosts.conflict.
const (
	ConflictProbe  Conflict = "probe"  // the host is asked, and keeps the address if it answers
	ConflictNewest Conflict = "newest" // the new claim takes it
	ConflictFirst  Conflict = "first"  // the host keeps it
)

// MultiPort says on which ports one host may be with one address and count as one.
type MultiPort string

// The values of hosts.multi-port.
const (
	MultiPortNever  MultiPort = "never"
	MultiPortDevice MultiPort = "device"
	MultiPortFabric MultiPort = "fabric"
)

// Hosts sets what is believed of hosts.
type Hosts struct {
	Conflict  Conflict
	MultiPort MultiPort
	MaxTTL    time.Duration // longest LLDP time to live taken, whole seconds, 10 s..65,535 s
	Source    FrameSource
	Bindings  []HostBinding
}

// FrameSource is what becomes of hosts whose LLDP frames do not come from their chassis id.
type FrameSource string

// The values of hosts.frame-source.
const (
	FrameSourceDoubt    FrameSource = "doubt"    // taken, and take no address that another claims
	FrameSourceAny      FrameSource = "any"      // taken
	FrameSourceRequired FrameSource = "required" // refused unless a binding has the MAC address
)

// HostBinding binds an address, a MAC address and an NQN to ports; what is zero is not bound.
type HostBinding struct {
	Addrs netip.Prefix
	MAC   fabric.MAC
	NQN   string // exact, or with * and ?
	Ports []string
	// Register declares a host that registers nothing; zero: the entry only binds.
	Register snsd.Service
}

// String is the binding in a line.
func (b HostBinding) String() string {
	var parts []string
	if b.Addrs.IsValid() {
		parts = append(parts, "address "+b.Addrs.String())
	}
	if !b.MAC.IsZero() {
		parts = append(parts, "mac "+b.MAC.String())
	}
	if b.NQN != "" {
		parts = append(parts, "nqn "+b.NQN)
	}
	text := strings.Join(parts, " ") + " at " + strings.Join(b.Ports, " ")
	if b.Register != (snsd.Service{}) {
		text += " as " + serviceText(b.Register)
	}
	return text
}

func (c *Config) hostsItem() item {
	h := &c.Hosts
	keys := values(
		setting.Choice("conflict", &h.Conflict, ConflictProbe, []Conflict{ConflictProbe, ConflictNewest, ConflictFirst},
			"What becomes of the address of a host here that another host claims, while both their ports are well. `probe`: the host is asked (ARP, "+
				"Neighbor Discovery, a repeated notice); it keeps the address if it answers within 200 ms, and loses it otherwise. `first`: it keeps "+
				"the address until its registration ends, as long as one waits for that. `newest`: whoever claims the address takes it, also by "+
				"mistake, and two hosts that both announce it take it from each other."),
		setting.Choice("multi-port", &h.MultiPort, MultiPortFabric, []MultiPort{MultiPortNever, MultiPortDevice, MultiPortFabric},
			"On which ports one host (one MAC address) with one address counts as one, so that it is reachable while one of them is well. `fabric`: "+
				"ports of several devices too where it registers with the same NQN on all, a bond over two switches (MLAG); then a host that copies "+
				"another's MAC address, IP address and NQN can hide that the other one is down, and so does a registration that a virtual machine "+
				"left behind at another switch, until its time to live is over. `device`: several ports of one device only: write it where no host "+
				"has a bond over two switches. `never`: one port only, any other is a rival claim."),
		setting.Span("max-ttl", &h.MaxTTL, 5*time.Minute, 10*time.Second, 65535*time.Second,
			"The longest LLDP time to live taken from a host; a longer one is cut. It bounds how long a host that left without a word stays known. "+
				"Whole seconds."),
		setting.Choice("frame-source", &h.Source, FrameSourceDoubt, []FrameSource{FrameSourceDoubt, FrameSourceAny, FrameSourceRequired},
			"What becomes of a host whose LLDP frames come from another MAC address than their chassis id (where that is one), and that no binding "+
				"names. The agents of storage hosts send from it, bonds too; other LLDP daemons may not. `doubt`: it is taken, and has an address only "+
				"while no other host claims it; an event tells of it. `any`: it is taken like others. `required`: it is refused."),
	)
	return part("hosts", append(keys, c.bindings(&h.Bindings)), func(s *section) {
		if h.MaxTTL%time.Second != 0 {
			s.problem("max-ttl", "is not a number of whole seconds", "whole seconds")
		}
	})
}

// bindings is hosts.bindings.
func (c *Config) bindings(into *[]HostBinding) item {
	seen := map[netip.Addr]int{}
	return entries("bindings", "ports, and at least one of address, mac, nqn",
		"What may be at which ports of this device. What is bound may be nowhere else here, and is refused there: shown, with an event, and no "+
			"host. Of each address, MAC address and NQN that is bound, one entry must be right as a whole. For hosts of other devices see "+
			"`reflector.clients`. A reload that would refuse hosts that are known is refused and names them, unless forced. With `register` the entry declares its host, too.", joined(into),
		func(b *HostBinding) []item {
			return append(values(
				hostPrefix("Bind addresses.", &b.Addrs).Documented("", "an address, or a prefix of some"),
				setting.Value("mac", &b.MAC, fabric.MAC{}, "a MAC address, 02:00:00:00:00:01",
					"Bind a chassis id, or the source of LLDP frames that come from another one than their chassis id: they are not in doubt then.", parseMAC, func(m fabric.MAC) string {
						if m.IsZero() {
							return ""
						}
						return m.String()
					}).Documented("", "a MAC address"),
				setting.Text("nqn", &b.NQN, "", allowedNQNs, "Bind an NQN.", checkNQNPattern).Documented("", "an NQN, which may have `*` and `?`"),
			), words("ports", allowedPorts, "Where it may be.", joined(&b.Ports), appending(&b.Ports, checkPort)).documented("required", asPorts), register(&b.Register))
		}, func(e *section, b *HostBinding) {
			switch {
			case !e.has("ports"):
				e.problem("ports", "is missing: a binding is to ports", "a list of: "+allowedPorts)
			case !e.has("address") && !e.has("mac") && !e.has("nqn"):
				e.problem("ports", "binds nothing", "at least one of address, mac, nqn beside it")
			case !e.has("register") || c.declares(e, b.Addrs, &b.Register, seen):
				*into = append(*into, *b)
			}
		}).documented("", "a list")
}

func parseMAC(v string) (fabric.MAC, string) {
	m, err := net.ParseMAC(v)
	if err != nil || len(m) != len(fabric.MAC{}) || m[0]&1 != 0 || fabric.MAC(m).IsZero() {
		return fabric.MAC{}, "is no MAC address of a port"
	}
	return fabric.MAC(m), ""
}
