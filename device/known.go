package device

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/zone"
)

// View is the table that operators see: a reflector's of the whole fabric, else
// the device's own.
func (c *Core) View() *zone.Directory {
	if c.refl != nil {
		return c.refl.Directory()
	}
	return c.dir
}

// Self is the address of the device.
func (c *Core) Self() netip.Addr { return c.self }

// Synced reports whether the device knows all that its reflector knows.
func (c *Core) Synced() bool { return c.client == nil || c.client.Synced() }

// Directory is the device's own table of hosts; to be read only.
func (c *Core) Directory() *zone.Directory { return c.dir }

// PortNames lists the ports that are there, sorted.
func (c *Core) PortNames() []string {
	names := make([]string, 0, len(c.ports))
	for name, p := range c.ports {
		if p.present {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (c *Core) reflectorName() string {
	if !c.reflector.IsValid() {
		return "reflector"
	}
	return c.reflector.String()
}
