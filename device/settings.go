package device

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/zone"
)

// HostsConfig is what is believed of hosts.
type HostsConfig struct {
	Conflict  ConflictPolicy
	MultiPort zone.MultiPort
	MaxTTL    time.Duration // longest LLDP time to live taken; zero: lldp.DefaultMaxTTL
	Beliefs   lldp.Beliefs  // where hosts may be
	Declared  []Declaration // hosts that register nothing
}

// ConflictPolicy is what becomes of a local host's address when another host claims it and
// both their ports are well.
type ConflictPolicy uint8

const (
	ConflictProbe  ConflictPolicy = iota // the holder is asked, and keeps it if it answers
	ConflictNewest                       // the new claim takes it
	ConflictFirst                        // the holder keeps it
)

// SetAccess changes which ports the configuration names, and how long the hosts of one
// that it does not name any more stay. The dataplane tells which ports come and go.
func (c *Core) SetAccess(names fabric.Names, hold time.Duration) {
	c.cfg.Ports, c.cfg.RemovalHold = names, hold
}

// SetErrorDown changes thresholds and actions; faults that stand stay.
func (c *Core) SetErrorDown(cfg errdown.Config, now time.Time) {
	if c.faults == nil {
		return
	}
	defer c.settle(now)
	c.causesChanged(c.faults.SetConfig(cfg, now), now)
	for name := range c.ports {
		c.replan[name] = true
	}
}

// SetTransmit changes what the device says about itself by LLDP, and whether.
func (c *Core) SetTransmit(tx lldp.TxConfig, on bool, now time.Time) {
	if c.client == nil {
		return
	}
	c.Goodbye(now)
	c.speak, c.cfg.Transmit = nil, nil
	if !on {
		return
	}
	c.cfg.Transmit = &tx
	c.speak = lldp.NewTransmitter(tx)
	for _, name := range slices.Sorted(maps.Keys(c.ports)) {
		if p := c.ports[name]; p.present && p.Up() {
			c.speakOn(p, now)
		}
	}
}

// SetHosts changes what is believed of hosts; what is known already stands.
func (c *Core) SetHosts(cfg HostsConfig, now time.Time) {
	defer c.settle(now)
	c.cfg.Hosts = cfg
	if c.refl != nil {
		c.fromReflector(c.refl.SetMultiPort(cfg.MultiPort, now))
	}
	if c.client == nil {
		return
	}
	c.table.SetMaxTTL(cfg.MaxTTL)
	c.declared.stale = true
	c.neighboursChanged(c.table.SetBeliefs(cfg.Beliefs, now), now)
	c.changed(c.dir.SetMultiPort(cfg.MultiPort), now, now)
	for _, k := range slices.SortedFunc(maps.Keys(c.contests), zone.CompareKeys) {
		c.contend(k.Addr, now)
	}
}

// SetBindings changes which hosts devices may have, at a reflector.
func (c *Core) SetBindings(b map[netip.Addr]wire.Binding, now time.Time) {
	defer c.settle(now)
	if c.refl != nil {
		c.fromReflector(c.refl.SetBindings(b, now))
	}
}

// SetDeclared changes the hosts that a reflector declares for all devices.
func (c *Core) SetDeclared(list []wire.DeclaredHost, now time.Time) {
	defer c.settle(now)
	if c.refl != nil {
		c.fromReflector(c.refl.SetDeclared(list))
	}
}

// SetMesh changes what the device itself says about BFD.
func (c *Core) SetMesh(cfg MeshConfig, now time.Time) {
	if c.client == nil {
		return
	}
	defer c.settle(now)
	c.mesh.cfg, c.mesh.changed = cfg, true
	c.changed(c.liftPaths(now), now, now)
}
