package daemon

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/device"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/bfdd"
	"github.com/openinof/inof/internal/config"
)

// PathsEnv is how a daemon reaches the process that watches the paths to other
// devices. The zero value is none: paths are not watched.
type PathsEnv struct {
	Dial     func(ctx context.Context, cfg config.BFD) (net.Conn, error)
	Start    func(cfg config.BFD) error // starts a process that outlives the daemon; nil: somebody else does
	Patience time.Duration              // how long somebody else is given before Start is called
	Build    string                     // of the program: a process of another build is replaced
}

// pathQueue is how many reports wait for the owner goroutine.
const pathQueue = 1024

// buildPaths makes the connection with the process.
func (d *Daemon) buildPaths(cfg *config.Config) {
	env := d.env.Paths
	if env.Dial == nil || !cfg.Device.Roles.Client {
		return
	}
	c := bfdd.ClientConfig{
		Dial:     func(ctx context.Context) (net.Conn, error) { return env.Dial(ctx, cfg.BFD) },
		Patience: env.Patience, Device: cfg.Device.ID.String(), Build: env.Build,
		Sink: func(e bfd.Event) {
			select {
			case d.device.reports <- e:
			case <-d.device.stopped:
			}
		},
		Tell: func(text string) { d.log.Append(api.Event{Time: d.env.Now(), Kind: "bfd", Text: text}) },
	}
	if env.Start != nil {
		c.Start = func() error { return env.Start(cfg.BFD) }
	}
	d.paths = bfdd.NewClient(c)
	d.device.paths, d.device.realPorts = d.paths, cfg.Dataplane == "linux"
}

// meshConfig is what the device's own configuration says of BFD. On a reflector
// "enabled" is a setting of the fabric.
func (d *Daemon) meshConfig(cfg *config.Config) device.MeshConfig {
	b := &cfg.BFD
	m := device.MeshConfig{Off: cfg.Device.Roles.Client && !b.Enabled, MaxHops: uint8(b.MaxHops)}
	if b.Auth == config.BFDAuthSession {
		m.Handed, m.Plain = true, b.PlainPeers
		return m
	}
	if len(b.Keys) == 0 || b.Auth == config.BFDAuthNone {
		return m
	}
	m.Auth = &bfd.Auth{Type: bfd.AuthSHA1}
	if b.Auth == config.BFDAuthMeticulous {
		m.Auth.Type = bfd.AuthMeticulousSHA1
	}
	for _, k := range b.Keys {
		m.Auth.Keys = append(m.Auth.Keys, bfd.AuthKey{ID: k.ID, Secret: k.Secret.Reveal()})
	}
	return m
}

// bfdSettings is what a reflector hands out.
func bfdSettings(cfg *config.Config) wire.BFDSettings {
	b := &cfg.BFD
	if !cfg.Device.Roles.Reflector {
		return wire.BFDSettings{}
	}
	return wire.BFDSettings{Enabled: b.Enabled, Interval: b.Interval, DetectMult: uint8(b.DetectMult), MeshAll: b.Mesh == config.MeshAll}
}

// reloadBFD brings new timers, keys and switches into force; sessions go on.
func (d *Daemon) reloadBFD(ctx context.Context, merged, next *config.Config) error {
	socket, grace := merged.BFD.Socket, merged.BFD.Grace
	merged.BFD = next.BFD
	merged.BFD.Socket, merged.BFD.Grace = socket, grace
	return d.device.Do(ctx, func(c *device.Core, now time.Time) {
		c.SetBFD(bfdSettings(merged), now)
		c.SetMesh(d.meshConfig(merged), now)
	})
}

// askProcess bounds how long an operator waits for a process that does not answer.
const askProcess = 500 * time.Millisecond

// BFD implements query.Source.
func (d *Daemon) BFD(ctx context.Context) (api.BFD, error) {
	out := api.BFD{Sessions: []api.BFDSession{}}
	var wanted []bfd.Peer
	failed := map[netip.Addr]bool{}
	err := d.device.Do(ctx, func(c *device.Core, _ time.Time) {
		out.Enabled, out.Off, wanted = c.Mesh()
		for _, dev := range c.FailedPaths() {
			failed[dev] = true
		}
	})
	if err != nil || d.paths == nil {
		return out, err
	}
	info := d.paths.Info()
	out.Process = api.BFDProcess{Needed: info.Needed, Connected: info.Connected, Since: info.Since, PID: info.PID,
		LastError: info.LastError, Refused: info.Refused, Counters: map[string]any{"process": d.paths.Counters()}}
	short, cancel := context.WithTimeout(ctx, askProcess)
	defer cancel()
	sessions, p, err := d.paths.Status(short)
	if err != nil {
		out.Process.LastError = cmp.Or(out.Process.LastError, err.Error())
		sessions = nil
	} else {
		out.Process.Build, out.Process.Started, out.Process.Priority, out.Process.Failure = p.Build, &p.Started, p.Priority, p.Failure
		for _, h := range p.Holders {
			out.Process.Holders = append(out.Process.Holders, api.BFDHolder{Address: h.Address, Owner: h.Owner})
		}
		if p.Stray.From.IsValid() {
			out.Process.Stray = &api.BFDStray{From: p.Stray.From, Since: p.Stray.Since, Last: p.Stray.Last}
		}
		out.Process.Counters["bfd"], out.Process.Counters["transport"] = p.BFD, p.Transport
	}
	known := map[bfd.Key]bool{}
	for i := range sessions {
		known[sessions[i].Key()] = true
		out.Sessions = append(out.Sessions, sessionOf(&sessions[i], failed))
	}
	for _, w := range wanted {
		if !known[w.Key] {
			out.Sessions = append(out.Sessions, api.BFDSession{Device: w.Peer, Local: w.Local, Multihop: w.Multihop,
				Report: bfd.ReportUnknown.String(), Fault: failed[w.Peer], Configured: timersText(w.Timers)})
		}
	}
	slices.SortStableFunc(out.Sessions, func(a, b api.BFDSession) int { return a.Device.Compare(b.Device) })
	return out, nil
}

func timersText(t bfd.Timers) api.BFDTimers {
	return api.BFDTimers{MinTx: api.Duration(t.MinTx), MinRx: api.Duration(t.MinRx), DetectMult: t.DetectMult}
}

func sessionOf(s *bfd.Status, failed map[netip.Addr]bool) api.BFDSession {
	out := api.BFDSession{
		Device: s.Peer, Local: s.Local, Multihop: s.Multihop, State: s.State.String(), RemoteState: s.RemoteState.String(),
		Report: s.Report.String(), Fault: failed[s.Peer], Diag: s.Diag.String(), RemoteDiag: s.RemoteDiag.String(),
		Configured: timersText(s.Configured), TxInterval: api.Duration(s.TxInterval), DetectTime: api.Duration(s.DetectTime),
		Auth: s.Auth.String(), Keyless: s.Keyless, Keys: s.Keys, Since: moment(s.Since), LastHeard: moment(s.LastHeard), LastDown: moment(s.LastFlap), Flaps: s.Flaps,
		HoldUp: api.Duration(s.HoldUp), HoldLeft: api.Duration(s.HoldLeft), DownLeft: api.Duration(s.DownLeft), Retiring: s.Retiring,
		LocalDiscr: s.LocalDiscr, RemoteDiscr: s.RemoteDiscr, PacketsIn: s.PacketsIn, PacketsOut: s.PacketsOut, TxLate: s.TxLate,
	}
	if s.DetectTime > 0 {
		t := timersText(s.Remote)
		out.Remote = &t
	}
	return out
}

// moment leaves out a time that never was.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
