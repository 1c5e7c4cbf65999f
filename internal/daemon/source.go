package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/latency"
	"github.com/openinof/inof/internal/logbound"
	"github.com/openinof/inof/internal/query"
)

// Daemon is the Source of the management API. Large tables are read in pieces, so
// that a fault never waits for a reader.
var (
	_ api.Source   = (*Daemon)(nil)
	_ query.Source = (*Daemon)(nil)
)

// chunk is how many peers one turn of the owner goroutine looks at.
const chunk = 256

// Events implements api.EventSource.
func (d *Daemon) Events(after uint64) api.EventBatch { return d.log.Events(after) }

// Subscribe implements api.EventSource.
func (d *Daemon) Subscribe(ctx context.Context, after uint64) (api.EventBatch, error) {
	return d.log.Subscribe(ctx, after)
}

// ListEvents implements query.Source.
func (d *Daemon) ListEvents(ctx context.Context, q api.EventQuery) ([]api.Event, error) {
	return api.ListEvents(ctx, d, q)
}

// HostsAt implements api.EventSource.
func (d *Daemon) HostsAt(ctx context.Context, addr netip.Addr) ([]api.Host, error) {
	return query.Hosts(ctx, d, query.Asked{Values: url.Values{"addr": {addr.String()}}})
}

// Do implements query.Source.
func (d *Daemon) Do(ctx context.Context, fn func(c *device.Core, now time.Time)) error {
	return d.device.Do(ctx, fn)
}

// Queries implements api.Source.
func (d *Daemon) Queries() []api.Served {
	return query.Served(func(ctx context.Context, q *query.Query, f query.Asked) (any, error) { return q.Read(ctx, d, f) })
}

// Status implements query.Source.
func (d *Daemon) Status(ctx context.Context) (api.Status, error) {
	cfg, now := d.cfg.Load(), d.env.Now()
	s := api.Status{
		Device: cfg.Device.ID, Name: cfg.Device.Name, Roles: cfg.Device.Roles.Names(),
		Version: api.VersionText(), PID: os.Getpid(), Started: d.started, Uptime: api.Duration(now.Sub(d.started)),
		Memory: &api.Memory{Limit: d.env.Memory.Bytes, File: d.env.Memory.File, Least: LeastMemory(cfg)},
	}
	peers, err := d.Peers(ctx)
	if err != nil {
		return s, err
	}
	err = d.device.Do(ctx, func(c *device.Core, now time.Time) {
		s.Mode = c.Mode()
		s.Synced = c.Synced()
		s.HeldBack, s.LastSync = c.HeldBack(), c.LastSync()
		s.Counts = c.Counts()
		s.Counters = c.Counters()
		s.Counters["device"] = d.device.counters()
	})
	if err != nil {
		return s, err
	}
	d.addCounters(s.Counters)
	if t, ok := d.env.Dataplane.(fabric.CarrierTeller); ok {
		source, why := t.CarrierSource()
		s.Carrier = &api.CarrierSource{Source: string(source), Why: why}
	}
	for _, p := range peers {
		if p.Refused {
			continue
		}
		s.Counts.Peers++
		if p.State == api.PeerEstablished {
			s.Counts.Established++
		}
	}
	s.Warnings, err = d.warnings(ctx, &s, peers)
	return s, err
}

// refusedShown is how long connections that were refused are listed as peers.
const refusedShown = 10 * time.Minute

// Peers implements query.Source.
func (d *Daemon) Peers(ctx context.Context) ([]api.Peer, error) {
	peers := []api.Peer{}
	for _, c := range d.dialers {
		info := c.Info()
		peers = append(peers, peerOf(info, "reflector"))
	}
	if d.server != nil {
		for _, info := range d.server.Infos() {
			peers = append(peers, peerOf(info, "client"))
		}
		for _, info := range d.server.Refused() {
			if d.env.Now().Sub(info.LastErrAt) < refusedShown {
				p := peerOf(info, "client")
				p.Refused = true
				peers = append(peers, p)
			}
		}
	}
	for part := range slices.Chunk(peers, chunk) {
		if err := d.device.Do(ctx, func(c *device.Core, _ time.Time) {
			for i := range part {
				c.PeerSync(&part[i])
			}
		}); err != nil {
			return nil, err
		}
	}
	return peers, nil
}

