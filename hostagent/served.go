package hostagent

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// WithServed adds what this kernel's own target serves, at its interfaces, to what is registered. A
// subsystem and a port are named where an address has one of each; else hosts ask by discovery.
func (c *Config) WithServed(served []hostkernel.Served, have []hostkernel.Interface) Config {
	out := *c
	out.Ports = slices.Clone(c.Ports)
	for _, s := range served {
		if len(c.Target.Interfaces) > 0 && !slices.ContainsFunc(have, func(i hostkernel.Interface) bool {
			return slices.Contains(c.Target.Interfaces, i.Name) && slices.Contains(i.Addrs, s.Addr)
		}) {
			continue
		}
		protocol := snsd.ProtocolTCP
		if s.Transport == "rdma" {
			protocol = snsd.ProtocolRoCE
		}
		i := slices.IndexFunc(out.Ports, func(p PortConfig) bool { return slices.Equal(p.Addresses, []netip.Addr{s.Addr}) })
		if i < 0 {
			p := PortConfig{Addresses: []netip.Addr{s.Addr}, Role: snsd.RoleTarget, Protocol: protocol, ServicePort: s.Port}
			if len(s.Subsystems) == 1 {
				p.NQN = s.Subsystems[0]
			}
			out.Ports = append(out.Ports, p)
			continue
		}
		p := &out.Ports[i]
		if p.Role == snsd.RoleInitiator {
			p.Role, p.ServicePort, p.NQN = snsd.RoleBoth, s.Port, ""
			if len(s.Subsystems) == 1 {
				p.NQN = s.Subsystems[0]
			}
		} else if p.ServicePort != s.Port {
			p.ServicePort, p.NQN = 0, ""
		}
	}
	return out
}
