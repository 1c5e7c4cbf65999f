package config

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/snsd"
)

// Declared is a host that registers nothing: what it would register, and on which ports it may be.
type Declared struct {
	Addr    netip.Addr
	Ports   []string
	Service snsd.Service
}

// String is the declaration in a line.
func (d Declared) String() string {
	return fmt.Sprintf("%s at %s as %s", d.Addr, strings.Join(d.Ports, " "), serviceText(d.Service))
}

func serviceText(s snsd.Service) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s:%d %s", s.Role, s.Protocol, s.Port, s.NQN))
}

// Declared lists the hosts that the bindings declare.
func (h *Hosts) Declared() (list []Declared) {
	for _, b := range h.Bindings {
		if b.Register != (snsd.Service{}) {
			list = append(list, Declared{b.Addrs.Addr(), b.Ports, b.Register})
		}
	}
	return list
}

const (
	// MaxDeclared is how many hosts a configuration may declare, MaxDeclaredPorts how many names of
	// ports each may have in reflector.hosts: what fits one message (wire.MaxBound).
	MaxDeclared      = 1024
	MaxDeclaredPorts = 4

	// maxNQN is the longest NQN in bytes (NVM Express Base Specification 2.0, clause 4.5).
	maxNQN = 223
)

// register is the key register of a declaration: what the host would register.
func register(s *snsd.Service) item {
	port := int(s.Port)
	number := setting.Int("service-port", &port, 0, 1, 65535, "Where its service listens, where that is not the protocol's own port.").Documented("the protocol's", "1..65535")
	read := number.Read
	number.Read = func(v string) string {
		wrong := read(v)
		if s.Port = uint16(port); wrong == "" && port == 0 {
			wrong = "is 0"
		}
		return wrong
	}
	number.Reset = func() { s.Port = 0 }
	return part("register", values(
		setting.Choice("role", &s.Role, snsd.RoleUnknown, []snsd.Role{snsd.RoleTarget, snsd.RoleInitiator, snsd.RoleBoth},
			"What the host is. With `register` the entry declares a host that sends no registration, as most arrays: it is asked for by ARP or Neighbor "+
				"Discovery, and is a host while exactly one of `ports` answers for the address ([arrays that register nothing](hosts.md#12-arrays-that-register-nothing)).").
			Documented("required with `register`", "`target`, `initiator`, `both`"),
		setting.Choice("protocol", &s.Protocol, snsd.ProtocolUnknown, []snsd.Protocol{snsd.ProtocolTCP, snsd.ProtocolRoCE, snsd.ProtocolISCSI},
			"How its storage is reached.").Documented("required with `register`", "`tcp`, `roce`, `iscsi`"),
		number,
		setting.Text("nqn", &s.NQN, "", "nqn. and what follows, at most 223 bytes", "The name of its subsystem, or of the initiator.", checkNQN).
			Documented("", "an NQN, at most 223 bytes"),
	), func(r *section) {
		if !r.written() {
			return
		}
		for _, key := range []string{"role", "protocol"} {
			if !r.has(key) {
				r.problem(key, "is missing: others are told what the host is", map[string]string{"role": "target, initiator or both", "protocol": "tcp, roce or iscsi"}[key])
			}
		}
	})
}

func checkNQN(v string) string {
	switch what := checkName(v, maxNQN); {
	case what != "":
		return what
	case !strings.HasPrefix(v, "nqn."):
		return "does not begin with nqn."
	case strings.ContainsAny(v, " \t*?"):
		return "has a space, * or ?"
	}
	return ""
}

// declares checks a declaration; seen are the lines of the addresses so far.
func (c *Config) declares(e *section, p netip.Prefix, s *snsd.Service, seen map[netip.Addr]int) bool {
	const allowed = "one address of a host"
	a := p.Addr()
	switch {
	case *s == (snsd.Service{}):
		e.problem("register", "is empty: others are told what the host is", "role and protocol")
	case s.Role == snsd.RoleUnknown || s.Protocol == snsd.ProtocolUnknown:
		return false // reported
	case !p.IsValid():
		e.problem("address", "is missing: what is declared is asked for", allowed)
	case !p.IsSingleIP():
		e.problem("address", fmt.Sprintf("is the prefix %s, and register declares one host", p), allowed)
	case checkAddr(a, c.Device.AllowLoopback) != "":
		e.problem("address", checkAddr(a, c.Device.AllowLoopback)+", and no host can have it", allowed)
	case seen[a] > 0:
		e.problem("address", fmt.Sprintf("is declared twice, first in line %d", seen[a]), "one register for each address")
	case len(seen) == MaxDeclared:
		e.problem("register", fmt.Sprintf("is the declaration number %d", len(seen)+1), fmt.Sprintf("at most %d", MaxDeclared))
	default:
		seen[a] = e.node.Line
		return true
	}
	return false
}

// declaredHosts is reflector.hosts.
func (c *Config) declaredHosts() item {
	type entry struct {
		addr netip.Prefix
		Declared
	}
	into := &c.Reflector.Hosts
	seen := map[netip.Addr]int{}
	return entries("hosts", "address, ports, register",
		"Hosts that register nothing, for all devices at once, as `hosts.bindings[].register` declares one for one device. A device has such a host "+
			"while exactly one of its ports with these names answers for the address. It binds nothing: a host that registers the address elsewhere is a rival "+
			"claim (`hosts.conflict`). Of one address a device's own declaration comes first, then that of its first reflector. At most 1,024; write them at every reflector. A "+
			"reload that would no longer declare hosts that are known is refused and names them, unless forced.", joined(into),
		func(d *entry) []item {
			return append(values(hostPrefix("The address.", &d.addr).Documented("required", "an address")),
				words("ports", allowedPorts, "Where it may be, on each device.", joined(&d.Ports), appending(&d.Ports, checkPort)).
					documented("required", asPorts+", at most 4"), register(&d.Service))
		}, func(e *section, d *entry) {
			switch n := len(d.Ports); {
			case !e.has("register"):
				e.problem("register", "is missing: others are told what the host is", "role and protocol")
			case n < 1 || n > MaxDeclaredPorts:
				e.problem("ports", fmt.Sprintf("has %d entries", n), fmt.Sprintf("1..%d of: %s", MaxDeclaredPorts, allowedPorts))
			case c.declares(e, d.addr, &d.Service, seen):
				d.Addr = d.addr.Addr()
				*into = append(*into, d.Declared)
			}
		}).documented("", "a list")
}

// hostPrefix is the key address of bindings and declarations.
func hostPrefix(doc string, into *netip.Prefix) setting.Setting {
	return setting.Value("address", into, netip.Prefix{}, allowedPrefixes, doc, parsePrefix, func(p netip.Prefix) string {
		if !p.IsValid() {
			return ""
		}
		return p.String()
	})
}
