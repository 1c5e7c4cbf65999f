package config

import (
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/openinof/inof/fabric"
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
	return strings.Join(parts, " ") + " at " + strings.Join(b.Ports, " ")
}

func readHosts(c *Config, s *section) {
	defer s.close()
	h := &c.Hosts
	s.read(h.settings())
	if h.MaxTTL%time.Second != 0 {
		s.problem("max-ttl", "is not a number of whole seconds", "whole seconds")
	}
	s.sections("bindings", "[]", "ports, and at least one of address, mac, nqn", func(e *section) {
		if b, ok := readHostBinding(e); ok {
			h.Bindings = append(h.Bindings, b)
		}
	})
}

func readHostBinding(e *section) (b HostBinding, ok bool) {
	before := len(e.p.problems)
	e.text("address", "", allowedPrefixes, func(v string) (what string) {
		b.Addrs, what = parsePrefix(v)
		return what
	})
	e.text("mac", "", "a MAC address, 02:00:00:00:00:01", func(v string) string {
		m, err := net.ParseMAC(v)
		if err != nil || len(m) != len(b.MAC) || m[0]&1 != 0 || fabric.MAC(m).IsZero() {
			return "is no MAC address of a port"
		}
		b.MAC = fabric.MAC(m)
		return ""
	})
	b.NQN = e.text("nqn", "", allowedNQNs, checkNQNPattern)
	b.Ports = e.list("ports", "required", allowedPorts, checkPort)
	_, written := e.values["ports"]
	switch {
	case !written:
		e.problem("ports", "is missing: a binding is to ports", "a list of: "+allowedPorts)
	case len(e.p.problems) > before:
	case !b.Addrs.IsValid() && b.MAC.IsZero() && b.NQN == "":
		e.problem("ports", "binds nothing", "at least one of address, mac, nqn beside it")
	}
	return b, len(e.p.problems) == before
}
