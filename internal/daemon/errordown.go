package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
)

// errorDownConfig translates the configuration for the monitor of faults.
func errorDownConfig(cfg *config.Config) errdown.Config {
	c := causesConfig(&cfg.ErrorDown.Causes)
	for i := range cfg.ErrorDown.Ports {
		p := &cfg.ErrorDown.Ports[i]
		// The configuration has checked the names by the same rules.
		if names, err := fabric.ParseNames(p.Names); err == nil {
			c.Ports = append(c.Ports, errdown.Exception{Names: names, Config: causesConfig(&p.Causes)})
		}
	}
	return c
}

func causesConfig(c *config.Causes) errdown.Config {
	reaction := func(r config.Reaction) errdown.Reaction {
		return errdown.Reaction{Response: response(r.Action), Recovery: r.Recovery, HoldUp: r.HoldUp, ClearPercent: r.ClearPercent}
	}
	f, p, l, s := c.LinkFlap, c.PFCStorm, c.LowPower, c.StormControl
	return errdown.Config{
		LinkDown: errdown.LinkDownConfig{HoldUp: c.LinkDown.HoldUp},
		LinkFlap: errdown.LinkFlapConfig{Changes: f.Changes, Window: f.Window, Response: response(f.Action), Recovery: f.Recovery},
		PFCStorm: errdown.PFCStormConfig{Detect: p.Detect, Recover: p.Recover, Deadlocks: p.Deadlocks, Window: p.Window,
			PauseFrames: p.PauseFrames, Reaction: reaction(p.Reaction)},
		CRC: errdown.CRCConfig{Errors: c.CRC.Errors, Window: c.CRC.Window, PerMillion: c.CRC.PerMillion, Reaction: reaction(c.CRC.Reaction)},
		LowPower: errdown.LowPowerConfig{Below: l.Below, Hysteresis: l.Hysteresis, Window: l.Window,
			Reaction: reaction(l.Reaction)},
		StormControl: errdown.StormControlConfig{Broadcast: s.Broadcast, Multicast: s.Multicast, Window: s.Window,
			Reaction: reaction(s.Reaction)},
	}
}

func response(a config.Action) errdown.Response {
	switch a {
	case config.ActionNotify:
		return errdown.RespondNotify
	case config.ActionErrorDown:
		return errdown.RespondShut
	}
	return errdown.RespondNone
}

// RecoverPort ends an error-down by hand.
func (c *Core) RecoverPort(name string, now time.Time) error {
	return c.byHand(name, now, c.faults.Recover)
}

// ShutPort shuts a port by hand, after the others were told.
func (c *Core) ShutPort(name string, now time.Time) error {
	return c.byHand(name, now, c.faults.Shut)
}

func (c *Core) byHand(name string, now time.Time, do func(string, time.Time) ([]errdown.Change, error)) error {
	if c.client == nil || c.ports[name] == nil {
		return fmt.Errorf("port %s: %w: it is not an access port of this device", name, api.ErrNotFound)
	}
	changes, err := do(name, now)
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrRefused, err)
	}
	for _, ch := range changes {
		at := ch.At
		if ch.Faulty && c.ports[name].fault.active {
			at = time.Time{} // its hosts are unreachable since another time: this is no fresh fault
		}
		c.causeChangedAt(ch, at, now)
	}
	c.flush(now)
	return nil
}

// RecoverPort implements api.Source.
func (d *Daemon) RecoverPort(ctx context.Context, port string) error {
	return d.byHand(ctx, port, "recovery", (*Core).RecoverPort)
}

// ShutPort implements api.Source.
func (d *Daemon) ShutPort(ctx context.Context, port string) error {
	return d.byHand(ctx, port, "shutting", (*Core).ShutPort)
}

func (d *Daemon) byHand(ctx context.Context, port, what string, do func(*Core, string, time.Time) error) error {
	var err error
	if doErr := d.device.Do(ctx, func(c *Core, now time.Time) { err = do(c, port, now) }); doErr != nil {
		return doErr
	}
	if err == nil {
		d.ordered(ctx, what, port)
	}
	return err
}

// ordered makes known who asked for what is done to ports.
func (d *Daemon) ordered(ctx context.Context, what string, ports ...string) {
	e := api.Event{Time: d.env.Now(), Kind: "port", Text: fmt.Sprintf("%s of port %s: ordered by %s", what, some(ports[:min(len(ports), mostNamed)], len(ports), ""), api.By(ctx)),
		Fields: callerFields(ctx)}
	if len(ports) == 1 {
		e.Port = ports[0]
	}
	d.log.Append(e)
}