func peerOf(i link.PeerInfo, role string) api.Peer {
	p := api.Peer{
		Device: i.Device, Address: i.Address, Role: role, State: api.PeerState(i.State.String()), Since: i.Since,
		MessagesIn: i.MsgIn, MessagesOut: i.MsgOut, BytesIn: i.BytesIn, BytesOut: i.BytesOut,
		Reconnects: i.Reconnects, LastError: i.LastError, Auth: i.Auth.String(), Password: string(i.Password),
		Keepalive: api.Duration(i.Keepalive), Hold: api.Duration(i.Hold),
	}
	if !i.CertExpires.IsZero() {
		p.CertificateExpires = &i.CertExpires
	}
	if !i.SlowedSince.IsZero() {
		p.SlowedSince = &i.SlowedSince
	}
	if !i.LastErrAt.IsZero() {
		p.LastErrorAt = &i.LastErrAt
	}
	if i.LastCode != 0 {
		p.LastCode = i.LastCode.String()
	}
	return p
}

// Ports implements query.Source.
func (d *Daemon) Ports(ctx context.Context) ([]api.Port, error) {
	ports := []api.Port{}
	if err := d.device.Do(ctx, func(c *device.Core, now time.Time) { ports = c.PortList(now) }); err != nil {
		return nil, err
	}
	for i := range ports {
		if n, err := d.device.dp.Counters(ports[i].Name); err == nil {
			ports[i].Counters = &n
		}
	}
	if d.guard != nil {
		d.guard.addTo(ports)
	}
	return ports, nil
}

// Latency implements query.Source.
func (d *Daemon) Latency(ctx context.Context) (api.Latency, error) {
	l := api.Latency{Since: d.started, Recent: latency.Recent, Bounds: make([]float64, len(latency.Bounds))}
	for i, b := range latency.Bounds {
		l.Bounds[i] = b.Seconds()
	}
	err := d.device.Do(ctx, func(c *device.Core, _ time.Time) {
		l.Stages, l.Clocks, l.Unmeasured = c.Stages(), c.Clocks(), c.Unmeasured()
	})
	return l, err
}

// addCounters adds what is counted outside the owner goroutine.
func (d *Daemon) addCounters(m map[string]any) {
	m["state"] = d.keeper.Counters()
	m["store"] = d.store.Counters()
	m["descriptors"] = d.descriptors.counters()
	m["sampler"] = d.device.sampler.counters()
	if d.hard != nil {
		m["hard_zoning"] = d.hard.counters()
		m["fence_dataplane"] = d.fence.counters()
	}
	if d.guard != nil {
		m["port_guard"] = d.guard.counters()
	}
	m["inbox"] = d.device.inbox.Status(d.env.Now())
	m["config"] = d.reloads.counters()
	m["audit"] = d.audit.Counters()
	if d.auth.Load().Mode == wire.AuthTLS {
		m["certificates"] = d.certs.counters()
	}
	if d.zones != nil {
		d.zones.addCounters(m)
		m["zone_changes"] = map[string]uint64{"refused": d.zonesRefused.Load()}
	}
	for i, c := range d.dialers {
		m[fmt.Sprintf("inof_dialer_%d", i+1)] = c.Counters()
	}
	if d.server != nil {
		m["inof_server_1"] = d.server.Counters()
	}
	if d.web != nil {
		m["http"] = d.web.door.Counters()
	}
	if d.gnmi != nil {
		m["gnmi"] = d.gnmi.server.Counters()
	}
	for i, s := range d.syslogs {
		m[fmt.Sprintf("syslog_%d", i+1)] = s.Counters()
	}
	if d.netconf != nil {
		m["netconf"] = d.netconf.server.Counters()
	}
	if d.paths != nil {
		m["bfd_process"] = d.paths.Counters()
	}
	if h, ok := d.env.Log.Handler().(*logbound.Handler); ok {
		m["log"] = h.Counters()
	}
	if d.env.Stats != nil {
		m["dataplane"] = d.env.Stats()
	}
}
