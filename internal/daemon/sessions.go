package daemon

import (
	"context"
	"net"
	"net/netip"
	"slices"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/fence"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/zone"
)

// fenceConfig is whether and how long is blocked. On a standalone device there is no section client.
func fenceConfig(cfg *config.Config) fence.Config {
	return fence.Config{On: cfg.Client.Fence == config.FenceOn || cfg.Device.Roles.Standalone(), Hold: cfg.Fence.Hold,
		AssumePaths: cfg.Fence.OtherPaths == config.PathsAssumed}
}

// coreConfig translates the configuration for the device.Core.
func (d *Daemon) coreConfig(cfg *config.Config, known []netip.Addr) device.Config {
	c := device.Config{
		Self:       cfg.Device.ID,
		Access:     cfg.Device.Roles.Access(),
		Reflect:    cfg.Device.Roles.OwnsZones(),
		LLDP:       lldp.Limits{PortRegistrations: cfg.LLDP.MaxNeighboursPerPort, Device: cfg.LLDP.MaxHosts},
		Hosts:      hostsConfig(cfg),
		HardZoning: cfg.HardZoning,
		Fence:      fenceConfig(cfg),
		ErrorDown:  cfg.ErrorDown,
		Notify: hostnotify.Config{
			FirstRetry: cfg.Notify.RetryFirst, MaxRetry: cfg.Notify.RetryMax,
			FramesPerWindow: cfg.Notify.FramesPerWindow, Window: cfg.Notify.Window,
			MaxInFlight: cfg.Notify.MaxInFlight, History: cfg.Notify.History,
			AllRoles: cfg.Notify.Peers == config.PeersAll, FirstSeq: uint32(d.epoch >> 16),
		},
		Reflector: reflector.Config{MaxClients: cfg.Reflector.MaxClients, MaxDeviceHosts: cfg.Reflector.MaxHostsPerDevice, Grace: cfg.Reflector.Grace, Known: known, BFD: bfdSettings(cfg), Paced: true, Bindings: bindingsOf(cfg), Declared: declaredOf(cfg)},
		Epoch:     d.epoch,
		Agreement: client.AgreeIdentical,
		Wait:      cfg.Client.ReflectorWait,

		InterestAll: cfg.Client.Interest == config.InterestAll,
		Mesh:        d.meshConfig(cfg),
		Observe:     cfg.Observe(),
	}
	if c.Reflect {
		c.PathSecret = d.pathSecret(cfg.State)
	}
	if cfg.Client.Agreement == config.AgreeUnion {
		c.Agreement = client.AgreeUnion
	}
	if c.Reflectors = len(cfg.Client.Reflectors); c.Reflect && c.Access {
		c.Reflectors++ // itself
	}
	for _, r := range cfg.Client.Reflectors {
		c.Addresses = append(c.Addresses, r.Addr())
	}
	c.Ports, _ = fabric.ParseNames(cfg.Ports.Access) // checked by the configuration
	c.RemovalHold = cfg.Ports.RemovalHold
	if d.zones != nil {
		c.Zones = d.zones.first()
	}
	if tx, on := transmitConfig(cfg, d.otherLLDP); on {
		c.Transmit = &tx
	}
	return c
}

// hostsConfig translates what is believed of hosts.
func hostsConfig(cfg *config.Config) device.HostsConfig {
	h := device.HostsConfig{MaxTTL: cfg.Hosts.MaxTTL}
	switch cfg.Hosts.Conflict {
	case config.ConflictNewest:
		h.Conflict = device.ConflictNewest
	case config.ConflictFirst:
		h.Conflict = device.ConflictFirst
	}
	switch cfg.Hosts.MultiPort {
	case config.MultiPortNever:
		h.MultiPort = zone.MultiPortNever
	case config.MultiPortFabric:
		h.MultiPort = zone.MultiPortFabric
	}
	switch cfg.Hosts.Source {
	case config.FrameSourceAny:
		h.Beliefs.Source = lldp.SourceAny
	case config.FrameSourceRequired:
		h.Beliefs.Source = lldp.SourceRequired
	}
	for _, b := range cfg.Hosts.Bindings {
		ports, _ := fabric.ParseNames(b.Ports) // checked by the configuration
		h.Beliefs.Bindings = append(h.Beliefs.Bindings, lldp.Binding{Addrs: b.Addrs, MAC: b.MAC, NQN: b.NQN, Ports: ports})
	}
	h.Declared = declarations(cfg.Hosts.Declared())
	return h
}

func declarations(list []config.Declared) (out []device.Declaration) {
	for _, x := range list {
		ports, _ := fabric.ParseNames(x.Ports) // checked by the configuration
		out = append(out, device.Declaration{Addr: x.Addr, Ports: ports, Service: x.Service})
	}
	return out
}

// buildSessions makes the listening side of a reflector and the dialing side of a client.
func (d *Daemon) buildSessions(cfg *config.Config) error {
	if err := d.setAuth(cfg); err != nil {
		return err
	}
	roles := wire.Roles(0)
	if cfg.Device.Roles.Reflector {
		roles |= wire.RoleReflector
	}
	if cfg.Device.Roles.Client {
		roles |= wire.RoleClient
	}
	common := link.TransportConfig{
		Self: cfg.Device.ID, Roles: roles, Epoch: d.epoch, Caps: wire.CapFence | wire.CapDeclared,
		Auth: func() link.Auth { return *d.auth.Load() },
		Hold: cfg.Session.Hold, Keepalive: cfg.Session.Keepalive, HandshakeTimeout: cfg.Session.ConnectTimeout,
		Log: d.env.Log,
		Alarm: func(dev netip.Addr, text string) {
			d.log.Append(api.Event{Time: d.env.Now(), Kind: "error", Device: dev.String(), Text: text, Fields: map[string]string{"room": "session"}})
		},
	}
	if cfg.Device.Roles.Reflector {
		if err := d.buildServer(cfg, common); err != nil {
			return err
		}
	}
	for _, addr := range cfg.Client.Reflectors {
		tc := common
		if cfg.Client.Interest == config.InterestAll {
			tc.Caps |= wire.CapInterestAll
		}
		tc.Sink, tc.Resume = d.device.PeerSink(false), d.device.ResumePoint(false)
		dialer, err := link.NewDialer(link.DialerConfig{
			TransportConfig: tc,
			Name:            addr.String(),
			Address:         addr.Addr(),
			Dial:            func(ctx context.Context) (net.Conn, error) { return d.env.Dial(ctx, addr) },
		})
		if err != nil {
			return err
		}
		d.dialers = append(d.dialers, dialer)
	}
	return nil
}

func (d *Daemon) buildServer(cfg *config.Config, common link.TransportConfig) (err error) {
	common.Sink, common.Resume = d.device.PeerSink(true), d.device.ResumePoint(true)
	d.server, err = link.NewServer(link.ServerConfig{
		TransportConfig: common,
		Listen: func(ctx context.Context) (net.Listener, error) {
			return d.listenAll(ctx, "reflector.listen", cfg.Reflector.Listen)
		},
		Allow: func(dev netip.Addr) bool { return d.cfg.Load().Reflector.Allows(dev) },
		Everything: func(dev netip.Addr) bool {
			return slices.ContainsFunc(d.cfg.Load().Reflector.Monitors, func(p netip.Prefix) bool { return p.Contains(dev) })
		},
		MaxPeers: cfg.Reflector.MaxClients, MaxFromOne: cfg.Reflector.MaxClientsPerAddress, Returning: d.returning,
		Listed: func(dev netip.Addr) bool { r := &d.cfg.Load().Reflector; return len(r.Clients) > 0 && r.Allows(dev) },
		Pace:   paceOf(cfg),
	})
	return err
}

// declaredOf lists the hosts that a reflector declares for all devices.
func declaredOf(cfg *config.Config) (list []wire.DeclaredHost) {
	for _, x := range cfg.Reflector.Hosts {
		list = append(list, wire.DeclaredHost{Addr: x.Addr, Service: x.Service, Ports: x.Ports})
	}
	return list
}

// bindingsOf says which hosts devices may have.
func bindingsOf(cfg *config.Config) map[netip.Addr]wire.Binding {
	m := make(map[netip.Addr]wire.Binding)
	for _, c := range cfg.Reflector.Clients {
		m[c.Device] = wire.Binding{Prefixes: c.Prefixes, NQNs: c.NQNs, MaxHosts: c.MaxHosts}
	}
	return m
}

// paceOf is how fast a client may send.
func paceOf(cfg *config.Config) link.Pace {
	return link.Pace{PerSecond: cfg.Reflector.RecordsPerSecond, Burst: cfg.Reflector.RecordsBurst}
}

// setAuth makes the authentication of sessions that begin from now on.
func (d *Daemon) setAuth(cfg *config.Config) error {
	a := link.Auth{Mode: wire.AuthHMAC}
	used := cfg.Device.Roles.Reflector || len(cfg.Client.Reflectors) > 0
	switch {
	case cfg.Session.Auth == config.AuthNone:
		a = link.Auth{Mode: wire.AuthNone}
	case cfg.Session.Auth == config.AuthHMAC && used:
		err := CheckSession(cfg, d.env.Memory)
		if err != nil {
			return err
		}
		if a.Passwords, err = d.passwords.stretch(cfg.Session.PasswordFrom.Kind, cfg.Session.Password, cfg.Session.OldPassword); err != nil {
			return err
		}
	case cfg.Session.Auth == config.AuthTLS:
		a = link.Auth{Mode: wire.AuthTLS, TLS: d.certs.store}
		if used {
			if err := d.certs.set(cfg.Session.TLS); err != nil {
				return err
			}
		}
	}
	if used {
		if err := a.Validate(); err != nil {
			return err
		}
	}
	d.auth.Store(&a)
	return nil
}
